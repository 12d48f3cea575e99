"""Predictions of applications that share a device, from isolated runs."""
