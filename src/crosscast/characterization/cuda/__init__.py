"""CUDA and HIP kernels: compiled to what the engine knows, IR for ``spir64`` that calls OpenCL builtins."""
