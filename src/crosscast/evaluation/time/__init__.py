"""Evaluation and training of models of times."""
