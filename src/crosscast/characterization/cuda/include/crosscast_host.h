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

#define hipError_t cudaError_t
#define hipSuccess cudaSuccess
#define hipStream_t cudaStream_t
#define hipEvent_t cudaEvent_t
#define hipDeviceProp_t cudaDeviceProp
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault

#define CC_HOST_FUNCTION(NAME) template <class... T> __host__ cudaError_t NAME(T...);
#define CC_HOST(NAME) CC_HOST_FUNCTION(cuda##NAME) CC_HOST_FUNCTION(hip##NAME)
CC_HOST(Malloc) CC_HOST(MallocHost) CC_HOST(MallocManaged) CC_HOST(MallocPitch) CC_HOST(Free) CC_HOST(FreeHost)
CC_HOST(HostAlloc) CC_HOST(HostMalloc) CC_HOST(HostFree) CC_HOST(Memcpy) CC_HOST(Memcpy2D) CC_HOST(MemcpyAsync)
CC_HOST(Memset) CC_HOST(MemsetAsync) CC_HOST(DeviceSynchronize) CC_HOST(ThreadSynchronize)
CC_HOST(DeviceReset) CC_HOST(ThreadExit) CC_HOST(GetLastError) CC_HOST(PeekAtLastError) CC_HOST(GetDeviceCount)
CC_HOST(SetDevice) CC_HOST(GetDevice) CC_HOST(GetDeviceProperties) CC_HOST(EventCreate) CC_HOST(EventDestroy)
CC_HOST(EventRecord) CC_HOST(EventSynchronize) CC_HOST(EventElapsedTime) CC_HOST(StreamCreate) CC_HOST(StreamDestroy)
CC_HOST(StreamSynchronize) CC_HOST(FuncSetCacheConfig) CC_HOST(FuncSetAttribute) CC_HOST(MemPrefetchAsync)
CC_HOST(LaunchKernel)
#undef CC_HOST
#undef CC_HOST_FUNCTION
template <class S, class... T> __host__ cudaError_t cudaMemcpyToSymbol(const S &, T...);
#define hipMemcpyToSymbol cudaMemcpyToSymbol
template <class... T> __host__ const char *cudaGetErrorString(T...);
template <class... T> __host__ const char *cudaGetErrorName(T...);
#define hipGetErrorString cudaGetErrorString

/* What <<<...>>> calls. */
__host__ unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
__host__ int hipConfigureCall(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);

#define HIP_SYMBOL(X) X
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

#endif
