"""Evaluation and training of what chooses configurations."""
