/* Queues, kernel launches and transfers. */
#pragma once
#include "memory.h"

enum selection { ALL, NONE, FIRST, EVERY, SPREAD };
static enum selection selection = SPREAD;
static int selection_number = 1;
static atomic_int commands;

static struct queue_object *new_queue(cl_command_queue handle, cl_context c, cl_device_id d, cl_bitfield asked,
                                      int added) {
  struct queue_object *q = handle ? new_object(sizeof *q, QUEUE) : NULL;
  if (!q) return NULL;
  q->context = c, q->device = d, q->properties = asked, q->added = added;
  q->profiling = added || (asked & CL_QUEUE_PROFILING);
  remember(handle, q);
  return q;
}

static cl_command_queue h_clCreateCommandQueue(cl_context c, cl_device_id d, cl_bitfield p, cl_int *e) {
  int add = !(p & CL_QUEUE_PROFILING);
  cl_command_queue made = REAL(clCreateCommandQueue)(c, d, p | CL_QUEUE_PROFILING, e);
  if (!made && add) made = REAL(clCreateCommandQueue)(c, d, p, e), add = 0;
  new_queue(made, c, d, p, add);
  return made;
}

static cl_command_queue h_clCreateCommandQueueWithProperties(cl_context c, cl_device_id d, const cl_ulong *p,
                                                             cl_int *e) {
  cl_ulong given[64] = {0};
  size_t n = 0, length = 0;
  cl_bitfield asked = 0;
  for (const cl_ulong *at = p; at && *at && n < 60; at += 2) {
    length += 2;
    if (*at == CL_QUEUE_PROPERTIES) asked = at[1];
    else given[n++] = at[0], given[n++] = at[1];
  }
  given[n++] = CL_QUEUE_PROPERTIES;
  given[n++] = asked | CL_QUEUE_PROFILING;
  int add = !(asked & (CL_QUEUE_PROFILING | CL_QUEUE_ON_DEVICE)) && length < 60;
  cl_command_queue made = add ? REAL(clCreateCommandQueueWithProperties)(c, d, given, e) : NULL;
  if (!made) made = REAL(clCreateCommandQueueWithProperties)(c, d, p, e), add = 0;
  struct queue_object *q = new_queue(made, c, d, asked, add);
  if (q && p) {
    q->array_size = (length + 1) * sizeof *p;
    q->array = (cl_ulong *)copy_of(p, q->array_size);
  }
  return made;
}

static cl_int answer(const void *value, size_t size, size_t n, void *v, size_t *r) {
  if (v && n < size) return CL_INVALID_VALUE;
  if (v) memcpy(v, value, size);
  if (r) *r = size;
  return CL_SUCCESS;
}

/* The program sees its queues as it made them. */
static cl_int h_clGetCommandQueueInfo(cl_command_queue q, cl_uint i, size_t n, void *v, size_t *r) {
  struct queue_object *queue = find(q, QUEUE);
  if (queue && queue->added && i == CL_QUEUE_PROPERTIES)
    return answer(&queue->properties, sizeof queue->properties, n, v, r);
  if (queue && queue->added && i == CL_QUEUE_PROPERTIES_ARRAY)
    return answer(queue->array, queue->array_size, n, v, r);
  return REAL(clGetCommandQueueInfo)(q, i, n, v, r);
}

static cl_int h_clGetEventProfilingInfo(cl_event e, cl_uint i, size_t n, void *v, size_t *r) {
  cl_command_queue handle = NULL;
  if (!REAL(clGetEventInfo)(e, CL_EVENT_COMMAND_QUEUE, sizeof handle, &handle, NULL) && handle) {
    struct queue_object *queue = find(handle, QUEUE);
    if (queue && queue->added) return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return REAL(clGetEventProfilingInfo)(e, i, n, v, r);
}

/* How often a class of launches was seen before: kernel, sizes, and what its arguments are. */
enum { MOST_CLASSES = 1 << 15 };
static struct {
  u64 key;
  unsigned count;
} classes[MOST_CLASSES];
static pthread_mutex_t class_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned counted(u64 key, unsigned more) {
  unsigned count = 1u << 30; /* of classes too many to tell, none is kept */
  key |= 1;
  pthread_mutex_lock(&class_lock);
  for (unsigned i = (unsigned)(key >> 32), tries = 0; tries < 64; i++, tries++) {
    unsigned at = i % MOST_CLASSES;
    if (!classes[at].key) classes[at].key = key, classes[at].count = 0;
    if (classes[at].key != key) continue;
    count = classes[at].count;
    classes[at].count += more;
    break;
  }
  pthread_mutex_unlock(&class_lock);
  return count;
}

static u64 mix(u64 key, const void *data, size_t size) {
  u64 hash[2];
  hash_of(data, size, hash);
  return fold(key ^ hash[0], 0xA0761D6478BD642Fu) + hash[1];
}

static struct memory_object *memory_in(struct argument *a) {
  return a->value && !a->svm && a->size == sizeof(cl_mem) && (!a->known || a->address != CL_KERNEL_ARG_ADDRESS_PRIVATE)
             ? find(*(void **)a->value, MEMORY)
             : NULL;
}

/* Sizes of a kernel that are kept as they are; of those after them, one for each power of two. */
enum { MOST_SIZES = 8 };

static size_t octave(size_t size) { return size ? 64 - (size_t)__builtin_clzll(size) : 0; }

/* A launch that is to be kept, unless its kernel has some already and this takes half of what is left for all. */
static int is_affordable(struct kernel_object *k, u64 kernel) {
  size_t needed = 0;
  for (cl_uint i = 0; i < k->count; i++) {
    struct memory_object *m = memory_in(&k->arguments[i]);
    if (m && m->kept_version != root_of(m)->version + 1) needed += m->size;
  }
  int64_t left = __atomic_load_n(&bytes_left, __ATOMIC_RELAXED);
  u64 key = mix(kernel, "kept", 4);
  if (counted(key, 0) && (int64_t)needed > left / 2) return 0;
  counted(key, 1);
  return 1;
}

static int is_selected(struct kernel_object *k, u64 kernel, cl_uint dims, const size_t *global,
                       const size_t *local) {
  u64 family = mix(kernel, &dims, sizeof dims);
  if (local) family = mix(family, local, dims * sizeof *local);
  size_t octaves[3] = {0}, items = 1;
  u64 key = mix(family, global, dims * sizeof *global);
  for (cl_uint i = 0; i < dims; i++) items *= global[i];
  octaves[0] = octave(items);
  u64 coarse = mix(family, octaves, sizeof octaves);
  for (cl_uint i = 0; i < k->count; i++) {
    struct memory_object *m = memory_in(&k->arguments[i]);
    size_t size = m ? m->size : k->arguments[i].size, rough = octave(size);
    key = mix(key, &size, sizeof size);
    coarse = mix(coarse, &rough, sizeof rough);
  }
  unsigned seen = counted(key, 1);
  if (selection == SPREAD) {
    /* Launches that grow or shrink, as those of a factorization, would each be a class of its own. */
    u64 beyond = mix(key, "beyond", 6);
    if (!seen && counted(family, 1) >= MOST_SIZES) counted(beyond, 1);
    if (counted(beyond, 0)) return !seen && !counted(coarse, 1);
    counted(coarse, 1);
  }
  if (selection == FIRST) return seen < (unsigned)selection_number;
  if (selection == EVERY) return seen % (unsigned)selection_number == 0;
  return (seen & (seen - 1)) == 0; /* the 1st, 2nd, 3rd, 5th, 9th ... */
}

static int is_chosen(struct kernel_object *k, cl_uint dims, const size_t *global, const size_t *local) {
  if (selection == ALL) return 1;
  if (selection == NONE) return 0;
  u64 kernel = mix((u64)(k->program ? k->program->is.id + 1 : 0), k->name, strlen(k->name));
  return is_selected(k, kernel, dims, global, local) && is_affordable(k, kernel);
}

/* An argument: a memory object is its number, a value its bytes, `null` a null pointer, `false` never set;
 * [size] local memory, ["s", id] a sampler, ["v", id, offset, size] shared virtual memory, ["u"] unknown. */
static void put_argument(struct text *s, struct argument *a) {
  if (!a->set) {
    put(s, "false");
  } else if (a->svm) {
    struct svm *v = a->value ? svm_of(a->value) : NULL;
    if (!v) {
      put(s, a->value ? "[\"u\"]" : "null");
      return;
    }
    put(s, "[\"v\"");
    put_next(s, v->id);
    put_next(s, (char *)a->value - v->at);
    put_next(s, N(v->size));
    put(s, "]");
  } else if (!a->value) {
    put(s, "[");
    put_number(s, N(a->size));
    put(s, "]");
  } else {
    struct memory_object *m = memory_in(a);
    struct sampler_object *p = !m && a->size == sizeof(cl_sampler) ? find(*(void **)a->value, SAMPLER) : NULL;
    if (m) {
      put_number(s, m->is.id);
    } else if (p) {
      put(s, "[\"s\"");
      put_next(s, p->is.id);
      put(s, "]");
    } else {
      put_hex(s, a->value, a->size);
    }
  }
}

static void tell_arguments(struct kernel_object *k) {
  for (cl_uint i = 0; i < k->count; i++) {
    struct argument *a = &k->arguments[i];
    struct memory_object *m = memory_in(a);
    if (m && root_of(m) != m) tell_memory(root_of(m));
    if (m) tell_memory(m);
    else if (a->value && !a->svm && a->size == sizeof(cl_sampler)) {
      struct sampler_object *p = find(*(void **)a->value, SAMPLER);
      if (p) tell_sampler(p);
    }
  }
}

static void copy_arguments(struct text *s, struct kernel_object *k, cl_command_queue q, cl_uint waits,
                           const cl_event *wait, int outputs, struct copies *copies) {
  for (cl_uint i = 0; i < k->count; i++) {
    struct argument *a = &k->arguments[i];
    struct memory_object *m = memory_in(a);
    struct svm *v = a->svm && a->value ? svm_of(a->value) : NULL;
    int id = NEVER_WRITTEN;
    if (m && !(outputs && (a->read_only || (m->flags & CL_MEM_READ_ONLY))))
      id = copy_memory(q, *(cl_mem *)a->value, m, waits, wait, copies);
    if (v) id = take_copy(q, NULL, NULL, v, waits, wait, copies);
    if (i) put(s, ",");
    put_number(s, id);
  }
}

static cl_int enqueue(cl_command_queue q, cl_kernel k, cl_uint d, const size_t *o, const size_t *g, const size_t *l,
                      int task, WAITS) {
  return task ? REAL(clEnqueueTask)(q, k, waits, wait, event)
              : REAL(clEnqueueNDRangeKernel)(q, k, d, o, g, l, waits, wait, event);
}

static cl_int launch(cl_command_queue q, cl_kernel handle, cl_uint d, const size_t *o, const size_t *g,
                     const size_t *l, int task, WAITS) {
  struct kernel_object *k = find(handle, KERNEL);
  struct queue_object *queue = find(q, QUEUE);
  if (!k || !queue || d < 1 || d > 3 || !g) return enqueue(q, handle, d, o, g, l, task, waits, wait, event);
  int on = enabled;
  u64 begun = now_ns();
  int chosen = 0, again = 0;
  struct copies before = {0};
  struct text s;
  int64_t number = 0;
  if (on) {
    number = commands++;
    chosen = is_chosen(k, d, g, l);
    again = !k->changed && k->reuse == reuses && k->is.told == session;
    tell_queue(queue);
    tell_kernel(k);
    if (!again) tell_arguments(k);
    begin_record(&s, "l", 5, number, N(k->is.id), N(queue->is.id), N(syscall(SYS_gettid)), N(begun));
    put_numbers(&s, d, g);
    put_numbers(&s, l ? d : 0, l);
    put_numbers(&s, o ? d : 0, o);
    put(&s, again ? ",0" : ",[");
    for (cl_uint i = 0; !again && i < k->count; i++) {
      if (i) put(&s, ",");
      put_argument(&s, &k->arguments[i]);
    }
    if (!again) put(&s, "]");
    k->changed = 0;
    k->reuse = reuses;
    put(&s, ",[");
    if (chosen) copy_arguments(&s, k, q, waits, wait, 0, &before);
    put(&s, "]");
  }
  /* In a queue out of order only the wait list keeps the kernel behind the copies. */
  cl_event *list = NULL;
  const cl_event *first = wait;
  cl_uint count = waits;
  if (before.count && (queue->properties & CL_QUEUE_OUT_OF_ORDER) &&
      (list = malloc((waits + before.count) * sizeof *list))) {
    if (waits) memcpy(list, wait, waits * sizeof *list);
    memcpy(list + waits, before.events, before.count * sizeof *list);
    first = list, count = waits + before.count;
  }
  cl_event own = NULL, *out = event ? event : on && (queue->profiling || chosen) ? &own : NULL;
  u64 called = now_ns();
  cl_int result = enqueue(q, handle, d, o, g, l, task, count, first, out);
  u64 back = now_ns();
  free(list);
  for (cl_uint i = 0; i < before.count; i++) REAL(clReleaseEvent)(before.events[i]);
  for (cl_uint i = 0; !result && i < k->count; i++) {
    struct memory_object *m = memory_in(&k->arguments[i]);
    if (m && !k->arguments[i].read_only && !(m->flags & CL_MEM_READ_ONLY)) wrote(*(cl_mem *)k->arguments[i].value);
  }
  if (!on) return result;
  put(&s, ",[");
  if (!result && chosen && want_outputs && out) {
    struct copies after = {0};
    copy_arguments(&s, k, q, 1, out, 1, &after);
    /* What the program enqueues next waits for the kernel at most: let it wait for the copies, too. */
    if ((queue->properties & CL_QUEUE_OUT_OF_ORDER) && after.count)
      REAL(clEnqueueBarrierWithWaitList)(q, after.count, after.events, NULL);
    for (cl_uint i = 0; i < after.count; i++) REAL(clReleaseEvent)(after.events[i]);
  }
  put(&s, "]");
  put_next(&s, N(called - begun));
  put_next(&s, N(back - called));
  put_next(&s, result);
  end_record(&s);
  if (result || !out) return result;
  if (event) REAL(clRetainEvent)(*event);
  if (queue->profiling) watch(*out, number, NULL, 0);
  else REAL(clReleaseEvent)(*out);
  return result;
}

static cl_int h_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint d, const size_t *o,
                                       const size_t *g, const size_t *l, WAITS) {
  return launch(q, k, d, o, g, l, 0, waits, wait, event);
}

static cl_int h_clEnqueueTask(cl_command_queue q, cl_kernel k, WAITS) {
  static const size_t one = 1;
  return launch(q, k, 1, NULL, &one, &one, 1, waits, wait, event);
}

/* A transfer, from its begin to its end; `CALL` wraps the real one. */
struct transfer {
  const char *name;
  cl_command_queue queue;
  size_t bytes;
  int blocking;
  cl_mem from, to;
  u64 begun;
  cl_event own, *event, *out;
};

static struct transfer begin_transfer(const char *name, cl_command_queue q, size_t bytes, int blocking, cl_mem from,
                                      cl_mem to, cl_event *event, cl_event *own) {
  struct queue_object *queue = enabled ? find(q, QUEUE) : NULL;
  *own = NULL;
  return (struct transfer){name, q, bytes, blocking, from, to, now_ns(), NULL, event,
                           event ? event : queue && queue->profiling ? own : NULL};
}

static cl_int end_transfer(struct transfer *t, cl_int result) {
  if (result) return result;
  wrote(t->to);
  struct queue_object *queue = enabled ? find(t->queue, QUEUE) : NULL;
  if (!queue) {
    if (t->out && !t->event) REAL(clReleaseEvent)(*t->out);
    return result;
  }
  int64_t number = commands++;
  tell_queue(queue);
  struct text s;
  begin_record(&s, "o", 6, number, N(queue->is.id), N(t->bytes), N(t->blocking), N(t->begun),
               N(now_ns() - t->begun));
  put_next_quoted(&s, t->name);
  end_record(&s);
  if (!t->out) return result;
  if (t->event) REAL(clRetainEvent)(*t->out);
  if (queue->profiling) watch(*t->out, number, NULL, 0);
  else REAL(clReleaseEvent)(*t->out);
  return result;
}

static size_t volume(const size_t *r) { return r[0] * r[1] * r[2]; }

static size_t texel(cl_mem m) {
  struct memory_object *image = find(m, MEMORY);
  return image ? image->element : 0;
}

#define TRANSFER(name, bytes, blocking, from, to, call)                                             \
  cl_event own;                                                                                     \
  struct transfer t = begin_transfer(name, q, bytes, (int)(blocking), from, to, event, &own);       \
  return end_transfer(&t, call)

static cl_int h_clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n, void *h, WAITS) {
  TRANSFER("read", n, b, m, NULL, REAL(clEnqueueReadBuffer)(q, m, b, o, n, h, waits, wait, t.out));
}
static cl_int h_clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t n, const void *h,
                                     WAITS) {
  TRANSFER("write", n, b, NULL, m, REAL(clEnqueueWriteBuffer)(q, m, b, o, n, h, waits, wait, t.out));
}
static cl_int h_clEnqueueCopyBuffer(cl_command_queue q, cl_mem s, cl_mem d, size_t so, size_t o, size_t n, WAITS) {
  TRANSFER("copy", n, 0, s, d, REAL(clEnqueueCopyBuffer)(q, s, d, so, o, n, waits, wait, t.out));
}
static cl_int h_clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *p, size_t pn, size_t o, size_t n,
                                    WAITS) {
  TRANSFER("fill", n, 0, NULL, m, REAL(clEnqueueFillBuffer)(q, m, p, pn, o, n, waits, wait, t.out));
}
static cl_int h_clEnqueueReadBufferRect(cl_command_queue q, cl_mem m, cl_bool b, const size_t *bo, const size_t *ho,
                                        const size_t *r, size_t br, size_t bs, size_t hr, size_t hs, void *h, WAITS) {
  TRANSFER("read", volume(r), b, m, NULL,
           REAL(clEnqueueReadBufferRect)(q, m, b, bo, ho, r, br, bs, hr, hs, h, waits, wait, t.out));
}
static cl_int h_clEnqueueWriteBufferRect(cl_command_queue q, cl_mem m, cl_bool b, const size_t *bo,
                                         const size_t *ho, const size_t *r, size_t br, size_t bs, size_t hr,
                                         size_t hs, const void *h, WAITS) {
  TRANSFER("write", volume(r), b, NULL, m,
           REAL(clEnqueueWriteBufferRect)(q, m, b, bo, ho, r, br, bs, hr, hs, h, waits, wait, t.out));
}
static cl_int h_clEnqueueCopyBufferRect(cl_command_queue q, cl_mem s, cl_mem d, const size_t *so, const size_t *o,
                                        const size_t *r, size_t sr, size_t ss, size_t dr, size_t ds, WAITS) {
  TRANSFER("copy", volume(r), 0, s, d,
           REAL(clEnqueueCopyBufferRect)(q, s, d, so, o, r, sr, ss, dr, ds, waits, wait, t.out));
}
static cl_int h_clEnqueueReadImage(cl_command_queue q, cl_mem m, cl_bool b, const size_t *o, const size_t *r,
                                   size_t rp, size_t sp, void *h, WAITS) {
  TRANSFER("read", volume(r) * texel(m), b, m, NULL,
           REAL(clEnqueueReadImage)(q, m, b, o, r, rp, sp, h, waits, wait, t.out));
}
static cl_int h_clEnqueueWriteImage(cl_command_queue q, cl_mem m, cl_bool b, const size_t *o, const size_t *r,
                                    size_t rp, size_t sp, const void *h, WAITS) {
  TRANSFER("write", volume(r) * texel(m), b, NULL, m,
           REAL(clEnqueueWriteImage)(q, m, b, o, r, rp, sp, h, waits, wait, t.out));
}
static cl_int h_clEnqueueCopyImage(cl_command_queue q, cl_mem s, cl_mem d, const size_t *so, const size_t *o,
                                   const size_t *r, WAITS) {
  TRANSFER("copy", volume(r) * texel(s), 0, s, d, REAL(clEnqueueCopyImage)(q, s, d, so, o, r, waits, wait, t.out));
}
static cl_int h_clEnqueueCopyImageToBuffer(cl_command_queue q, cl_mem s, cl_mem d, const size_t *so,
                                           const size_t *r, size_t o, WAITS) {
  TRANSFER("copy", volume(r) * texel(s), 0, s, d,
           REAL(clEnqueueCopyImageToBuffer)(q, s, d, so, r, o, waits, wait, t.out));
}
static cl_int h_clEnqueueCopyBufferToImage(cl_command_queue q, cl_mem s, cl_mem d, size_t so, const size_t *o,
                                           const size_t *r, WAITS) {
  TRANSFER("copy", volume(r) * texel(d), 0, s, d,
           REAL(clEnqueueCopyBufferToImage)(q, s, d, so, o, r, waits, wait, t.out));
}
static cl_int h_clEnqueueFillImage(cl_command_queue q, cl_mem m, const void *p, const size_t *o, const size_t *r,
                                   WAITS) {
  TRANSFER("fill", volume(r) * texel(m), 0, NULL, m, REAL(clEnqueueFillImage)(q, m, p, o, r, waits, wait, t.out));
}
static cl_int h_clEnqueueNativeKernel(cl_command_queue q, void (*f)(void *), void *a, size_t n, cl_uint nm,
                                      const cl_mem *m, const void **at, WAITS) {
  for (cl_uint i = 0; i < nm; i++) wrote(m[i]);
  TRANSFER("native kernel", 0, 0, NULL, NULL,
           REAL(clEnqueueNativeKernel)(q, f, a, n, nm, m, at, waits, wait, t.out));
}
static const char *mapping(cl_bitfield f) {
  return !(f & CL_MAP_WRITES) ? "map to read" : f & CL_MAP_READ ? "map to read and write" : "map to write";
}
static void *h_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool b, cl_bitfield f, size_t o, size_t n, WAITS,
                                  cl_int *e) {
  cl_event own;
  cl_int result = 0;
  struct transfer t = begin_transfer(mapping(f), q, n, (int)b, m, f & CL_MAP_WRITES ? m : NULL, event, &own);
  void *at = REAL(clEnqueueMapBuffer)(q, m, b, f, o, n, waits, wait, t.out, &result);
  if (e) *e = result;
  end_transfer(&t, result);
  return at;
}
static void *h_clEnqueueMapImage(cl_command_queue q, cl_mem m, cl_bool b, cl_bitfield f, const size_t *o,
                                 const size_t *r, size_t *rp, size_t *sp, WAITS, cl_int *e) {
  cl_event own;
  cl_int result = 0;
  struct transfer t =
      begin_transfer(mapping(f), q, volume(r) * texel(m), (int)b, m, f & CL_MAP_WRITES ? m : NULL, event, &own);
  void *at = REAL(clEnqueueMapImage)(q, m, b, f, o, r, rp, sp, waits, wait, t.out, &result);
  if (e) *e = result;
  end_transfer(&t, result);
  return at;
}
static cl_int h_clEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *p, WAITS) {
  /* Whether it was written is not known: reading it again costs less than a wrong input. */
  TRANSFER("unmap", 0, 0, NULL, m, REAL(clEnqueueUnmapMemObject)(q, m, p, waits, wait, t.out));
}
static cl_int h_clEnqueueSVMMemcpy(cl_command_queue q, cl_bool b, void *d, const void *s, size_t n, WAITS) {
  const char *name = !svm_of(d) ? "read" : svm_of(s) ? "copy" : "write";
  TRANSFER(name, n, b, NULL, NULL, REAL(clEnqueueSVMMemcpy)(q, b, d, s, n, waits, wait, t.out));
}
static cl_int h_clEnqueueSVMMemFill(cl_command_queue q, void *d, const void *p, size_t pn, size_t n, WAITS) {
  TRANSFER("fill", n, 0, NULL, NULL, REAL(clEnqueueSVMMemFill)(q, d, p, pn, n, waits, wait, t.out));
}
static cl_int h_clEnqueueSVMMap(cl_command_queue q, cl_bool b, cl_bitfield f, void *p, size_t n, WAITS) {
  TRANSFER(mapping(f), n, b, NULL, NULL, REAL(clEnqueueSVMMap)(q, b, f, p, n, waits, wait, t.out));
}
static void *h_clGetExtensionFunctionAddress(const char *n) {
  if (enabled) note("extension function", n);
  return REAL(clGetExtensionFunctionAddress)(n);
}
static void *h_clGetExtensionFunctionAddressForPlatform(cl_platform_id p, const char *n) {
  if (enabled) note("extension function", n);
  return REAL(clGetExtensionFunctionAddressForPlatform)(p, n);
}
