/* Records every kernel launch and transfer of a program that uses OpenCL, at its own speed.
 *
 * One library with two ways in, which do no harm together: OPENCL_LAYERS names it as a layer of the loader
 * (ocl-icd 2.3, Khronos' of 2021), and LD_PRELOAD puts it in front of loaders without layers (NVIDIA's).
 * `program.py` sets the environment that `begin_from_environment` reads. */
#include "commands.h"

#include <dlfcn.h>
#include <link.h>

#define API __attribute__((visibility("default")))

static const char *word_of(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static void set_up(const char *where, const char *select, int64_t bytes, int64_t seconds, int outputs) {
  static const char *const names[] = {"all", "none", "first", "every", "spread"};
  snprintf(folder, sizeof folder, "%s", where);
  for (int i = 0; i < 5; i++)
    if (!strncmp(select, names[i], strlen(names[i]))) selection = (enum selection)i;
  const char *colon = strchr(select, ':');
  selection_number = colon && atoi(colon + 1) > 0 ? atoi(colon + 1) : 1;
  bytes_left = bytes;
  time_left_ns = seconds * 1000000000;
  want_outputs = outputs;
  memset(classes, 0, sizeof classes);
}

static void end_recording(void) {
  if (!enabled) return;
  int left = trace_process == getpid() || !trace_process ? end_watching() : 0;
  if (trace_process == getpid()) {
    struct text s;
    begin_record(&s, "e", 4, N(now_ns()), N(left), N(watch_untimed), N(bytes_left));
    end_record(&s);
  }
  enabled = 0;
  close_trace();
}

static void in_child(void) {
  forget_watched();
  pthread_mutex_init(&trace_lock, NULL);
  pthread_mutex_init(&table_lock, NULL);
  pthread_mutex_init(&class_lock, NULL);
  if (enabled) session++; /* objects are told again, into a trace of its own */
}

static void begin_from_environment(void) {
  static atomic_int begun;
  if (atomic_exchange(&begun, 1)) return;
  pthread_atfork(NULL, NULL, in_child);
  atexit(end_recording);
  const char *where = word_of("CROSSCAST_CAPTURE");
  if (!*where) return;
  set_up(where, word_of("CROSSCAST_CAPTURE_SELECT"), atoll(word_of("CROSSCAST_CAPTURE_BYTES")),
         atoll(word_of("CROSSCAST_CAPTURE_SECONDS")), *word_of("CROSSCAST_CAPTURE_OUTPUTS") == '1');
  session = 1;
  enabled = 1;
}

/* For a program that records a part of itself: whether calls come through here, begin, and end. */
API int crosscast_capture_active(void) { return layer_active; }

API void crosscast_capture_begin(const char *where, const char *select, int64_t bytes, int64_t seconds, int outputs) {
  set_up(where, select, bytes, seconds, outputs);
  session++;
  enabled = 1;
}

API void crosscast_capture_end(void) { end_recording(); }

/* The first way in: a layer. */
static void *dispatch[N_ENTRIES];

API cl_int clGetLayerInfo(cl_uint what, size_t size, void *value, size_t *needed) {
  static const char name[] = "crosscast capture";
  static const cl_uint version = CL_LAYER_API_VERSION_100;
  if (what == CL_LAYER_API_VERSION) return answer(&version, sizeof version, size, value, needed);
  if (what == CL_LAYER_NAME) return answer(name, sizeof name, size, value, needed);
  return CL_INVALID_VALUE;
}

API cl_int clInitLayer(cl_uint n, const void *next, cl_uint *n_ret, const void **layer) {
  if (!next || !n_ret || !layer) return CL_INVALID_VALUE;
  cl_uint both = n < N_ENTRIES ? n : N_ENTRIES; /* an older loader passes fewer */
  memcpy(target, next, both * sizeof *target);
#define ENTRY(ret, name, params, args) \
  if (i_##name < both) dispatch[i_##name] = (void *)h_##name;
  HOOKS(ENTRY)
#undef ENTRY
  layer_active = 1;
  begin_from_environment();
  *n_ret = both;
  *layer = dispatch;
  return CL_SUCCESS;
}

/* Khronos' loaders of 2024 and later ask for these two, and tell when they unload. */
API cl_int clInitLayerWithProperties(cl_uint n, const void *next, cl_uint *n_ret, const void **layer,
                                     const uint64_t *properties) {
  (void)properties;
  return clInitLayer(n, next, n_ret, layer);
}

API cl_int clDeinitLayer(void) {
  end_recording();
  return CL_SUCCESS;
}

/* The second way in: these names come first in a program that this library is preloaded to. */
static void *loader_functions[N_ENTRIES];
static __thread int resolving;

static int is_loader(const char *path) {
  const char *name = path ? strrchr(path, '/') : NULL;
  return name && !strncmp(name, "/libOpenCL", 10);
}

static int find_loader(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  if (!is_loader(info->dlpi_name)) return 0;
  *(void **)found = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return *(void **)found != NULL;
}

static void resolve(void) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  static atomic_int resolved;
  if (resolved) return;
  pthread_mutex_lock(&once);
  if (!resolved) {
    static const char *const names[N_ENTRIES] = {
#define NAME(name) #name,
        ENTRIES(NAME)
#undef NAME
    };
    resolving = 1;
    void *loader = NULL;
    dl_iterate_phdr(find_loader, &loader); /* also one that was opened privately, as Python does */
    if (!loader) loader = dlopen("libOpenCL.so.1", RTLD_LAZY);
    for (int i = 0; i < N_ENTRIES; i++)
      loader_functions[i] = loader ? dlsym(loader, names[i]) : dlsym(RTLD_NEXT, names[i]);
    if (!layer_active) memcpy(target, loader_functions, sizeof target);
    resolving = 0;
    resolved = 1;
  }
  pthread_mutex_unlock(&once);
}

#define EXPORT(ret, name, params, args)                                     \
  API ret name params {                                                     \
    resolve();                                                              \
    if (layer_active) return ((name##_f)loader_functions[i_##name])args;    \
    begin_from_environment();                                               \
    return h_##name args;                                                   \
  }
HOOKS(EXPORT)
#undef EXPORT

/* Programs that open the loader themselves ask dlsym for its functions. Everything else is handed on by a jump
 * and not a call, as dlsym looks at its caller for RTLD_NEXT. */
static void *(*real_dlsym)(void *, const char *);
static const struct {
  const char *name;
  void *wrapper;
} wrappers[] = {
#define WRAPPER(ret, name, params, args) {#name, (void *)name},
    HOOKS(WRAPPER)
#undef WRAPPER
};

API void *dlsym(void *restrict handle, const char *restrict name) {
  if (!real_dlsym) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (int i = 0; i < 3 && !real_dlsym; i++)
      real_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  }
  if (name[0] != 'c' || name[1] != 'l' || name[2] < 'A' || name[2] > 'Z' || resolving)
    __attribute__((musttail)) return real_dlsym(handle, name);
  void *found = real_dlsym(handle, name);
  /* The loader asks vendors' libraries for the same names: only its own are ours. */
  Dl_info where;
  if (!found || !dladdr(found, &where) || !is_loader(where.dli_fname)) return found;
  for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
    if (!strcmp(wrappers[i].name, name)) return wrappers[i].wrapper;
  return found;
}
