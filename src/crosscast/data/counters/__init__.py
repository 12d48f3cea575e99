"""Readers of what counter tools write."""
