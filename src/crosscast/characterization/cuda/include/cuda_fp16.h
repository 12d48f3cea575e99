/* All of it stands in crosscast_cuda.h, which is always included. */
