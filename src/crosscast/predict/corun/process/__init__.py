"""Slowdowns as a Gaussian process over a member and those that it shares the device with."""
