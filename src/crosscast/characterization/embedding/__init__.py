"""Profiles embedded in a kernel's source or SPIR-V module."""
