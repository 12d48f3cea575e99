"""The benchmark suite: applications with their kernels, by kind, and how they are found and profiled."""
