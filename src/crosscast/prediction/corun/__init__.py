"""Predictions of applications that share a device, from solo runs."""
