"""Evaluation of models on held-out groups: folds, scores, and their intervals."""
