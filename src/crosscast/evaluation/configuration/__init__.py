"""Evaluation and training of models and methods that choose configurations."""
