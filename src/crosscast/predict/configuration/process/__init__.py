"""A Gaussian process over kernels and configurations, and what runs of a new kernel tell it."""
