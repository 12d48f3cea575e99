"""The published model (Bailey et al. 2014): clusters of frontiers, linear models, a classification tree."""
