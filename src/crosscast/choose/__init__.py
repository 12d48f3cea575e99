"""Decisions: which configuration under a power cap."""
