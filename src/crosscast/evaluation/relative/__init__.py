"""Evaluation and training of models of relative performance."""
