"""Profiles that travel inside of the kernel's source, or of its SPIR-V module."""
