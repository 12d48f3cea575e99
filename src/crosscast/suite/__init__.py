"""The benchmark suite: one folder an application, with its kernels and its driver."""
