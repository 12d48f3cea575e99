/* The part of OpenCL's C interface that the layer needs, by its specification (Khronos, OpenCL 3.0). */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;
typedef struct platform *cl_platform_id;
typedef struct device *cl_device_id;
typedef struct context *cl_context;
typedef struct command_queue *cl_command_queue;
typedef struct memory *cl_mem;
typedef struct program_handle *cl_program;
typedef struct kernel_handle *cl_kernel;
typedef struct event *cl_event;
typedef struct sampler_handle *cl_sampler;
typedef struct {
    cl_uint order, type;
} cl_image_format;
typedef struct {
    cl_uint image_type;
    size_t width, height, depth, array_size, row_pitch, slice_pitch;
    cl_uint mip_levels, samples;
    cl_mem mem_object;
} cl_image_desc;
typedef struct {
    size_t origin, size;
} cl_buffer_region;

enum {
    CL_SUCCESS = 0,
    CL_COMPLETE = 0,
    CL_PROFILING_INFO_NOT_AVAILABLE = -7,
    CL_INVALID_VALUE = -30,
    CL_INVALID_OPERATION = -59,
    CL_QUEUE_OUT_OF_ORDER = 1,
    CL_QUEUE_PROFILING = 2,
    CL_QUEUE_ON_DEVICE = 4,
    CL_MEM_READ_WRITE = 1,
    CL_MEM_READ_ONLY = 4,
    CL_MEM_USE_HOST_PTR = 8,
    CL_MAP_READ = 1,
    CL_MAP_WRITES = 2 | 4,
    CL_KERNEL_ARG_TYPE_CONST = 1,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_PROPERTIES_ARRAY = 0x1098,
    CL_MEM_OBJECT_IMAGE2D = 0x10F1,
    CL_MEM_OBJECT_IMAGE3D = 0x10F2,
    CL_MEM_OBJECT_IMAGE2D_ARRAY = 0x10F3,
    CL_MEM_OBJECT_IMAGE1D_ARRAY = 0x10F5,
    CL_IMAGE_ELEMENT_SIZE = 0x1111,
    CL_IMAGE_WIDTH = 0x1114,
    CL_IMAGE_HEIGHT = 0x1115,
    CL_IMAGE_DEPTH = 0x1116,
    CL_ADDRESS_CLAMP = 0x1132,
    CL_FILTER_NEAREST = 0x1140,
    CL_SAMPLER_NORMALIZED_COORDS = 0x1152,
    CL_SAMPLER_ADDRESSING_MODE = 0x1153,
    CL_SAMPLER_FILTER_MODE = 0x1154,
    CL_KERNEL_FUNCTION_NAME = 0x1190,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_ARG_ADDRESS = 0x1196,
    CL_KERNEL_ARG_ACCESS = 0x1197,
    CL_KERNEL_ARG_TYPE_QUALIFIER = 0x1199,
    CL_KERNEL_ARG_ADDRESS_CONSTANT = 0x119D,
    CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119E,
    CL_KERNEL_ARG_ACCESS_READ_ONLY = 0x11A0,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_EVENT_COMMAND_QUEUE = 0x11D0,
    CL_EVENT_STATUS = 0x11D3,
    CL_PROFILING_QUEUED = 0x1280,
    CL_LAYER_API_VERSION = 0x4240,
    CL_LAYER_NAME = 0x4241,
    CL_LAYER_API_VERSION_100 = 100,
};

/* Functions in the order of the loader's dispatch table, which only grows at its end. */
#define ENTRIES(X) X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
  X(clCreateContext) X(clCreateContextFromType) X(clRetainContext) X(clReleaseContext) X(clGetContextInfo) \
  X(clCreateCommandQueue) X(clRetainCommandQueue) X(clReleaseCommandQueue) X(clGetCommandQueueInfo) \
  X(clSetCommandQueueProperty) X(clCreateBuffer) X(clCreateImage2D) X(clCreateImage3D) \
  X(clRetainMemObject) X(clReleaseMemObject) X(clGetSupportedImageFormats) X(clGetMemObjectInfo) \
  X(clGetImageInfo) X(clCreateSampler) X(clRetainSampler) X(clReleaseSampler) X(clGetSamplerInfo) \
  X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clRetainProgram) X(clReleaseProgram) \
  X(clBuildProgram) X(clUnloadCompiler) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clCreateKernel) \
  X(clCreateKernelsInProgram) X(clRetainKernel) X(clReleaseKernel) X(clSetKernelArg) X(clGetKernelInfo) \
  X(clGetKernelWorkGroupInfo) X(clWaitForEvents) X(clGetEventInfo) X(clRetainEvent) X(clReleaseEvent) \
  X(clGetEventProfilingInfo) X(clFlush) X(clFinish) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) \
  X(clEnqueueCopyBuffer) X(clEnqueueReadImage) X(clEnqueueWriteImage) X(clEnqueueCopyImage) \
  X(clEnqueueCopyImageToBuffer) X(clEnqueueCopyBufferToImage) X(clEnqueueMapBuffer) X(clEnqueueMapImage) \
  X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) X(clEnqueueTask) X(clEnqueueNativeKernel) \
  X(clEnqueueMarker) X(clEnqueueWaitForEvents) X(clEnqueueBarrier) X(clGetExtensionFunctionAddress) \
  X(clCreateFromGLBuffer) X(clCreateFromGLTexture2D) X(clCreateFromGLTexture3D) \
  X(clCreateFromGLRenderbuffer) X(clGetGLObjectInfo) X(clGetGLTextureInfo) X(clEnqueueAcquireGLObjects) \
  X(clEnqueueReleaseGLObjects) X(clGetGLContextInfoKHR) X(clGetDeviceIDsFromD3D10KHR) \
  X(clCreateFromD3D10BufferKHR) X(clCreateFromD3D10Texture2DKHR) X(clCreateFromD3D10Texture3DKHR) \
  X(clEnqueueAcquireD3D10ObjectsKHR) X(clEnqueueReleaseD3D10ObjectsKHR) X(clSetEventCallback) \
  X(clCreateSubBuffer) X(clSetMemObjectDestructorCallback) X(clCreateUserEvent) X(clSetUserEventStatus) \
  X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect) \
  X(clCreateSubDevicesEXT) X(clRetainDeviceEXT) X(clReleaseDeviceEXT) X(clCreateEventFromGLsyncKHR) \
  X(clCreateSubDevices) X(clRetainDevice) X(clReleaseDevice) X(clCreateImage) \
  X(clCreateProgramWithBuiltInKernels) X(clCompileProgram) X(clLinkProgram) X(clUnloadPlatformCompiler) \
  X(clGetKernelArgInfo) X(clEnqueueFillBuffer) X(clEnqueueFillImage) X(clEnqueueMigrateMemObjects) \
  X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) \
  X(clGetExtensionFunctionAddressForPlatform) X(clCreateFromGLTexture) X(clGetDeviceIDsFromD3D11KHR) \
  X(clCreateFromD3D11BufferKHR) X(clCreateFromD3D11Texture2DKHR) X(clCreateFromD3D11Texture3DKHR) \
  X(clCreateFromDX9MediaSurfaceKHR) X(clEnqueueAcquireD3D11ObjectsKHR) X(clEnqueueReleaseD3D11ObjectsKHR) \
  X(clGetDeviceIDsFromDX9MediaAdapterKHR) X(clEnqueueAcquireDX9MediaSurfacesKHR) \
  X(clEnqueueReleaseDX9MediaSurfacesKHR) X(clCreateFromEGLImageKHR) X(clEnqueueAcquireEGLObjectsKHR) \
  X(clEnqueueReleaseEGLObjectsKHR) X(clCreateEventFromEGLSyncKHR) X(clCreateCommandQueueWithProperties) \
  X(clCreatePipe) X(clGetPipeInfo) X(clSVMAlloc) X(clSVMFree) X(clEnqueueSVMFree) X(clEnqueueSVMMemcpy) \
  X(clEnqueueSVMMemFill) X(clEnqueueSVMMap) X(clEnqueueSVMUnmap) X(clCreateSamplerWithProperties) \
  X(clSetKernelArgSVMPointer) X(clSetKernelExecInfo) X(clGetKernelSubGroupInfoKHR) X(clCloneKernel) \
  X(clCreateProgramWithIL) X(clEnqueueSVMMigrateMem) X(clGetDeviceAndHostTimer) X(clGetHostTimer) \
  X(clGetKernelSubGroupInfo) X(clSetDefaultDeviceCommandQueue) X(clSetProgramReleaseCallback) \
  X(clSetProgramSpecializationConstant) X(clCreateBufferWithProperties) X(clCreateImageWithProperties) \
  X(clSetContextDestructorCallback)

enum {
#define PLACE(name) i_##name,
    ENTRIES(PLACE) N_ENTRIES
#undef PLACE
};
