"""OpenCL devices: the only place that imports pyopencl."""
