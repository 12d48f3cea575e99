"""Measuring applications that share a device: bags, microbenchmarks, profiles and campaigns."""
