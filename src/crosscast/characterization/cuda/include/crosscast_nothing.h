/* Where CUDA and HIP have headers of what stands in crosscast_cuda.h, which is always included. */
