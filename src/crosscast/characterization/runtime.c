/* What instrumented kernels call while they run, and what turns their counters into results.
 *
 * Compiled once by the pinned clang and linked to each kernel. It runs only in the child process
 * that runs the kernel. `context.py` mirrors `struct context`, `worker.py` mirrors `struct job`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef unsigned char u8;

enum { LEVELS = 11, CHUNK = 1024, SMALL = 1 << 16, FULL = 1 << 16, TABLE = 1 << 18, PAGE = 4096 };
enum { MOST_CLEARED = 512 << 20, SWEEP_AFTER = 1 << 29, KEPT_BY_SWEEP = 1 << 20 };
enum { MAX_ITEMS = 4096, ROW = MAX_ITEMS + 64, HISTORY = 64 };
enum place { BUFFER, VARIABLE, LOCAL, IMAGE };
enum fault { NO_FAULT, SIGNAL, BOUNDS, DIVERGED, STACK, NO_MEMORY };

struct region {
  u64 start, size, granule, place, constant, read_only, commutes;
};

struct log {
  u64 *keys, *values; /* a hash table of counts by value; keys are stored plus 1 */
  u64 capacity, used;
};

struct history {
  u64 past;    /* a leading 1, then up to 16 outcomes */
  u64 last;    /* length of the last run that left the loop */
  u64 steady;  /* that run left `past` as it was */
  u64 repeats; /* how often it has come again since, not yet in the table */
  u64 *table;
  u64 stay; /* outcome while the loop goes on */
  u8 *lead; /* outcomes of a segment that ran once for all work-items */
  u64 led;
};

struct context {
  u64 group[3], base[3], size[3], items, global[3], groups[3], offset[3], enqueued[3], dims;
  u64 shift_buffer, shift_global, shift_local;
  u8 *local, *private, *live, *outcomes;
  struct history *histories;
  u64 *tables, *counts;
  void *piece, *total;
  u8 *args;
  struct log *pieces_log, *totals_log;
  u64 *dynamic, *exchange, *order;
  u8 *scratch;
  /* from here on the runtime's own */
  struct job *job;
  u64 number;
  struct log pieces, totals, spills;
  u8 *stack;
  u64 stack_size, spilled, run_ns, swept;
};

struct job {
  u64 threads, regions, n_regions, status, result_fd, print_fd;
  u64 dims, global[3], local[3], offset[3], groups[3];
  u64 args, shifts, locals, local_bytes, private_bytes, live_bytes;
  u64 histories, counters, in_memory, n_in_memory, weights, several, published;
  u64 data_low, data_high, variables_low, variables_high;
  u64 next_group;
};

/* Words of the status page that the parent reads. */
enum { S_STATE, S_FAULT, S_SIGNAL, S_ADDRESS, S_GROUP, S_SITE = 7, S_ITEM, S_A, S_B, S_RUN_NS, S_REDUCE_NS, S_OVERFLOW, S_CPU_NS, S_DONE = 16 };

extern void cc_group(struct context *);
static __thread struct context *self;

static u64 *status_of(struct context *c) { return (u64 *)c->job->status; }

static void fail(struct context *c, enum fault kind, u64 signal_, u64 address, u64 site, u64 item, u64 a, u64 b) {
  u64 *s = status_of(c), none = NO_FAULT;
  /* The first fault is the one that is told. */
  if (__atomic_compare_exchange_n(&s[S_FAULT], &none, kind, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    s[S_SIGNAL] = signal_, s[S_ADDRESS] = address, s[S_SITE] = site, s[S_ITEM] = item, s[S_A] = a, s[S_B] = b;
    for (int d = 0; d < 3; d++) s[S_GROUP + d] = c->group[d];
    _exit(3);
  }
  for (;;) pause();
}

static void *map(struct context *c, u64 bytes) {
  void *p = mmap(0, bytes ? bytes : PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail(c, NO_MEMORY, 0, bytes, 0, 0, 0, 0);
  return p;
}

/* ---- counts by value */

static u64 *log_slot(struct log *l, u64 key) {
  u64 mask = l->capacity - 1, i = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
  while (l->keys[i] && l->keys[i] != key + 1) i = (i + 1) & mask;
  return &l->keys[i];
}

static void log_add(struct context *c, struct log *l, u64 key, u64 n) {
  if (2 * l->used >= l->capacity) {
    struct log old = *l;
    l->capacity = old.capacity ? 4 * old.capacity : 1024;
    l->keys = map(c, 16 * l->capacity);
    l->values = l->keys + l->capacity;
    for (u64 i = 0; i < old.capacity; i++)
      if (old.keys[i]) {
        u64 *k = log_slot(l, old.keys[i] - 1);
        *k = old.keys[i];
        l->values[k - l->keys] = old.values[i];
      }
    if (old.capacity) munmap(old.keys, 16 * old.capacity);
  }
  u64 *k = log_slot(l, key);
  if (!*k) *k = key + 1, l->used++;
  l->values[k - l->keys] += n;
}

/* FOLD logs one value a work-item. FOLD_PIECE logs a piece between barriers and adds it, with the
 * barrier's own call, to the work-item's total. */
#define FOLD(NAME, T)                                                                  \
  void NAME(struct log *l, const T *values, u64 n) {                                   \
    for (u64 i = 0, j; i < n; i = j) {                                                 \
      T value = values[i];                                                             \
      for (j = i + 1; j + 16 <= n; j += 16) {                                          \
        T differ = 0;                                                                  \
        for (u64 k = 0; k < 16; k++) differ |= values[j + k] ^ value;                  \
        if (differ) break;                                                             \
      }                                                                                \
      while (j < n && values[j] == value) j++;                                         \
      log_add(self, l, value, j - i);                                                  \
    }                                                                                  \
  }
#define FOLD_PIECE(NAME, FOLDED, T)                                                    \
  void NAME(struct context *c, u64 n, T barrier) {                                     \
    const T *piece = c->piece;                                                         \
    u64 *restrict total = c->total; /* barriers in a loop can make it long */          \
    for (u64 i = 0; i < n; i++) total[i] += piece[i] + barrier;                        \
    FOLDED(c->pieces_log, piece, n);                                                   \
  }
FOLD(cc_fold32, u32)
FOLD(cc_fold64, u64)
FOLD_PIECE(cc_fold_piece32, cc_fold32, u32)
FOLD_PIECE(cc_fold_piece64, cc_fold64, u64)

/* ---- branch histories */

static u64 shifted(u64 outcomes) { return outcomes >= 2 * FULL ? (outcomes & (FULL - 1)) | FULL : outcomes; }

static u64 saturated(u64 bit) { return bit ? 2 * FULL - 1 : FULL; }

static u64 run(u64 *table, u64 past, u64 bit, u64 n, u64 times) {
  for (u64 i = 0; i < n; i++) {
    u64 outcomes = past << 1 | bit;
    if (past == saturated(bit)) {
      table[outcomes] += times * (n - i);
      return past;
    }
    table[outcomes] += times;
    past = shifted(outcomes);
  }
  return past;
}

static void settle(struct history *h) {
  if (h->repeats) {
    u64 past = run(h->table, h->past, h->stay, h->last, h->repeats);
    h->table[past << 1 | !h->stay] += h->repeats;
    h->repeats = 0;
  }
  h->steady = 0;
}

void cc_leave_loop(struct history *h, u64 n, u64 stay) {
  settle(h);
  u64 past = run(h->table, h->past, stay, n, 1), outcomes = past << 1 | !stay;
  h->table[outcomes]++;
  past = shifted(outcomes);
  h->steady = past == h->past;
  h->past = past, h->last = n, h->stay = stay;
}

void cc_end_run(struct history *h, u64 n, u64 stay) {
  settle(h);
  h->past = run(h->table, h->past, stay, n, 1);
}

void cc_fold_row(struct history *h, const u8 *row, u64 n) {
  settle(h);
  for (u64 i = 0, j; i < n; i = j) {
    u8 bit = row[i];
    u64 eight = bit * 0x0101010101010101u, word;
    for (j = i + 1; j + 8 <= n && (memcpy(&word, row + j, 8), word == eight); j += 8) {}
    while (j < n && row[j] == bit) j++;
    if (bit < 2) h->past = run(h->table, h->past, bit, j - i, 1);
  }
}

void cc_fold_cell(struct history *h, const u8 *cell, u64 n) {
  settle(h);
  if (*cell < 2) h->past = run(h->table, h->past, *cell, n, 1);
}

/* The outcomes of a branch while a segment ran once, which every work-item would have had. */
void cc_lead_outcome(struct context *c, u32 branch, u32 bit) {
  struct history *h = &c->histories[branch];
  u64 n = h->led;
  if (n == 0 && !h->lead) h->lead = map(c, PAGE);
  if (n >= PAGE && !(n & (n - 1))) {
    u8 *bigger = map(c, 2 * n);
    memcpy(bigger, h->lead, n);
    munmap(h->lead, n);
    h->lead = bigger;
  }
  h->lead[h->led++] = bit;
}

static void repeat_lead(struct history *h, u64 n) {
  settle(h);
  for (u64 i = 0; i < n; i++) {
    u64 before = h->past;
    for (u64 k = 0; k < h->led; k++) h->past = run(h->table, h->past, h->lead[k], 1, 1);
    if (h->past != before || i + 1 == n) continue;
    /* From here on every work-item finds and leaves the same history. */
    for (u64 k = 0; k < h->led; k++) h->past = run(h->table, h->past, h->lead[k], 1, n - i - 1);
    break;
  }
  h->led = 0;
}

void cc_fold_lead(struct context *c, u64 n) {
  const u64 *in_memory = (u64 *)c->job->in_memory;
  for (u64 i = 0; i < c->job->n_in_memory; i++)
    if (c->histories[in_memory[i]].led) repeat_lead(&c->histories[in_memory[i]], n);
}

/* ---- accesses whose memory is known only while running */

static struct region *region_at(struct context *c, u64 address, int relative_local) {
  struct region *r = (struct region *)c->job->regions;
  u64 low = 0, high = c->job->n_regions;
  (void)relative_local;
  while (low < high) {
    u64 mid = (low + high) / 2;
    if (r[mid].start > address) high = mid;
    else low = mid + 1;
  }
  return low && address - r[low - 1].start < r[low - 1].size ? &r[low - 1] : 0;
}

static int in_local(struct context *c, u64 address) { return address - (u64)c->local < c->job->local_bytes; }

/* The region of an address of this thread: local regions stand at their offset in the table. */
static struct region *find_region(struct context *c, u64 address) {
  if (in_local(c, address)) return region_at(c, address - (u64)c->local, 1);
  return address < c->job->local_bytes ? 0 : region_at(c, address, 0);
}

u64 cc_spill(struct context *c, u8 *counter, u32 granule) {
  u64 word = 0, bits = 8 * granule, most = ((u64)1 << (bits - 2)) - 1;
  memcpy(&word, counter, granule);
  log_add(c, &c->spills, (u64)counter, word & most);
  c->spilled = 1;
  return word & ~most;
}

static void bump(struct context *c, u8 *counter, u64 granule, u64 read, u64 write) {
  u64 word = 0, bits = 8 * granule, most = ((u64)1 << (bits - 2)) - 1;
  memcpy(&word, counter, granule);
  if ((word & most) > most - 2) word = cc_spill(c, counter, granule);
  word += read + write;
  word |= read << (bits - 2) | write << (bits - 1);
  memcpy(counter, &word, granule);
}

void cc_count_dynamic(struct context *c, u8 *p, u32 flags, u32 granule) {
  struct region *r = find_region(c, (u64)p);
  if (!r) { /* private memory, or a wild pointer that is about to fault */
    c->dynamic[9] += flags >> 2 & 1;
    return;
  }
  (void)granule;
  u64 shift = r->place == LOCAL ? c->shift_local : r->place == VARIABLE ? c->shift_global : c->shift_buffer;
  u64 space = r->place == LOCAL ? 2 : r->constant ? 1 : 0, read = flags & 1, write = flags >> 1 & 1;
  c->dynamic[3 * space] += read, c->dynamic[3 * space + 1] += write, c->dynamic[3 * space + 2] += flags >> 2 & 1;
  bump(c, (u8 *)(((u64)p & ~(r->granule - 1)) + shift), r->granule, read, write);
}

void cc_texel_read(const void *p) { cc_count_dynamic(self, (u8 *)p, 1, 0); }
void cc_texel_write(const void *p) { cc_count_dynamic(self, (u8 *)p, 2, 0); }

void cc_check(struct context *c, u8 *p, u64 n, u32 site, u32 write, u64 item) {
  u64 address = (u64)p;
  struct region *r = find_region(c, address);
  if (r) {
    u64 start = r->start + (r->place == LOCAL ? (u64)c->local : 0);
    if (address - start + n <= r->size && !(write && r->read_only)) return;
    fail(c, BOUNDS, write && r->read_only, address, site, item, n, write);
  }
  if (address - (u64)c->stack < c->stack_size) return;
  if (address - (u64)c->private < c->job->private_bytes * MAX_ITEMS) return;
  fail(c, BOUNDS, 0, address, site, item, n, write);
}

void cc_diverged(struct context *c, u32 all, u32 any) { fail(c, DIVERGED, 0, 0, 0, 0, all, any); }

void *cc_to_space(struct context *c, void *p, u32 space) {
  struct region *r = find_region(c, (u64)p);
  u32 found = !r ? 0 : r->place == LOCAL ? 3 : 1;
  return found == space ? p : 0;
}

u32 cc_fence_of(struct context *c, void *p) {
  struct region *r = find_region(c, (u64)p);
  return !r ? 0 : r->place == LOCAL ? 1 : 2;
}

void cc_async_copy(struct context *c, u8 *to, u8 *from, u64 n, u64 stride, u64 bytes, u64 item, u32 to_local, u32 sites) {
  if (item) return; /* the group copies once, when its first work-item asks */
  u64 to_step = to_local ? bytes : bytes * stride, from_step = to_local ? bytes * stride : bytes;
  for (u64 i = 0; i < n; i++, to += to_step, from += from_step) {
    if (sites) cc_check(c, from, bytes, sites - 1, 0, item), cc_check(c, to, bytes, sites, 1, item);
    cc_count_dynamic(c, from, 1, 0);
    cc_count_dynamic(c, to, 2, 0);
    memcpy(to, from, bytes);
  }
}

/* ---- work-group collectives: 16 bytes a work-item, the value and for a broadcast whose it is */

enum { ALL, ANY, BROADCAST, REDUCE, SCAN_EXCLUSIVE, SCAN_INCLUSIVE };

#define COMBINE(o, a, b) ((o) == 0 ? (a) + (b) : (o) == 1 ? ((b) < (a) ? (b) : (a)) : ((b) > (a) ? (b) : (a)))
#define COLLECTIVE(NAME, T, LOWEST, HIGHEST)                                   \
  static void NAME(u64 *x, u32 what, u32 o, u64 n) {                           \
    T sum = o == 0 ? (T)0 : o == 1 ? (T)(HIGHEST) : (T)(LOWEST), v;            \
    for (u64 i = 0; i < n; i++) {                                              \
      memcpy(&v, &x[2 * i], sizeof v);                                         \
      if (what == SCAN_EXCLUSIVE) memcpy(&x[2 * i], &sum, sizeof v);           \
      sum = COMBINE(o, sum, v);                                                \
      if (what == SCAN_INCLUSIVE) memcpy(&x[2 * i], &sum, sizeof v);           \
    }                                                                          \
    for (u64 i = 0; what == REDUCE && i < n; i++) memcpy(&x[2 * i], &sum, sizeof v); \
  }
COLLECTIVE(collect_i32, int32_t, INT32_MIN, INT32_MAX)
COLLECTIVE(collect_u32, u32, 0, UINT32_MAX)
COLLECTIVE(collect_i64, int64_t, INT64_MIN, INT64_MAX)
COLLECTIVE(collect_u64, u64, 0, UINT64_MAX)
COLLECTIVE(collect_f32, float, -__builtin_inff(), __builtin_inff())
COLLECTIVE(collect_f64, double, -__builtin_inf(), __builtin_inf())

void cc_collective(struct context *c, u32 operation, u32 type, u64 n) {
  u64 *x = c->exchange;
  u32 what = operation & 15, o = operation >> 4;
  if (what == BROADCAST) {
    u64 who = x[1] < n ? x[1] : 0, value = x[2 * who];
    for (u64 i = 0; i < n; i++) x[2 * i] = value;
  } else if (what <= ANY) {
    u64 count = 0;
    for (u64 i = 0; i < n; i++) count += (int32_t)x[2 * i] != 0;
    for (u64 i = 0; i < n; i++) x[2 * i] = what == ALL ? count == n : count > 0;
  } else {
    void (*table[])(u64 *, u32, u32, u64) = {collect_i32, collect_u32, collect_i64, collect_u64, collect_f32, collect_f64};
    table[type](x, what, o, n);
  }
}

/* ---- printf: calls are recorded and rendered by the parent */

static void put(struct context *c, const void *p, u64 n) {
  const u8 *at = p;
  while (n) {
    ssize_t done = write(c->job->print_fd, at, n);
    if (done <= 0) return;
    at += done, n -= done;
  }
}

void cc_printf(struct context *c, u32 call, u8 *record, u64 n) {
  const char *format;
  memcpy(&format, record + 8, 8);
  u64 head[3] = {call, n, strlen(format)};
  put(c, head, sizeof head);
  put(c, format, head[2]);
  const char *at = format;
  for (u64 i = 1; i < n; i++) {
    u8 *value = record + 136 * i + 8;
    char conversion = 0;
    while ((at = strchr(at, '%'))) {
      at++;
      at += strspn(at, "-+ #0123456789.vhlL");
      conversion = *at;
      if (conversion) at++;
      if (conversion != '%') break;
    }
    if (!at) at = "";
    char *text = 0;
    if (conversion == 's') memcpy(&text, value, 8);
    u64 size = text ? strlen(text) : 128;
    u64 tail[2] = {text != 0, size};
    put(c, tail, sizeof tail);
    put(c, text ? (u8 *)text : value, size);
  }
}

/* ---- running */

static void on_signal(int number, siginfo_t *info, void *unused) {
  (void)unused;
  struct context *c = self;
  if (!c) _exit(4);
  /* Of an address that cannot exist the kernel tells nothing. */
  u64 address = info->si_code == SI_KERNEL ? (u64)1 << 63 : (u64)info->si_addr;
  int in_guard = address - (u64)(c->stack - (1 << 20)) < (1 << 20) + PAGE;
  /* Mostly it is the counter of an access that faults, before the access itself. */
  int64_t data = address - c->shift_buffer, own = address - (u64)c->local, counted = own - c->shift_local;
  fail(c, in_guard && number == SIGSEGV ? STACK : SIGNAL, number, address, 0, 0, data, llabs(own) < llabs(counted) ? own : counted);
}

static void begin_group(struct context *c, u64 g) {
  struct job *j = c->job;
  c->items = 1;
  u64 rest = g;
  for (int d = 0; d < 3; d++) {
    c->group[d] = rest % j->groups[d];
    rest /= j->groups[d];
    u64 first = c->group[d] * j->local[d], left = j->global[d] - first;
    c->base[d] = j->offset[d] + first;
    c->size[d] = left < j->local[d] ? left : j->local[d];
    c->items *= c->size[d];
  }
  if (j->several) memset(c->total, 0, 8 * c->items);
  if (j->published) memset(c->order, 0, 16 * c->items);
  const u64 *in_memory = (u64 *)j->in_memory;
  for (u64 i = 0; i < j->n_in_memory; i++) {
    struct history *h = &c->histories[in_memory[i]];
    settle(h);
    h->past = 1;
  }
}

static u64 read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000u + t.tv_nsec;
}

static u64 now(void) { return read_clock(CLOCK_MONOTONIC); }

static u64 shift_of(struct context *c, struct region *r) {
  return r->place == LOCAL ? c->shift_local + (u64)c->local : r->place == VARIABLE ? c->shift_global : c->shift_buffer;
}

/* Touch the counters before the clock starts, unless they are many and perhaps mostly unused. */
static void clear_counters(struct context *c) {
  struct region *r = (struct region *)c->job->regions;
  u64 total = 0;
  for (u64 i = 0; i < c->job->n_regions; i++) total += r[i].size;
  if (total > MOST_CLEARED) return;
  for (u64 i = 0; i < c->job->n_regions; i++) memset((void *)(r[i].start + shift_of(c, &r[i])), 0, r[i].size);
}

/* Counters of 4 bytes hold 30 bits. A thread that has made enough accesses to fill one puts the
 * large ones aside; the others then have room for as many accesses again. */
static void sweep(struct context *c) {
  struct region *r = (struct region *)c->job->regions;
  for (u64 i = 0; i < c->job->n_regions; i++) {
    if (r[i].granule != 4) continue;
    u32 *counter = (u32 *)(r[i].start + shift_of(c, &r[i]));
    for (u64 k = 0; k < (r[i].size + 3) / 4; k++)
      if ((counter[k] & ((1u << 30) - 1)) >= KEPT_BY_SWEEP) counter[k] = cc_spill(c, (u8 *)&counter[k], 4);
  }
}

static void guard_counters(struct context *c) {
  const int64_t *weights = (int64_t *)c->job->weights;
  int64_t accesses = 0;
  for (u64 i = 0; i < c->job->counters; i++) accesses += weights[i] * (int64_t)c->counts[i];
  u64 since = accesses - c->swept;
  if (since < SWEEP_AFTER) return;
  if (since >= (1u << 30) - KEPT_BY_SWEEP) status_of(c)[S_OVERFLOW] = 1;
  sweep(c);
  c->swept = accesses;
}

static pthread_barrier_t ready;

static void *work(void *argument) {
  struct context *c = self = argument;
  struct job *j = c->job;
  stack_t alternate = {.ss_sp = map(c, 65536), .ss_size = 65536};
  sigaltstack(&alternate, 0);
  u64 total = j->groups[0] * j->groups[1] * j->groups[2];
  u64 chunk = total / (16 * j->threads);
  if (!chunk) chunk = 1;
  if (j->threads == 1) chunk = total;
  u64 *done = status_of(c) + S_DONE + 8 * c->number;
  clear_counters(c);
  pthread_barrier_wait(&ready);
  u64 start = now(), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
  for (;;) {
    u64 g = __atomic_fetch_add(&j->next_group, chunk, __ATOMIC_RELAXED);
    if (g >= total) break;
    u64 end = g + chunk < total ? g + chunk : total;
    for (; g < end; g++) {
      begin_group(c, g);
      cc_group(c);
      guard_counters(c);
      __atomic_store_n(done, *done + 1, __ATOMIC_RELAXED);
    }
  }
  for (u64 b = 0; b < j->histories; b++) settle(&c->histories[b]);
  c->run_ns = now() - start;
  __atomic_fetch_add(&status_of(c)[S_CPU_NS], read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu, __ATOMIC_RELAXED);
  return 0;
}

static void prepare(struct context *c, struct job *j, u64 t) {
  memset(c, 0, sizeof *c);
  c->job = j, c->number = t, c->dims = j->dims;
  for (int d = 0; d < 3; d++)
    c->global[d] = j->global[d], c->groups[d] = j->groups[d], c->offset[d] = j->offset[d], c->enqueued[d] = j->local[d];
  const u64 *shifts = (u64 *)j->shifts + 3 * t;
  c->shift_buffer = shifts[0], c->shift_global = shifts[1], c->shift_local = shifts[2];
  c->local = (u8 *)((u64 *)j->locals)[t];
  c->private = map(c, j->private_bytes * MAX_ITEMS);
  c->live = map(c, j->live_bytes);
  c->outcomes = map(c, j->histories * ROW);
  c->histories = map(c, j->histories * sizeof(struct history));
  c->tables = map(c, j->histories * TABLE * 8);
  for (u64 b = 0; b < j->histories; b++) c->histories[b].table = c->tables + TABLE * b, c->histories[b].past = 1;
  c->counts = map(c, 8 * j->counters);
  c->piece = map(c, 8 * MAX_ITEMS), c->total = map(c, 8 * MAX_ITEMS);
  c->args = (u8 *)j->args;
  c->pieces_log = &c->pieces, c->totals_log = &c->totals;
  c->dynamic = map(c, 16 * 8), c->exchange = map(c, 16 * MAX_ITEMS), c->order = map(c, 16 * MAX_ITEMS);
  c->scratch = map(c, 136 * 256);
  c->stack_size = 256u << 20;
  c->stack = (u8 *)map(c, c->stack_size + (1 << 20)) + (1 << 20);
  mprotect(c->stack - (1 << 20), 1 << 20, PROT_NONE);
}

/* ---- results: records of a tag, a length in words, and the words */

struct out {
  u64 *words, used, capacity;
};

static void emit(struct context *c, struct out *o, u64 word) {
  if (o->used == o->capacity) {
    u64 *bigger = map(c, 16 * (o->capacity + 4096));
    if (o->used) memcpy(bigger, o->words, 8 * o->used), munmap(o->words, 8 * o->capacity);
    o->words = bigger, o->capacity = 2 * (o->capacity + 4096);
  }
  o->words[o->used++] = word;
}

static u64 open_record(struct context *c, struct out *o, u64 tag) {
  emit(c, o, tag);
  emit(c, o, 0);
  return o->used;
}

static void close_record(struct out *o, u64 start) { o->words[start - 1] = o->used - start; }

struct levels {
  u64 *small; /* of each level, then of each granule: how many addresses have a count below SMALL */
  struct log large[LEVELS + 4];
  u64 reads, writes, conflict;
};

static void tally(struct context *c, struct levels *v, u64 level, u64 count) {
  if (count < SMALL) v->small[level * SMALL + count]++;
  else log_add(c, &v->large[level], count, 1);
}

/* One chunk of 1024 bytes of data: its counters of all threads become counts at every level. */
static void reduce_chunk(struct context *c, u64 threads, struct region *r, u64 at, struct levels *v) {
  u64 g = r->granule, bits = 8 * g, most = ((u64)1 << (bits - 2)) - 1, m = CHUNK / g, log_g = __builtin_ctzll(g);
  u64 counts[CHUNK], any = 0;
  for (u64 i = 0; i < m; i++) {
    u64 sum = 0, flags = 0, writers = 0, users = 0;
    for (u64 t = 0; t < threads; t++) {
      u64 shift = shift_of(&c[t], r);
      u8 *counter = (u8 *)(at + i * g + shift);
      u64 word = 0;
      if (g == 4) word = *(u32 *)counter;
      else if (g == 8) word = *(u64 *)counter;
      else if (g == 1) word = *counter;
      else word = *(uint16_t *)counter;
      if (!word) continue;
      sum += word & most, flags |= word >> (bits - 2);
      if (c[t].spilled) {
        u64 *k = log_slot(&c[t].spills, (u64)counter);
        if (*k) sum += c[t].spills.values[k - c[t].spills.keys];
      }
      users++, writers += word >> (bits - 1);
    }
    counts[i] = sum, any |= sum;
    v->reads += flags & 1, v->writes += flags >> 1 & 1;
    if (users > 1 && writers && r->place != LOCAL && !r->commutes) v->conflict = 1;
  }
  if (!any) return;
  for (u64 i = 0; i < m; i++)
    if (counts[i]) tally(c, v, LEVELS + log_g, counts[i]);
  for (u64 n = log_g + 1; n < LEVELS; n++) {
    m /= 2;
    for (u64 i = 0; i < m; i++) {
      counts[i] = counts[2 * i] + counts[2 * i + 1];
      if (counts[i]) tally(c, v, n, counts[i]);
    }
  }
}

static int touched(int pagemap, u64 address) {
  static u64 first = 1, entries[512];
  u64 page = address / PAGE;
  if (pagemap < 0) return 1;
  if (first == 1 || page - first >= 512) {
    first = page;
    if (pread(pagemap, entries, sizeof entries, 8 * page) != sizeof entries) {
      first = 1;
      return 1;
    }
  }
  return entries[page - first] >> 62 != 0; /* present or swapped out */
}

static void reduce(struct context *c, struct job *j, struct levels *v) {
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  struct region *regions = (struct region *)j->regions;
  v->small = map(c, (LEVELS + 4) * SMALL * 8);
  for (u64 i = 0; i < j->n_regions; i++) {
    struct region *r = &regions[i];
    /* A page of counters holds those of one page of data, up to the distance between the two. */
    for (u64 at = r->start; at < r->start + r->size;) {
      u64 span = PAGE - (at % PAGE), hit = 0;
      for (u64 t = 0; t < j->threads && !hit; t++) {
        u64 shift = shift_of(&c[t], r);
        hit = touched(pagemap, at + shift) || touched(pagemap, at + shift + span - 1);
      }
      for (u64 k = at; hit && k < at + span && k < r->start + r->size; k += CHUNK) reduce_chunk(c, j->threads, r, k, v);
      at += span;
    }
  }
  if (pagemap >= 0) close(pagemap);
}

static void emit_log(struct context *c, struct out *o, u64 tag, struct log *l) {
  u64 start = open_record(c, o, tag);
  for (u64 i = 0; i < l->capacity; i++)
    if (l->keys[i]) emit(c, o, l->keys[i] - 1), emit(c, o, l->values[i]);
  close_record(o, start);
}

static void emit_levels(struct context *c, struct out *o, struct levels *v) {
  u64 start = open_record(c, o, 7);
  for (u64 level = 0; level < LEVELS + 4; level++) {
    for (u64 n = 1; n < SMALL; n++)
      if (v->small[level * SMALL + n]) emit(c, o, level), emit(c, o, n), emit(c, o, v->small[level * SMALL + n]);
    struct log *l = &v->large[level];
    for (u64 i = 0; i < l->capacity; i++)
      if (l->keys[i]) emit(c, o, level), emit(c, o, l->keys[i] - 1), emit(c, o, l->values[i]);
  }
  close_record(o, start);
}

static void emit_tables(struct context *c, struct job *j, struct out *o) {
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  u64 start = open_record(c, o, 4);
  for (u64 t = 0; t < j->threads; t++)
    for (u64 b = 0; b < j->histories; b++)
      for (u64 page = 0; page < TABLE; page += PAGE / 8) {
        u64 *table = c[t].tables + TABLE * b + page;
        if (!touched(pagemap, (u64)table)) continue;
        for (u64 i = 0; i < PAGE / 8; i++)
          if (table[i]) emit(c, o, b), emit(c, o, page + i), emit(c, o, table[i]);
      }
  close_record(o, start);
  if (pagemap >= 0) close(pagemap);
}

static void write_results(struct context *c, struct job *j) {
  struct out o = {0};
  struct levels v = {0};
  reduce(c, j, &v);
  for (u64 t = 0; t < j->threads; t++) {
    u64 start = open_record(c, &o, 1);
    for (u64 i = 0; i < j->counters; i++) emit(c, &o, c[t].counts[i]);
    close_record(&o, start);
    start = open_record(c, &o, 5);
    for (u64 i = 0; i < 10; i++) emit(c, &o, c[t].dynamic[i]);
    close_record(&o, start);
    emit_log(c, &o, 2, &c[t].totals);
    emit_log(c, &o, 3, &c[t].pieces);
  }
  emit_tables(c, j, &o);
  u64 start = open_record(c, &o, 6);
  emit(c, &o, v.reads), emit(c, &o, v.writes), emit(c, &o, v.conflict);
  close_record(&o, start);
  emit_levels(c, &o, &v);
  const u8 *at = (u8 *)o.words;
  for (u64 left = 8 * o.used; left;) {
    ssize_t done = write(j->result_fd, at, left);
    if (done <= 0) fail(c, NO_MEMORY, 0, left, 0, 0, 0, 0);
    at += done, left -= done;
  }
}

int cc_run(struct job *j) {
  u64 *s = (u64 *)j->status;
  struct context *c = mmap(0, j->threads * sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c == MAP_FAILED) return 5;
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 4; i++) sigaction(signals[i], &action, 0);
  for (u64 t = 0; t < j->threads; t++) prepare(&c[t], j, t);
  s[S_STATE] = 1;
  pthread_barrier_init(&ready, 0, j->threads);
  pthread_t threads[256];
  for (u64 t = 0; t < j->threads; t++) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, c[t].stack, c[t].stack_size);
    if (pthread_create(&threads[t], &attributes, work, &c[t])) return 5;
  }
  for (u64 t = 0; t < j->threads; t++) pthread_join(threads[t], 0);
  u64 end = now();
  for (u64 t = 0; t < j->threads; t++)
    if (c[t].run_ns > s[S_RUN_NS]) s[S_RUN_NS] = c[t].run_ns;
  self = c;
  write_results(c, j);
  s[S_REDUCE_NS] = now() - end;
  s[S_STATE] = 2;
  return 0;
}
