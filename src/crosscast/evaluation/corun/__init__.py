"""Evaluation and training of models of applications that share a device."""
