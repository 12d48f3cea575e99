"""Training of a hidden Markov model."""
