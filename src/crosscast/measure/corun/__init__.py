"""Measuring applications that share a device: mixes, profiles beside stressors, and campaigns."""
