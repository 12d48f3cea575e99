/* Buffers, images, samplers and shared virtual memory, and copies of what they hold. */
#pragma once
#include "programs.h"
#include "watching.h"

static int want_outputs;

static struct memory_object *new_memory(cl_mem handle, cl_context context, size_t size, cl_bitfield flags,
                                        const void *host) {
  struct memory_object *m = handle ? new_object(sizeof *m, MEMORY) : NULL;
  if (!m) return NULL;
  m->size = size, m->flags = flags, m->context = context;
  m->root = m->is.id, m->root_handle = handle;
  m->version = host != NULL;
  remember(handle, m);
  return m;
}

static struct memory_object *root_of(struct memory_object *m) {
  if (!m || m->root == m->is.id) return m;
  struct memory_object *root = find(m->root_handle, MEMORY);
  return root && root->is.id == m->root ? root : m;
}

static void wrote(cl_mem handle) {
  struct memory_object *root = handle ? root_of(find(handle, MEMORY)) : NULL;
  if (root) __atomic_add_fetch(&root->version, 1, __ATOMIC_RELAXED);
}

static cl_mem h_clCreateBuffer(cl_context c, cl_bitfield f, size_t n, void *h, cl_int *e) {
  cl_mem made = REAL(clCreateBuffer)(c, f, n, h, e);
  new_memory(made, c, n, f, h);
  return made;
}

static cl_mem h_clCreateBufferWithProperties(cl_context c, const cl_ulong *p, cl_bitfield f, size_t n, void *h,
                                             cl_int *e) {
  cl_mem made = REAL(clCreateBufferWithProperties)(c, p, f, n, h, e);
  new_memory(made, c, n, f, h);
  return made;
}

static cl_mem h_clCreateSubBuffer(cl_mem parent, cl_bitfield f, cl_uint t, const void *i, cl_int *e) {
  cl_mem made = REAL(clCreateSubBuffer)(parent, f, t, i, e);
  struct memory_object *of = find(parent, MEMORY);
  if (!made || !of) return made;
  const cl_buffer_region *region = i;
  struct memory_object *m = new_memory(made, of->context, region->size, f ? f : of->flags, NULL);
  if (m) m->root = of->root, m->root_handle = of->root_handle, m->origin = of->origin + region->origin;
  return made;
}

static void new_image(cl_mem handle, cl_context context, cl_bitfield flags, const void *host,
                      const cl_image_desc *d, const cl_image_format *format) {
  struct memory_object *m = new_memory(handle, context, 0, flags, host);
  if (!m) return;
  m->image = d->image_type, m->order = format->order, m->channel = format->type;
  REAL(clGetImageInfo)(handle, CL_IMAGE_ELEMENT_SIZE, sizeof m->element, &m->element, NULL);
  REAL(clGetImageInfo)(handle, CL_IMAGE_WIDTH, sizeof m->width, &m->width, NULL);
  REAL(clGetImageInfo)(handle, CL_IMAGE_HEIGHT, sizeof m->height, &m->height, NULL);
  REAL(clGetImageInfo)(handle, CL_IMAGE_DEPTH, sizeof m->depth, &m->depth, NULL);
  if (m->image == CL_MEM_OBJECT_IMAGE1D_ARRAY || m->image == CL_MEM_OBJECT_IMAGE2D_ARRAY) m->layers = d->array_size;
  size_t extents[] = {m->width, m->height, m->depth, m->layers};
  m->size = m->element;
  for (int i = 0; i < 4; i++) m->size *= extents[i] ? extents[i] : 1;
  struct memory_object *of = d->mem_object ? find(d->mem_object, MEMORY) : NULL;
  if (of) m->root = of->root, m->root_handle = of->root_handle, m->origin = of->origin;
}

static cl_mem h_clCreateImage(cl_context c, cl_bitfield f, const cl_image_format *t, const cl_image_desc *d,
                              void *h, cl_int *e) {
  cl_mem made = REAL(clCreateImage)(c, f, t, d, h, e);
  new_image(made, c, f, h, d, t);
  return made;
}

static cl_mem h_clCreateImageWithProperties(cl_context c, const cl_ulong *p, cl_bitfield f,
                                            const cl_image_format *t, const cl_image_desc *d, void *h, cl_int *e) {
  cl_mem made = REAL(clCreateImageWithProperties)(c, p, f, t, d, h, e);
  new_image(made, c, f, h, d, t);
  return made;
}

static cl_mem h_clCreateImage2D(cl_context c, cl_bitfield f, const cl_image_format *t, size_t x, size_t y,
                                size_t r, void *h, cl_int *e) {
  cl_mem made = REAL(clCreateImage2D)(c, f, t, x, y, r, h, e);
  new_image(made, c, f, h, &(cl_image_desc){.image_type = CL_MEM_OBJECT_IMAGE2D}, t);
  return made;
}

static cl_mem h_clCreateImage3D(cl_context c, cl_bitfield f, const cl_image_format *t, size_t x, size_t y,
                                size_t z, size_t r, size_t s, void *h, cl_int *e) {
  cl_mem made = REAL(clCreateImage3D)(c, f, t, x, y, z, r, s, h, e);
  new_image(made, c, f, h, &(cl_image_desc){.image_type = CL_MEM_OBJECT_IMAGE3D}, t);
  return made;
}

static void new_sampler(cl_sampler handle, cl_uint normalized, cl_uint addressing, cl_uint filter) {
  struct sampler_object *p = handle ? new_object(sizeof *p, SAMPLER) : NULL;
  if (!p) return;
  p->normalized = normalized, p->addressing = addressing, p->filter = filter;
  remember(handle, p);
}

static cl_sampler h_clCreateSampler(cl_context c, cl_bool n, cl_uint a, cl_uint f, cl_int *e) {
  cl_sampler made = REAL(clCreateSampler)(c, n, a, f, e);
  new_sampler(made, n, a, f);
  return made;
}

static cl_sampler h_clCreateSamplerWithProperties(cl_context c, const cl_ulong *p, cl_int *e) {
  cl_sampler made = REAL(clCreateSamplerWithProperties)(c, p, e);
  cl_uint normalized = 1, addressing = CL_ADDRESS_CLAMP, filter = CL_FILTER_NEAREST;
  for (; p && *p; p += 2) {
    if (*p == CL_SAMPLER_NORMALIZED_COORDS) normalized = (cl_uint)p[1];
    if (*p == CL_SAMPLER_ADDRESSING_MODE) addressing = (cl_uint)p[1];
    if (*p == CL_SAMPLER_FILTER_MODE) filter = (cl_uint)p[1];
  }
  new_sampler(made, normalized, addressing, filter);
  return made;
}

static void *h_clSVMAlloc(cl_context c, cl_bitfield f, size_t n, cl_uint a) {
  void *made = REAL(clSVMAlloc)(c, f, n, a);
  struct svm *s = made ? malloc(sizeof *s) : NULL;
  if (!s) return made;
  pthread_mutex_lock(&table_lock);
  *s = (struct svm){made, n, ids[SAMPLER + 1]++, svms};
  svms = s;
  pthread_mutex_unlock(&table_lock);
  return made;
}

static void h_clSVMFree(cl_context c, void *p) {
  struct svm *gone = NULL;
  pthread_mutex_lock(&table_lock);
  for (struct svm **s = &svms; *s; s = &(*s)->next)
    if ((*s)->at == p) {
      gone = *s;
      *s = gone->next;
      break;
    }
  pthread_mutex_unlock(&table_lock);
  free(gone);
  REAL(clSVMFree)(c, p);
}

/* Copies of memory. What they give is the number of a snapshot, or why there is none. */
enum { NEVER_WRITTEN = -1, OVER_LIMIT = -2, REFUSED = -3 };
static atomic_int snapshots;
static int64_t time_left_ns;

struct copies {
  cl_uint count;
  cl_event events[64];
};

static cl_int read_memory(cl_command_queue q, cl_mem handle, struct memory_object *m, void *host, cl_uint waits,
                          const cl_event *wait, cl_event *event) {
  if (m->image) {
    size_t origin[3] = {0}, region[3] = {m->width, m->height ? m->height : 1, m->depth ? m->depth : 1};
    if (m->image == CL_MEM_OBJECT_IMAGE1D_ARRAY) region[1] = m->layers;
    if (m->image == CL_MEM_OBJECT_IMAGE2D_ARRAY) region[2] = m->layers;
    return REAL(clEnqueueReadImage)(q, handle, 0, origin, region, 0, 0, host, waits, wait, event);
  }
  cl_int error = REAL(clEnqueueReadBuffer)(q, handle, 0, 0, m->size, host, waits, wait, event);
  if (error != CL_INVALID_OPERATION) return error;
  /* The program promised that the host does not read it: read a copy. */
  cl_mem copy = REAL(clCreateBuffer)(m->context, CL_MEM_READ_WRITE, m->size, NULL, &error);
  if (!copy) return error;
  cl_event copied;
  error = REAL(clEnqueueCopyBuffer)(q, handle, copy, 0, 0, m->size, waits, wait, &copied);
  if (!error) {
    error = REAL(clEnqueueReadBuffer)(q, copy, 0, 0, m->size, host, 1, &copied, event);
    REAL(clReleaseEvent)(copied);
  }
  REAL(clReleaseMemObject)(copy);
  return error;
}

/* A snapshot of an object's memory, or with `s` of shared virtual memory. */
static int take_copy(cl_command_queue q, cl_mem handle, struct memory_object *m, struct svm *s, cl_uint waits,
                     const cl_event *wait, struct copies *copies) {
  size_t size = s ? s->size : m->size;
  if (__atomic_load_n(&bytes_left, __ATOMIC_RELAXED) < (int64_t)size || copies->count == 64 ||
      __atomic_load_n(&time_left_ns, __ATOMIC_RELAXED) <= 0)
    return OVER_LIMIT;
  u64 begun = now_ns();
  int id = OVER_LIMIT;
  if (make_room(q, size)) {
    void *host = malloc(size ? size : 1);
    cl_event event;
    cl_int error = !host ? -1
                   : s   ? REAL(clEnqueueSVMMemcpy)(q, 0, host, s->at, size, waits, wait, &event)
                         : read_memory(q, handle, m, host, waits, wait, &event);
    if (error) {
      free(host);
      leave_room(size);
      id = REFUSED;
    } else {
      id = snapshots++;
      __atomic_sub_fetch(&bytes_left, (int64_t)size, __ATOMIC_RELAXED);
      REAL(clRetainEvent)(event);
      copies->events[copies->count++] = event;
      watch(event, id, host, size);
    }
  }
  __atomic_sub_fetch(&time_left_ns, (int64_t)(now_ns() - begun), __ATOMIC_RELAXED);
  return id;
}

static int copy_memory(cl_command_queue q, cl_mem handle, struct memory_object *m, cl_uint waits,
                       const cl_event *wait, struct copies *copies) {
  struct memory_object *root = root_of(m);
  if (root->flags & CL_MEM_USE_HOST_PTR) root->version++; /* the host may have written it behind OpenCL's back */
  u64 version = root->version;
  if (!version && !want_outputs) return NEVER_WRITTEN; /* what it holds means nothing */
  if (m->kept_version == version + 1 && m->kept_session == session) return m->kept;
  int id = take_copy(q, handle, m, NULL, waits, wait, copies);
  if (id >= 0) m->kept = id, m->kept_version = version + 1, m->kept_session = session;
  return id;
}
