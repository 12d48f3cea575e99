"""Cyclic redundancy check of a buffer."""
