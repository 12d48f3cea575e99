/* Programs, kernels and their arguments. */
#pragma once
#include "objects.h"

static char *copy_of(const void *bytes, size_t size) {
  char *copy = malloc(size + 1);
  if (copy) memcpy(copy, bytes, size), copy[size] = 0;
  return copy;
}

static struct program_object *new_program(cl_program handle, const char *form, const char *suffix) {
  struct program_object *p = new_object(sizeof *p, PROGRAM);
  if (!p) return NULL;
  p->form = form, p->suffix = suffix;
  remember(handle, p);
  return p;
}

static cl_program h_clCreateProgramWithSource(cl_context c, cl_uint n, const char **s, const size_t *l,
                                              cl_int *e) {
  cl_program made = REAL(clCreateProgramWithSource)(c, n, s, l, e);
  struct program_object *p = made ? new_program(made, "source", ".cl") : NULL;
  if (!p) return made;
  struct text all;
  begin_text(&all);
  for (cl_uint i = 0; i < n; i++) put_bytes(&all, s[i], l && l[i] ? strnlen(s[i], l[i]) : strlen(s[i]));
  p->content = copy_of(all.at, all.size);
  p->size = all.size;
  end_text(&all);
  return made;
}

/* Binaries that the program read: many make a program of them at once, and its source is known. */
static struct binary {
  u64 hash[2];
  struct program_object *program;
  struct binary *next;
} *binaries;
static pthread_mutex_t binaries_lock = PTHREAD_MUTEX_INITIALIZER;

/* The program that a binary was read from; where none is known, `otherwise` is from now on. */
static struct program_object *origin_of(const unsigned char *binary, size_t size, struct program_object *otherwise) {
  u64 hash[2];
  if (!binary || !size) return NULL;
  hash_of(binary, size, hash);
  pthread_mutex_lock(&binaries_lock);
  struct binary *b = binaries;
  while (b && memcmp(b->hash, hash, sizeof hash)) b = b->next;
  if (!b && otherwise && (b = malloc(sizeof *b))) {
    *b = (struct binary){{hash[0], hash[1]}, otherwise, binaries};
    binaries = b;
  }
  struct program_object *found = b ? b->program : NULL;
  pthread_mutex_unlock(&binaries_lock);
  return found;
}

static cl_int h_clGetProgramInfo(cl_program p, cl_uint i, size_t n, void *v, size_t *r) {
  cl_int result = REAL(clGetProgramInfo)(p, i, n, v, r);
  struct program_object *program = result || i != CL_PROGRAM_BINARIES || !v ? NULL : find(p, PROGRAM);
  size_t sizes[64], got = 0;
  if (!program || REAL(clGetProgramInfo)(p, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, &got)) return result;
  for (size_t k = 0; k < got / sizeof *sizes && k < n / sizeof(void *); k++)
    origin_of(((unsigned char **)v)[k], sizes[k], program);
  return result;
}

static cl_program h_clCreateProgramWithBinary(cl_context c, cl_uint n, const cl_device_id *d, const size_t *l,
                                              const unsigned char **b, cl_int *st, cl_int *e) {
  cl_program made = REAL(clCreateProgramWithBinary)(c, n, d, l, b, st, e);
  struct program_object *p = made ? new_program(made, "binary", "") : NULL;
  for (cl_uint i = 0; p && !p->origin && l && b && i < n; i++) p->origin = origin_of(b[i], l[i], NULL);
  if (!p || !p->origin) return made;
  char part[32];
  p->form = "linked";
  p->parts = copy_of(part, snprintf(part, sizeof part, "[%d]", p->origin->is.id));
  return made;
}

static cl_program h_clCreateProgramWithIL(cl_context c, const void *il, size_t l, cl_int *e) {
  cl_program made = REAL(clCreateProgramWithIL)(c, il, l, e);
  struct program_object *p = made ? new_program(made, "il", ".spv") : NULL;
  if (p) p->content = copy_of(il, l), p->size = l;
  return made;
}

static cl_program h_clCreateProgramWithBuiltInKernels(cl_context c, cl_uint n, const cl_device_id *d,
                                                      const char *names, cl_int *e) {
  cl_program made = REAL(clCreateProgramWithBuiltInKernels)(c, n, d, names, e);
  if (made) new_program(made, "builtin", "");
  return made;
}

/* How a program was built: compiled or built, the result, nanoseconds, options, folder, headers by name. */
static void keep_build(const char *how, cl_program handle, const char *options, cl_int result, u64 begun,
                       cl_uint count, const cl_program *headers, const char **names) {
  struct program_object *p = find(handle, PROGRAM);
  if (!p || result) return;
  char where[2048];
  struct text s;
  begin_text(&s);
  put(&s, "[");
  put_quoted(&s, how);
  put_next(&s, result);
  put_next(&s, N(now_ns() - begun));
  put_next_quoted(&s, options);
  put_next_quoted(&s, getcwd(where, sizeof where) ? where : "");
  put(&s, ",{");
  for (cl_uint i = 0; i < count; i++) {
    struct program_object *header = find(headers[i], PROGRAM);
    if (!header) continue;
    if (enabled) tell_program(header);
    if (s.at[s.size - 1] != '{') put(&s, ",");
    put_quoted(&s, names[i]);
    put(&s, ":");
    put_number(&s, header->is.id);
  }
  put_bytes(&s, "}]", 3);
  free(p->build);
  p->build = copy_of(s.at, s.size);
  p->is.told = 0; /* again, as it is now */
  end_text(&s);
}

static cl_int h_clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *o, built_f f, void *u) {
  u64 begun = now_ns();
  cl_int result = REAL(clBuildProgram)(p, n, d, o, f, u);
  keep_build("build", p, o, result, begun, 0, NULL, NULL);
  return result;
}

static cl_int h_clCompileProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *o, cl_uint nh,
                                 const cl_program *h, const char **hn, built_f f, void *u) {
  u64 begun = now_ns();
  cl_int result = REAL(clCompileProgram)(p, n, d, o, nh, h, hn, f, u);
  keep_build("compile", p, o, result, begun, nh, h, hn);
  return result;
}

static cl_program h_clLinkProgram(cl_context c, cl_uint n, const cl_device_id *d, const char *o, cl_uint np,
                                  const cl_program *parts, built_f f, void *u, cl_int *e) {
  cl_program made = REAL(clLinkProgram)(c, n, d, o, np, parts, f, u, e);
  struct program_object *p = made ? new_program(made, "linked", "") : NULL;
  if (!p) return made;
  struct text s;
  begin_text(&s);
  put(&s, "[");
  for (cl_uint i = 0; i < np; i++) {
    struct program_object *part = find(parts[i], PROGRAM);
    if (part && enabled) tell_program(part);
    if (i) put(&s, ",");
    put_number(&s, part ? part->is.id : -1);
  }
  put_bytes(&s, "]", 2);
  p->parts = copy_of(s.at, s.size);
  end_text(&s);
  return made;
}

static cl_int h_clSetProgramSpecializationConstant(cl_program p, cl_uint id, size_t n, const void *v) {
  struct program_object *program = find(p, PROGRAM);
  if (program) program->form = "specialized";
  return REAL(clSetProgramSpecializationConstant)(p, id, n, v);
}

static void new_kernel(cl_kernel handle, struct program_object *program, const char *name) {
  struct kernel_object *k = handle ? new_object(sizeof *k, KERNEL) : NULL;
  if (!k) return;
  char buffer[1024] = "";
  if (!name) REAL(clGetKernelInfo)(handle, CL_KERNEL_FUNCTION_NAME, sizeof buffer - 1, buffer, NULL);
  k->name = strdup(name ? name : buffer);
  k->program = program;
  k->changed = 1;
  REAL(clGetKernelInfo)(handle, CL_KERNEL_NUM_ARGS, sizeof k->count, &k->count, NULL);
  k->arguments = calloc(k->count + 1, sizeof *k->arguments);
  if (!k->arguments) k->count = 0;
  for (cl_uint i = 0; i < k->count && target[i_clGetKernelArgInfo]; i++) {
    struct argument *a = &k->arguments[i];
    cl_uint access = 0;
    cl_bitfield type = 0;
    if (REAL(clGetKernelArgInfo)(handle, i, CL_KERNEL_ARG_ADDRESS, sizeof a->address, &a->address, NULL)) break;
    REAL(clGetKernelArgInfo)(handle, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL);
    REAL(clGetKernelArgInfo)(handle, i, CL_KERNEL_ARG_ACCESS, sizeof access, &access, NULL);
    a->known = 1;
    a->read_only = (type & CL_KERNEL_ARG_TYPE_CONST) || a->address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                   access == CL_KERNEL_ARG_ACCESS_READ_ONLY;
  }
  remember(handle, k);
}

static cl_kernel h_clCreateKernel(cl_program p, const char *name, cl_int *e) {
  cl_kernel made = REAL(clCreateKernel)(p, name, e);
  new_kernel(made, find(p, PROGRAM), name);
  return made;
}

static cl_int h_clCreateKernelsInProgram(cl_program p, cl_uint n, cl_kernel *k, cl_uint *r) {
  cl_uint count = 0;
  cl_int result = REAL(clCreateKernelsInProgram)(p, n, k, &count);
  if (r) *r = count;
  for (cl_uint i = 0; !result && k && i < count; i++) new_kernel(k[i], find(p, PROGRAM), NULL);
  return result;
}

static cl_kernel h_clCloneKernel(cl_kernel k, cl_int *e) {
  cl_kernel made = REAL(clCloneKernel)(k, e);
  struct kernel_object *old = find(k, KERNEL);
  if (!made || !old) return made;
  new_kernel(made, old->program, old->name);
  struct kernel_object *clone = find(made, KERNEL);
  for (cl_uint i = 0; clone && i < clone->count && i < old->count; i++) {
    struct argument *a = &clone->arguments[i];
    *a = old->arguments[i];
    if (a->value && !a->svm) a->value = copy_of(a->value, a->size);
  }
  if (clone) clone->indirect = old->indirect;
  return made;
}

static cl_int h_clSetKernelArg(cl_kernel k, cl_uint i, size_t n, const void *v) {
  cl_int result = REAL(clSetKernelArg)(k, i, n, v);
  struct kernel_object *kernel = result ? NULL : find(k, KERNEL);
  if (!kernel || i >= kernel->count) return result;
  struct argument *a = &kernel->arguments[i];
  if (a->set && !a->svm && a->size == n && a->value && v) {
    if (memcmp(a->value, v, n) == 0) return result;
    memcpy(a->value, v, n);
  } else {
    if (!a->svm) free(a->value);
    a->value = v ? copy_of(v, n) : NULL;
    a->size = n;
    a->svm = 0;
    a->set = 1;
  }
  kernel->changed = 1;
  return result;
}

static cl_int h_clSetKernelArgSVMPointer(cl_kernel k, cl_uint i, const void *v) {
  cl_int result = REAL(clSetKernelArgSVMPointer)(k, i, v);
  struct kernel_object *kernel = result ? NULL : find(k, KERNEL);
  if (!kernel || i >= kernel->count) return result;
  struct argument *a = &kernel->arguments[i];
  if (!a->svm) free(a->value);
  a->svm = a->set = 1;
  a->size = sizeof v;
  a->value = (void *)(uintptr_t)v;
  kernel->changed = 1;
  return result;
}

static cl_int h_clSetKernelExecInfo(cl_kernel k, cl_uint i, size_t n, const void *v) {
  struct kernel_object *kernel = find(k, KERNEL);
  if (kernel) kernel->indirect = 1, kernel->is.told = 0;
  return REAL(clSetKernelExecInfo)(k, i, n, v);
}
