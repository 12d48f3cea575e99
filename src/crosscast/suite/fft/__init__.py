"""Fourier transforms with four radices."""
