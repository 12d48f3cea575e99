"""Forecasts of kernels and recorded programs in one call, and their JSON."""
