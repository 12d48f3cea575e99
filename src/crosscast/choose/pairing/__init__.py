"""Decisions: which jobs share a device."""
