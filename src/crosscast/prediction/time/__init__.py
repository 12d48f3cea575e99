"""Models of the times of kernels on devices."""
