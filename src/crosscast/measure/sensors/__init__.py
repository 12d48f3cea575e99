"""Sensors of energy, one a file, and which of them a device has."""
