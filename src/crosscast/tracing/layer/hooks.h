/* The functions that are hooked: result, name, parameters, arguments; and those that are only called. */
#pragma once
#include "opencl.h"

#define WAITS cl_uint waits, const cl_event *wait, cl_event *event
typedef void (*built_f)(cl_program, void *);

#define HOOKS(X) \
  X(cl_program, clCreateProgramWithSource, \
    (cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *e), (c, n, s, l, e)) \
  X(cl_program, clCreateProgramWithBinary, \
    (cl_context c, cl_uint n, const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *st, \
     cl_int *e), (c, n, d, l, b, st, e)) \
  X(cl_program, clCreateProgramWithIL, (cl_context c, const void *il, size_t l, cl_int *e), (c, il, l, e)) \
  X(cl_program, clCreateProgramWithBuiltInKernels, \
    (cl_context c, cl_uint n, const cl_device_id *d, const char *names, cl_int *e), (c, n, d, names, e)) \
  X(cl_int, clBuildProgram, \
    (cl_program p, cl_uint n, const cl_device_id *d, const char *o, built_f f, void *u), (p, n, d, o, f, u)) \
  X(cl_int, clCompileProgram, \
    (cl_program p, cl_uint n, const cl_device_id *d, const char *o, cl_uint nh, const cl_program *h, \
     const char **hn, built_f f, void *u), (p, n, d, o, nh, h, hn, f, u)) \
  X(cl_program, clLinkProgram, \
    (cl_context c, cl_uint n, const cl_device_id *d, const char *o, cl_uint np, const cl_program *p, \
     built_f f, void *u, cl_int *e), (c, n, d, o, np, p, f, u, e)) \
  X(cl_int, clGetProgramInfo, (cl_program p, cl_uint i, size_t n, void *v, size_t *r), (p, i, n, v, r)) \
  X(cl_int, clSetProgramSpecializationConstant, \
    (cl_program p, cl_uint id, size_t n, const void *v), (p, id, n, v)) \
  X(cl_kernel, clCreateKernel, (cl_program p, const char *name, cl_int *e), (p, name, e)) \
  X(cl_int, clCreateKernelsInProgram, (cl_program p, cl_uint n, cl_kernel *k, cl_uint *r), (p, n, k, r)) \
  X(cl_kernel, clCloneKernel, (cl_kernel k, cl_int *e), (k, e)) \
  X(cl_int, clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *v), (k, i, n, v)) \
  X(cl_int, clSetKernelArgSVMPointer, (cl_kernel k, cl_uint i, const void *v), (k, i, v)) \
  X(cl_int, clSetKernelExecInfo, (cl_kernel k, cl_uint i, size_t n, const void *v), (k, i, n, v)) \
  X(cl_mem, clCreateBuffer, (cl_context c, cl_bitfield f, size_t n, void *h, cl_int *e), (c, f, n, h, e)) \
  X(cl_mem, clCreateBufferWithProperties, \
    (cl_context c, const cl_ulong *p, cl_bitfield f, size_t n, void *h, cl_int *e), (c, p, f, n, h, e)) \
  X(cl_mem, clCreateSubBuffer, \
    (cl_mem m, cl_bitfield f, cl_uint t, const void *i, cl_int *e), (m, f, t, i, e)) \
  X(cl_mem, clCreateImage, \
    (cl_context c, cl_bitfield f, const cl_image_format *t, const cl_image_desc *d, void *h, cl_int *e), \
    (c, f, t, d, h, e)) \
  X(cl_mem, clCreateImageWithProperties, \
    (cl_context c, const cl_ulong *p, cl_bitfield f, const cl_image_format *t, const cl_image_desc *d, \
     void *h, cl_int *e), (c, p, f, t, d, h, e)) \
  X(cl_mem, clCreateImage2D, \
    (cl_context c, cl_bitfield f, const cl_image_format *t, size_t x, size_t y, size_t r, void *h, \
     cl_int *e), (c, f, t, x, y, r, h, e)) \
  X(cl_mem, clCreateImage3D, \
    (cl_context c, cl_bitfield f, const cl_image_format *t, size_t x, size_t y, size_t z, size_t r, \
     size_t s, void *h, cl_int *e), (c, f, t, x, y, z, r, s, h, e)) \
  X(cl_sampler, clCreateSampler, (cl_context c, cl_bool n, cl_uint a, cl_uint f, cl_int *e), (c, n, a, f, e)) \
  X(cl_sampler, clCreateSamplerWithProperties, (cl_context c, const cl_ulong *p, cl_int *e), (c, p, e)) \
  X(void *, clSVMAlloc, (cl_context c, cl_bitfield f, size_t n, cl_uint a), (c, f, n, a)) \
  X(void, clSVMFree, (cl_context c, void *p), (c, p)) \
  X(cl_command_queue, clCreateCommandQueue, \
    (cl_context c, cl_device_id d, cl_bitfield p, cl_int *e), (c, d, p, e)) \
  X(cl_command_queue, clCreateCommandQueueWithProperties, \
    (cl_context c, cl_device_id d, const cl_ulong *p, cl_int *e), (c, d, p, e)) \
  X(cl_int, clGetCommandQueueInfo, \
    (cl_command_queue q, cl_uint i, size_t n, void *v, size_t *r), (q, i, n, v, r)) \
  X(cl_int, clGetEventProfilingInfo, (cl_event e, cl_uint i, size_t n, void *v, size_t *r), (e, i, n, v, r)) \
  X(cl_int, clEnqueueNDRangeKernel, \
    (cl_command_queue q, cl_kernel k, cl_uint d, const size_t *o, const size_t *g, const size_t *l, WAITS), \
    (q, k, d, o, g, l, waits, wait, event)) \
  X(cl_int, clEnqueueTask, (cl_command_queue q, cl_kernel k, WAITS), (q, k, waits, wait, event)) \
  X(cl_int, clEnqueueNativeKernel, \
    (cl_command_queue q, void (*f)(void *), void *a, size_t n, cl_uint nm, const cl_mem *m, \
     const void **at, WAITS), (q, f, a, n, nm, m, at, waits, wait, event)) \
  X(cl_int, clEnqueueReadBuffer, \
    (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n, void *h, WAITS), \
    (q, m, b, o, n, h, waits, wait, event)) \
  X(cl_int, clEnqueueWriteBuffer, \
    (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n, const void *h, WAITS), \
    (q, m, b, o, n, h, waits, wait, event)) \
  X(cl_int, clEnqueueCopyBuffer, \
    (cl_command_queue q, cl_mem s, cl_mem d, size_t so, size_t o, size_t n, WAITS), \
    (q, s, d, so, o, n, waits, wait, event)) \
  X(cl_int, clEnqueueFillBuffer, \
    (cl_command_queue q, cl_mem m, const void *p, size_t pn, size_t o, size_t n, WAITS), \
    (q, m, p, pn, o, n, waits, wait, event)) \
  X(cl_int, clEnqueueReadBufferRect, \
    (cl_command_queue q, cl_mem m, cl_bool b, const size_t *bo, const size_t *ho, const size_t *r, \
     size_t br, size_t bs, size_t hr, size_t hs, void *h, WAITS), \
    (q, m, b, bo, ho, r, br, bs, hr, hs, h, waits, wait, event)) \
  X(cl_int, clEnqueueWriteBufferRect, \
    (cl_command_queue q, cl_mem m, cl_bool b, const size_t *bo, const size_t *ho, const size_t *r, \
     size_t br, size_t bs, size_t hr, size_t hs, const void *h, WAITS), \
    (q, m, b, bo, ho, r, br, bs, hr, hs, h, waits, wait, event)) \
  X(cl_int, clEnqueueCopyBufferRect, \
    (cl_command_queue q, cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *r, size_t sr, \
     size_t ss, size_t dr, size_t ds, WAITS), (q, s, d, so, o, r, sr, ss, dr, ds, waits, wait, event)) \
  X(cl_int, clEnqueueReadImage, \
    (cl_command_queue q, cl_mem m, cl_bool b, const size_t *o, const size_t *r, size_t rp, size_t sp, \
     void *h, WAITS), (q, m, b, o, r, rp, sp, h, waits, wait, event)) \
  X(cl_int, clEnqueueWriteImage, \
    (cl_command_queue q, cl_mem m, cl_bool b, const size_t *o, const size_t *r, size_t rp, size_t sp, \
     const void *h, WAITS), (q, m, b, o, r, rp, sp, h, waits, wait, event)) \
  X(cl_int, clEnqueueCopyImage, \
    (cl_command_queue q, cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *r, WAITS), \
    (q, s, d, so, o, r, waits, wait, event)) \
  X(cl_int, clEnqueueCopyImageToBuffer, \
    (cl_command_queue q, cl_mem s, cl_mem d, const size_t *so, const size_t *r, size_t o, WAITS), \
    (q, s, d, so, r, o, waits, wait, event)) \
  X(cl_int, clEnqueueCopyBufferToImage, \
    (cl_command_queue q, cl_mem s, cl_mem d, size_t so, const size_t *o, const size_t *r, WAITS), \
    (q, s, d, so, o, r, waits, wait, event)) \
  X(cl_int, clEnqueueFillImage, \
    (cl_command_queue q, cl_mem m, const void *p, const size_t *o, const size_t *r, WAITS), \
    (q, m, p, o, r, waits, wait, event)) \
  X(void *, clEnqueueMapBuffer, \
    (cl_command_queue q, cl_mem m, cl_bool b, cl_bitfield f, size_t o, size_t n, WAITS, cl_int *e), \
    (q, m, b, f, o, n, waits, wait, event, e)) \
  X(void *, clEnqueueMapImage, \
    (cl_command_queue q, cl_mem m, cl_bool b, cl_bitfield f, const size_t *o, const size_t *r, size_t *rp, \
     size_t *sp, WAITS, cl_int *e), (q, m, b, f, o, r, rp, sp, waits, wait, event, e)) \
  X(cl_int, clEnqueueUnmapMemObject, \
    (cl_command_queue q, cl_mem m, void *p, WAITS), (q, m, p, waits, wait, event)) \
  X(cl_int, clEnqueueSVMMemcpy, \
    (cl_command_queue q, cl_bool b, void *d, const void *s, size_t n, WAITS), \
    (q, b, d, s, n, waits, wait, event)) \
  X(cl_int, clEnqueueSVMMemFill, \
    (cl_command_queue q, void *d, const void *p, size_t pn, size_t n, WAITS), \
    (q, d, p, pn, n, waits, wait, event)) \
  X(cl_int, clEnqueueSVMMap, \
    (cl_command_queue q, cl_bool b, cl_bitfield f, void *p, size_t n, WAITS), \
    (q, b, f, p, n, waits, wait, event)) \
  X(void *, clGetExtensionFunctionAddress, (const char *n), (n)) \
  X(void *, clGetExtensionFunctionAddressForPlatform, (cl_platform_id p, const char *n), (p, n))

#define DECLARE(ret, name, params, args) typedef ret(*name##_f) params; static ret h_##name params;
HOOKS(DECLARE)
#undef DECLARE

#define CALLED(name, ...) typedef cl_int (*name##_f)(__VA_ARGS__);
CALLED(clGetDeviceInfo, cl_device_id, cl_uint, size_t, void *, size_t *)
CALLED(clGetKernelInfo, cl_kernel, cl_uint, size_t, void *, size_t *)
CALLED(clGetKernelArgInfo, cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *)
CALLED(clGetImageInfo, cl_mem, cl_uint, size_t, void *, size_t *)
CALLED(clGetEventInfo, cl_event, cl_uint, size_t, void *, size_t *)
CALLED(clRetainEvent, cl_event)
CALLED(clReleaseEvent, cl_event)
CALLED(clReleaseMemObject, cl_mem)
CALLED(clFlush, cl_command_queue)
CALLED(clEnqueueBarrierWithWaitList, cl_command_queue, cl_uint, const cl_event *, cl_event *)
#undef CALLED

static void *target[N_ENTRIES]; /* what the hooks call: the next layer, or the loader */
#define REAL(name) ((name##_f)target[i_##name])
