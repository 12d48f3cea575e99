"""Models of relative performance as published: paper 003 (Nichols et al. 2024), section VI-A."""
