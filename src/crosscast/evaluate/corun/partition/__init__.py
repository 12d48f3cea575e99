"""Evaluation of models of jobs on parts of a GPU."""
