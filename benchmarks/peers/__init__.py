"""Other OpenCL implementations that run the same kernels: PoCL (native) and Oclgrind (a simulator)."""
