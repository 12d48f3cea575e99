"""Forecasts of kernels and recorded programs in one call, and what commands and the service answer."""
