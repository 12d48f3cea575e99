"""A plain, slow interpreter of the LLVM IR of OpenCL kernels, the reference for what the engine counts."""
