/* What is known of the program's objects, by their handles.
 *
 * An object is written into the trace when a command first uses it: a recording that begins late has all it
 * needs, and one without launches is small. Drivers use handles again, so that the table does not grow with
 * what the program has released. */
#pragma once
#include "hooks.h"
#include "trace.h"

enum kind { MEMORY = 1, KERNEL, PROGRAM, QUEUE, SAMPLER };

struct object {
  enum kind kind;
  int id, told; /* told: number of the recording that has it */
};

struct memory_object {
  struct object is;
  cl_context context;
  size_t size, origin; /* origin: of a sub-buffer within its root */
  cl_bitfield flags;
  int root;            /* id of the buffer that a sub-buffer is of; its own otherwise */
  cl_mem root_handle;
  cl_uint image, order, channel; /* type of an image, or 0 */
  size_t width, height, depth, layers, element;
  u64 version;      /* of a root: grows when something may have been written; 0 if nothing ever was */
  u64 kept_version; /* version that snapshot `kept` has, plus 1 */
  int kept, kept_session;
};

struct program_object {
  struct object is;
  const char *form, *suffix;
  char *content; /* until it is written */
  size_t size;
  char *parts, *build; /* JSON: the programs it is linked from; how it was built */
  struct program_object *origin; /* of a binary: the program that it was read from */
};

struct argument {
  unsigned char set, svm, known, read_only;
  cl_uint address;
  size_t size;
  void *value; /* null: local memory; for SVM the pointer itself */
};

struct kernel_object {
  struct object is;
  struct program_object *program;
  char *name;
  int indirect, changed; /* changed: an argument, since the last launch that was written */
  int reuse;             /* `reuses` when the arguments were last written */
  cl_uint count;
  struct argument *arguments;
};

struct queue_object {
  struct object is;
  cl_device_id device;
  cl_context context;
  cl_bitfield properties; /* as the program asked */
  cl_ulong *array;        /* the same as the array that it gave, with its zero */
  size_t array_size;
  int profiling, added;   /* added: the program did not ask for profiling */
};

struct sampler_object {
  struct object is;
  cl_uint normalized, addressing, filter;
};

struct entry {
  void *handle;
  struct object *object;
  struct entry *next;
};
static struct entry *table[4096];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ids[SAMPLER + 2];
static atomic_int reuses; /* how often a handle came to mean another object: equal arguments may differ then */

static unsigned place_of(const void *handle) {
  return (unsigned)(((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15u >> 52);
}

static void *find(const void *handle, enum kind kind) {
  void *found = NULL;
  pthread_mutex_lock(&table_lock);
  for (struct entry *e = table[place_of(handle)]; e; e = e->next)
    if (e->handle == handle) {
      found = e->object->kind == kind ? e->object : NULL;
      break;
    }
  pthread_mutex_unlock(&table_lock);
  return found;
}

/* Programs stay: kernels know theirs by its address, and outlive it in OpenCL too. */
static void forget(struct object *old) {
  if (old->kind == PROGRAM) return;
  if (old->kind == KERNEL) {
    struct kernel_object *kernel = (struct kernel_object *)old;
    for (cl_uint i = 0; i < kernel->count; i++)
      if (!kernel->arguments[i].svm) free(kernel->arguments[i].value);
    free(kernel->arguments);
    free(kernel->name);
  }
  if (old->kind == QUEUE) free(((struct queue_object *)old)->array);
  free(old);
}

static void *new_object(size_t size, enum kind kind) {
  struct object *made = calloc(1, size);
  if (made) made->kind = kind, made->id = ids[kind]++;
  return made;
}

static void remember(void *handle, void *object) {
  pthread_mutex_lock(&table_lock);
  struct entry *e = table[place_of(handle)];
  while (e && e->handle != handle) e = e->next;
  if (e) {
    forget(e->object);
    e->object = object;
    reuses++;
  } else if ((e = calloc(1, sizeof *e))) {
    *e = (struct entry){handle, object, table[place_of(handle)]};
    table[place_of(handle)] = e;
  }
  pthread_mutex_unlock(&table_lock);
}

/* Whether this recording has to be told of the object; it is from now on. */
static int untold(struct object *object) {
  return __atomic_exchange_n(&object->told, session, __ATOMIC_RELAXED) != session;
}

struct svm {
  char *at;
  size_t size;
  int id;
  struct svm *next;
};
static struct svm *svms;

static struct svm *svm_of(const void *pointer) {
  pthread_mutex_lock(&table_lock);
  struct svm *s = svms;
  while (s && !((const char *)pointer >= s->at && (const char *)pointer < s->at + s->size)) s = s->next;
  pthread_mutex_unlock(&table_lock);
  return s;
}

static void tell_memory(struct memory_object *m) {
  if (!untold(&m->is)) return;
  struct text s;
  begin_record(&s, "m", 5, N(m->is.id), N(m->size), N(m->flags), N(m->root), N(m->origin));
  if (m->image) {
    size_t facts[] = {m->image, m->order, m->channel, m->width, m->height, m->depth, m->layers, m->element};
    put_numbers(&s, sizeof facts / sizeof *facts, facts);
  }
  end_record(&s);
}

static void tell_program(struct program_object *p) {
  if (!untold(&p->is)) return;
  if (p->origin) tell_program(p->origin);
  char name[80] = "";
  if (p->content) {
    u64 hash[2];
    hash_of(p->content, p->size, hash);
    snprintf(name, sizeof name, "programs/%016llx%016llx%s", (unsigned long long)hash[0],
             (unsigned long long)hash[1], p->suffix);
    if (save(name, p->content, p->size) < 0) name[0] = 0;
  }
  struct text s;
  begin_record(&s, "p", 1, N(p->is.id));
  put_next_quoted(&s, p->form);
  put_next_quoted(&s, name);
  put(&s, ",");
  put(&s, p->parts ? p->parts : "[]");
  put(&s, ",");
  put(&s, p->build ? p->build : "null");
  end_record(&s);
}

static void tell_kernel(struct kernel_object *k) {
  if (!untold(&k->is)) return;
  if (k->program) tell_program(k->program);
  struct text s;
  begin_record(&s, "k", 2, N(k->is.id), N(k->program ? k->program->is.id : -1));
  put_next_quoted(&s, k->name);
  put_next(&s, k->indirect);
  end_record(&s);
}

static void device_text(cl_device_id device, cl_uint what, struct text *s) {
  char value[512] = "";
  REAL(clGetDeviceInfo)(device, what, sizeof value, value, NULL);
  value[sizeof value - 1] = 0;
  put_next_quoted(s, value);
}

static void tell_queue(struct queue_object *q) {
  if (!untold(&q->is)) return;
  struct text s;
  cl_bitfield type = 0;
  REAL(clGetDeviceInfo)(q->device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  begin_record(&s, "q", 4, N(q->is.id), N(q->properties), N(q->profiling), N(type));
  device_text(q->device, CL_DEVICE_NAME, &s);
  device_text(q->device, CL_DEVICE_VENDOR, &s);
  device_text(q->device, CL_DRIVER_VERSION, &s);
  device_text(q->device, CL_DEVICE_VERSION, &s);
  end_record(&s);
}

static void tell_sampler(struct sampler_object *p) {
  if (!untold(&p->is)) return;
  struct text s;
  begin_record(&s, "s", 4, N(p->is.id), N(p->normalized), N(p->addressing), N(p->filter));
  end_record(&s);
}
