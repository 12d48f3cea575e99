"""Evaluation of models of applications that share a device."""
