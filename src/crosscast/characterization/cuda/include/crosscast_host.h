/* The runtime's interface, as far as host code around kernels needs it to be parsed. */
#ifndef CROSSCAST_HOST_H
#define CROSSCAST_HOST_H

typedef enum cudaError { cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorNotReady, cudaErrorUnknown } cudaError_t;
typedef enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault } cudaMemcpyKind;
typedef struct cc_stream *cudaStream_t;
typedef struct cc_event *cudaEvent_t;
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, totalConstMem;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, major, minor;
  int multiProcessorCount, memoryClockRate, memoryBusWidth, l2CacheSize, concurrentKernels, integrated;
};

#define CC_HOST(NAME) template <class... T> __host__ cudaError_t NAME(T...);
CC_HOST(cudaMalloc) CC_HOST(cudaMallocHost) CC_HOST(cudaMallocManaged) CC_HOST(cudaMallocPitch) CC_HOST(cudaFree)
CC_HOST(cudaFreeHost) CC_HOST(cudaHostAlloc) CC_HOST(cudaMemcpy) CC_HOST(cudaMemcpy2D) CC_HOST(cudaMemcpyAsync)
CC_HOST(cudaMemset) CC_HOST(cudaMemsetAsync) CC_HOST(cudaDeviceSynchronize) CC_HOST(cudaThreadSynchronize)
CC_HOST(cudaDeviceReset) CC_HOST(cudaThreadExit) CC_HOST(cudaGetLastError) CC_HOST(cudaPeekAtLastError)
CC_HOST(cudaGetDeviceCount) CC_HOST(cudaSetDevice) CC_HOST(cudaGetDevice) CC_HOST(cudaGetDeviceProperties)
CC_HOST(cudaEventCreate) CC_HOST(cudaEventDestroy) CC_HOST(cudaEventRecord) CC_HOST(cudaEventSynchronize)
CC_HOST(cudaEventElapsedTime) CC_HOST(cudaStreamCreate) CC_HOST(cudaStreamDestroy) CC_HOST(cudaStreamSynchronize)
CC_HOST(cudaFuncSetCacheConfig) CC_HOST(cudaFuncSetAttribute) CC_HOST(cudaMemPrefetchAsync) CC_HOST(cudaLaunchKernel)
#undef CC_HOST
template <class S, class... T> __host__ cudaError_t cudaMemcpyToSymbol(const S &, T...);
template <class... T> __host__ const char *cudaGetErrorString(T...);
template <class... T> __host__ const char *cudaGetErrorName(T...);

/* What <<<...>>> calls. */
__host__ unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
__host__ int hipConfigureCall(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);

#define hipSuccess cudaSuccess
#define hipError_t cudaError_t
#define hipStream_t cudaStream_t
#define hipEvent_t cudaEvent_t
#define hipDeviceProp_t cudaDeviceProp
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault
#define hipMalloc cudaMalloc
#define hipMallocManaged cudaMallocManaged
#define hipHostMalloc cudaHostAlloc
#define hipFree cudaFree
#define hipHostFree cudaFreeHost
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyToSymbol cudaMemcpyToSymbol
#define hipMemset cudaMemset
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipGetLastError cudaGetLastError
#define hipGetErrorString cudaGetErrorString
#define hipGetDeviceProperties cudaGetDeviceProperties
#define hipSetDevice cudaSetDevice
#define hipEventCreate cudaEventCreate
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipEventElapsedTime cudaEventElapsedTime
#define hipEventDestroy cudaEventDestroy
#define HIP_SYMBOL(X) X
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

#endif
