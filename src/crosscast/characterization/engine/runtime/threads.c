/* The run as a whole: its threads, each with memory of its own, and the time that they take. */
#define _GNU_SOURCE
#include "runtime.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 20 };
enum { ARENA = 8 << 20 };
enum { ROW = MAX_ITEMS + 64, PRINT_BYTES = 136 * 256, DYNAMIC_BYTES = 16 * 8 };

static pthread_barrier_t ready;
static u64 ended_ns, ended_cpu_ns; /* when the last thread had run its work-groups */

static u64 read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000u + t.tv_nsec;
}

u64 cc_now(void) { return read_clock(CLOCK_MONOTONIC); }

static void size_group(struct context *c) {
  struct job *j = c->job;
  c->items = 1;
  for (int d = 0; d < 3; d++) {
    u64 first = c->group[d] * j->local[d], left = j->global[d] - first;
    c->base[d] = j->offset[d] + first;
    c->size[d] = left < j->local[d] ? left : j->local[d];
    c->items *= c->size[d];
  }
}

/* Work-groups, which a thread takes in turn, from the first to the last. */
void cc_place_group(struct context *c, u64 g) {
  for (int d = 0; d < 3; d++) c->group[d] = g % c->job->groups[d], g /= c->job->groups[d];
  size_group(c);
}

/* Groups of a row are alike, but for the last one, which may be smaller. */
void cc_next_group(struct context *c) {
  if (c->group[0] + 2 < c->job->groups[0]) {
    c->group[0]++, c->base[0] += c->job->local[0];
    return;
  }
  for (int d = 0; d < 3 && ++c->group[d] == c->job->groups[d]; d++) c->group[d] = 0;
  size_group(c);
}

static void begin_group(struct context *c) {
  struct job *j = c->job;
  c->first = !*groups_done(c) || (j->alike && c->repeats.differs);
  if (j->several) memset(c->total, 0, 8 * c->items);
  if (j->published) memset(c->order, 0, 16 * c->items);
  const u64 *in_memory = (u64 *)j->in_memory;
  for (u64 i = 0; i < j->n_in_memory; i++) {
    struct history *h = &c->histories[in_memory[i]];
    cc_settle(h);
    h->past = 1, h->known = h->repeated && *groups_done(c);
  }
}

static void run_piece(struct context *c, u64 g, u64 end, u64 guarded) {
  u64 *done = groups_done(c);
  cc_record_launch(c, g, end);
  cc_place_group(c, g);
  for (; g < end; g++, cc_next_group(c)) {
    begin_group(c);
    cc_group(c);
    if (c->job->at_group_end) cc_end_group(c);
    if (guarded) cc_guard_counters(c);
    __atomic_store_n(done, *done + 1, __ATOMIC_RELAXED);
  }
}

static void run_groups(struct context *c) {
  struct job *j = c->job;
  const u64(*pieces)[2] = (const u64(*)[2])j->pieces;
  u64 total = j->n_pieces ? j->n_pieces : j->groups[0] * j->groups[1] * j->groups[2];
  u64 chunk = j->n_pieces ? 1 : j->threads == 1 ? total : total / (16 * j->threads);
  if (!chunk) chunk = 1;
  u64 guarded = 0, g;
  for (u64 i = 0; i < j->counters; i++) guarded |= ((u64 *)j->weights)[i];
  while ((g = __atomic_fetch_add(&j->next_group, chunk, __ATOMIC_RELAXED)) < total) {
    if (j->n_pieces) run_piece(c, pieces[g][0], pieces[g][1], guarded);
    else run_piece(c, g, g + chunk < total ? g + chunk : total, guarded);
  }
  for (u64 b = 0; b < j->histories; b++) cc_end_history(&c->histories[b]);
  cc_end_pieces(c);
}

static void *work(void *argument) {
  struct context *c = cc_self = argument;
  cc_use_signal_stack(c);
  pthread_barrier_wait(&ready);
  u64 start = cc_now(), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
  run_groups(c);
  cc_finish_strided(c);
  cc_finish_sub_groups(c);
  c->run_ns = cc_now() - start;
  __atomic_fetch_add(&status_of(c)[S_CPU_NS], read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu, __ATOMIC_RELAXED);
  pthread_barrier_wait(&ready);
  if (!c->number) ended_ns = cc_now(), ended_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  cc_reduce_share(c);
  return 0;
}

/* Data and counters must not stand at the same distance from a page boundary: the processor would take a load
 * for one that depends on the store before it. */
enum { LARGE = 1 << 22, HUGE_PAGE = 1 << 21, COUNTER_OFFSET = 5 * PAGE + 9 * 64 };
enum { CANNOT_MAP = 6, FIXED = MAP_FIXED_NOREPLACE, PAGES = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

static void *map(u64 address, u64 bytes, int flags, int file) {
  void *found = mmap((void *)address, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (found == MAP_FAILED || (address && (u64)found != address)) perror("mmap"), _exit(CANNOT_MAP);
  return found;
}

/* Let memory be in huge pages, if there is so much of it that they are filled: to clear one takes as long as dozens of
 * others. */
static void use_huge_pages(u64 at, u64 bytes) {
  u64 first = at & -HUGE_PAGE;
  if (bytes >= HUGE_PAGE / 2) madvise((void *)first, at + bytes - first, MADV_HUGEPAGE);
}

/* Map the counters of a range of addresses, and return their distance from it. Huge pages begin where buffers do,
 * so that no two buffers have counters in the same one. */
static u64 map_counters(u64 low, u64 high) {
  u64 start = (u64)map(0, high - low + 4 * COUNTER_OFFSET + 2 * HUGE_PAGE, PAGES, -1);
  return (start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + low % HUGE_PAGE + COUNTER_OFFSET - low;
}

static int by_start(const void *a, const void *b) {
  u64 x = ((struct region *)a)->start, y = ((struct region *)b)->start;
  return x < y ? -1 : x > y;
}

/* Regions of the program's variables, where the library was loaded, among the others; nothing uses some of them. */
static void find_variables(struct job *j, void *library) {
  struct region *regions = regions_of(j), *variables = (struct region *)j->variables;
  u64 low = 0, high = 0;
  for (u64 i = 0; i < j->n_variables; i++) {
    u64 address = (u64)dlsym(library, (const char *)j + variables[i].start);
    if (!address) continue;
    low = low && low < address ? low : address;
    high = high > address + variables[i].size ? high : address + variables[i].size;
    regions[j->n_regions] = variables[i], regions[j->n_regions++].start = address;
  }
  j->variables_low = low, j->variables_high = high;
  qsort(regions, j->n_regions, sizeof *regions, by_start);
}

/* Allow what the runtime maps itself, and no more. */
static void limit_memory(struct job *j) {
  u64 pages = 0, per_thread = (1 << 29) + j->histories * (3 << 20) + MAX_ITEMS * j->private_bytes + j->live_bytes
                                  + 8 * (MAX_ITEMS * (j->n_once + j->n_columns) + (MAX_ITEMS + j->stream_words) * j->n_streams);
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lu", &pages) != 1) perror("statm"), _exit(CANNOT_MAP);
  fclose(file);
  /* Changes of the number of accesses, of reads and of writes, in memory that doubles. */
  const struct buffer *buffers = (const struct buffer *)j->buffers;
  for (u64 b = 0; b < j->n_buffers; b++) per_thread += 4 * 8 * buffers[b].bytes;
  u64 bytes = pages * PAGE + j->threads * per_thread + ((u64)1 << 31);
  setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

static void pad(u64 address) {
  void *found = mmap((void *)address, PAD, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | FIXED, -1, 0);
  if ((u64)found != address) perror("mmap"), _exit(CANNOT_MAP);
}

/* Whether a buffer is large, only read, and its addresses depend on data: then it is in huge pages, as natively. */
static int is_gathered(struct job *j, const struct buffer *b) {
  for (u64 i = 0; i < j->n_regions; i++) {
    const struct region *r = regions_of(j) + i;
    if (r->kind == BUFFER && r->start - b->address < b->bytes) return r->scattered && !b->written && b->bytes >= LARGE;
  }
  return 0;
}

static void copy_to_huge_pages(const struct buffer *b, int file) {
  void *from = map(0, b->bytes, MAP_SHARED | MAP_POPULATE, file), *to = map(b->address, b->bytes, PAGES | FIXED, -1);
  madvise(to, b->bytes, MADV_HUGEPAGE);
  memcpy(to, from, b->bytes), munmap(from, b->bytes);
}

/* The job in a file, with all that it names in place. */
static struct job *place_job(const int *files, void *library) {
  struct stat about;
  fstat(files[0], &about);
  struct job *j = map(0, about.st_size, MAP_PRIVATE, files[0]);
  u64 *tables[] = {&j->regions, &j->variables, &j->buffers, &j->args, &j->in_memory, &j->repeated, &j->weights,
                   &j->sites, &j->recorded, &j->segment_weights, &j->forms, &j->terms, &j->instructions,
                   &j->pieces};
  for (u64 i = 0; i < sizeof tables / sizeof *tables; i++) *tables[i] += (u64)j;
  const struct buffer *b = (struct buffer *)j->buffers;
  /* Runs that keep buffers mostly use little of them. */
  int shared = j->keeps_buffers ? MAP_PRIVATE : MAP_SHARED | MAP_POPULATE;
  for (u64 i = 0; i < j->n_buffers; i++) {
    if (!j->keeps_buffers && is_gathered(j, &b[i])) copy_to_huge_pages(&b[i], files[b[i].file]);
    else map(b[i].address, b[i].bytes, shared | FIXED, files[b[i].file]);
    u64 end = b[i].address + b[i].bytes;
    memset((void *)end, 0, -end & (PAGE - 1)); /* what an earlier run wrote over the end */
    pad(b[i].address - PAD), pad((end + PAGE - 1) & -PAGE);
  }
  u64 *own[] = {&j->status_file, &j->result_file, &j->print_file};
  for (u64 i = 0; i < 3; i++) *own[i] = files[*own[i]];
  fstat(j->status_file, &about);
  j->status = (u64)map(0, about.st_size, MAP_SHARED, j->status_file);
  void *arguments = map(j->args_address, j->args_bytes + 1, MAP_PRIVATE | MAP_ANONYMOUS | FIXED, -1);
  j->args = (u64)memcpy(arguments, (void *)j->args, j->args_bytes);
  find_variables(j, library);
  return j;
}

/* A thread's local memory and its counters. */
static void place_counters(struct context *c, struct job *j) {
  c->shift_buffer = map_counters(j->data_low - PAD, j->data_high + PAD);
  c->shift_global = map_counters(j->variables_low, j->variables_high);
  c->local = map(0, j->local_bytes + PAGE, PAGES, -1);
  c->shift_local = map_counters((u64)c->local, (u64)c->local + j->local_bytes);
  c->shift_small = map_counters((j->data_low - PAD) >> SMALL_LOG, (j->data_high + PAD) >> SMALL_LOG);
  for (u64 i = 0; i < j->n_regions && j->threads > 1; i++)
    if (regions_of(j)[i].commutes > 1 && !c->shift_sums) c->shift_sums = map_counters(j->data_low - PAD, j->data_high + PAD);
  const struct buffer *b = (const struct buffer *)j->buffers, *end = b + j->n_buffers;
  for (; b < end; b++) {
    use_huge_pages(b->address + c->shift_buffer, b->bytes);
    use_huge_pages((b->address >> SMALL_LOG) + c->shift_small, b->bytes >> SMALL_LOG);
  }
}

/* What a kernel needs that counts nothing, and where its local memory stands already. */
void cc_prepare_to_run(struct context *c, struct job *j) {
  c->job = j, c->dims = j->dims;
  for (int d = 0; d < 3; d++)
    c->global[d] = j->global[d], c->groups[d] = j->groups[d], c->offset[d] = j->offset[d], c->enqueued[d] = j->local[d];
  c->private = cc_map(c, j->private_bytes * MAX_ITEMS);
  c->live = cc_map(c, j->live_bytes);
  c->args = (u8 *)j->args;
  c->exchange = cc_map(c, 16 * MAX_ITEMS);
  c->stack_size = STACK_BYTES;
  c->stack = (u8 *)cc_map(c, STACK_BYTES + GUARD) + GUARD;
  mprotect(c->stack - GUARD, GUARD, PROT_NONE);
}

static void prepare(struct context *c, struct job *j, u64 t) {
  c->arena = (u8 *)(((u64)map(0, ARENA + HUGE_PAGE, PAGES, -1) + HUGE_PAGE - 1) & -HUGE_PAGE);
  use_huge_pages((u64)c->arena, ARENA);
  *c->arena = 0; /* most need the first page, and no other */
  c->number = t;
  cc_prepare_to_run(c, j);
  c->outcomes = cc_map(c, j->histories * ROW);
  c->histories = cc_map(c, j->histories * sizeof(struct history));
  c->tables = cc_map(c, j->histories * TABLE * 8);
  for (u64 b = 0; b < j->histories; b++) c->histories[b].table = c->tables + TABLE * b, c->histories[b].past = 1;
  for (u64 i = 0; i < j->n_repeated; i++) c->histories[((u64 *)j->repeated)[i]].repeated = 1;
  c->counts = cc_map(c, 8 * j->counters);
  c->piece = cc_map(c, 8 * MAX_ITEMS), c->total = cc_map(c, 8 * MAX_ITEMS);
  c->pieces_log = &c->pieces, c->totals_log = &c->totals;
  c->dynamic = cc_map(c, DYNAMIC_BYTES), c->order = cc_map(c, 16 * MAX_ITEMS);
  c->scratch = cc_map(c, PRINT_BYTES);
  c->strided = cc_map(c, j->strided * sizeof *c->strided);
  c->spreads = cc_map(c, 2 * j->n_regions * sizeof *c->spreads);
  cc_prepare_sub_groups(c, j);
  cc_prepare_reuse(c, j);
}

static int run_threads(struct context *c, u64 n) {
  pthread_t threads[MOST_THREADS];
  pthread_barrier_init(&ready, 0, n);
  for (u64 t = 0; t < n; t++) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, c[t].stack, c[t].stack_size);
    if (pthread_create(&threads[t], &attributes, work, &c[t])) return 0;
    pthread_attr_destroy(&attributes);
  }
  for (u64 t = 0; t < n; t++) pthread_join(threads[t], 0);
  return 1;
}

__attribute__((visibility("default"))) int cc_run(const int *files, void *library) {
  struct job *j = place_job(files, library);
  if (cc_native) cc_measure_native(j, files);
  u64 *s = (u64 *)j->status;
  struct context *c = mmap(0, j->threads * sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (c == MAP_FAILED || j->threads > MOST_THREADS) return 5;
  cc_catch_signals();
  for (u64 t = 0; t < j->threads; t++) place_counters(&c[t], j);
  limit_memory(j);
  for (u64 t = 0; t < j->threads; t++) prepare(&c[t], j, t);
  if (!run_threads(c, j->threads)) return 5;
  for (u64 t = 0; t < j->threads; t++)
    if (c[t].run_ns > s[S_RUN_NS]) s[S_RUN_NS] = c[t].run_ns;
  cc_self = c;
  cc_write_results(c, j);
  s[S_REDUCE_NS] = cc_now() - ended_ns, s[S_REDUCE_CPU_NS] = read_clock(CLOCK_PROCESS_CPUTIME_ID) - ended_cpu_ns;
  return 0;
}

/* How a run ends when something goes wrong: the first fault is told on the status page. */

enum { SIGNAL_STACK = 1 << 16 };

__thread struct context *cc_self;

void cc_fail(struct context *c, enum fault kind, u64 signal_, u64 address, u64 site, u64 item, u64 a, u64 b) {
  u64 *s = status_of(c), none = NO_FAULT;
  if (__atomic_compare_exchange_n(&s[S_FAULT], &none, kind, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    s[S_SIGNAL] = signal_, s[S_ADDRESS] = address, s[S_SITE] = site, s[S_ITEM] = item, s[S_A] = a, s[S_B] = b;
    for (int d = 0; d < 3; d++) s[S_GROUP + d] = c->group[d];
    _exit(3);
  }
  for (;;) pause();
}

/* What is small comes from a thread's huge pages: the first access to a small page of its own would take as long as to
 * clear 40 KB. It is not given back. */
static int is_taken(struct context *c, const void *p) { return (u64)p - (u64)c->arena < ARENA; }

static void *map_pages(struct context *c, u64 bytes, int flags) {
  void *p = mmap(0, bytes ? bytes : PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (p == MAP_FAILED) cc_fail(c, NO_MEMORY, 0, bytes, 0, 0, 0, 0);
  return p;
}

static void *take(struct context *c, u64 bytes, u64 most, int flags) {
  struct context *own = cc_self ? cc_self : c;
  u64 room = (bytes + 63) & -64;
  if (!own->arena || room > most || room > ARENA - own->taken) return map_pages(c, bytes, flags);
  return own->taken += room, own->arena + own->taken - room;
}

void *cc_map(struct context *c, u64 bytes) { return take(c, bytes, ARENA / 32, MAP_NORESERVE); }
void *cc_map_filled(struct context *c, u64 bytes) { return take(c, bytes, ARENA / 128, MAP_POPULATE); }

void *cc_remap(struct context *c, void *p, u64 bytes, u64 more) {
  if (!p) return cc_map(c, more);
  int taken = is_taken(cc_self, p);
  void *q = taken ? cc_map(c, more) : mremap(p, bytes, more, MREMAP_MAYMOVE);
  if (q == MAP_FAILED) cc_fail(c, NO_MEMORY, 0, more, 0, 0, 0, 0);
  if (more >= 2 * HUGE_PAGE) madvise(q, more, MADV_HUGEPAGE); /* what grows is filled */
  return taken ? memcpy(q, p, bytes) : q;
}

void cc_unmap(void *p, u64 bytes) {
  if (!is_taken(cc_self, p)) munmap(p, bytes);
}

void cc_diverged(struct context *c, u32 all, u32 any) { cc_fail(c, DIVERGED, 0, 0, 0, 0, all, any); }

void cc_assertion(struct context *c, u32 site, u64 item) { cc_fail(c, ASSERTION, 0, 0, site, item, 0, 0); }

static u64 distance(struct job *j, int64_t address) {
  u64 buffers = llabs(address - (int64_t)j->data_low), null = llabs(address);
  return buffers < null ? buffers : null;
}

static void on_signal(int number, siginfo_t *info, void *unused) {
  (void)unused;
  struct context *c = cc_self;
  if (!c) _exit(4);
  /* Of an address that cannot exist the kernel tells nothing. */
  u64 address = info->si_code == SI_KERNEL ? (u64)1 << 63 : (u64)info->si_addr;
  int in_guard = address - (u64)(c->stack - GUARD) < GUARD + PAGE;
  /* Mostly it is the counter of an access that faults, before the access itself. */
  int64_t data = address - c->shift_buffer, small = (address - c->shift_small) << SMALL_LOG, own = address - (u64)c->local, counted = own - c->shift_local;
  if (distance(c->job, small) < distance(c->job, data)) data = small;
  u64 offset = llabs(own) < llabs(counted) ? own : counted;
  cc_fail(c, in_guard && number == SIGSEGV ? STACK : SIGNAL, number, address, 0, 0, data, offset);
}

void cc_catch_signals(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 4; i++) sigaction(signals[i], &action, 0);
}

/* A thread whose stack is full needs another one to say so. */
void cc_use_signal_stack(struct context *c) {
  stack_t alternate = {.ss_sp = cc_map(c, SIGNAL_STACK), .ss_size = SIGNAL_STACK};
  sigaltstack(&alternate, 0);
}

/* printf: calls are recorded and rendered by the parent. */

enum { RECORD = 136, VALUE = 128 }; /* bytes of one argument: its kind, then room for any value */
enum { MOST_PRINTED = 1 << 30 };

static u64 printed; /* bytes, by the one thread that there is in a kernel that prints */

static void put(struct context *c, const void *p, u64 n) {
  const u8 *at = p;
  if ((printed += n) > MOST_PRINTED) cc_fail(c, PRINTED, 0, MOST_PRINTED, 0, 0, 0, 0);
  while (n) {
    ssize_t done = write(c->job->print_file, at, n);
    if (done <= 0) cc_fail(c, NO_MEMORY, 0, n, 0, 0, 0, 0);
    at += done, n -= done;
  }
}

/* What takes the next argument after `*at`, a conversion or a star before it; moves `*at` behind it. */
static char next_conversion(const char **at, int is_inside) {
  while (is_inside || (*at = strchr(*at, '%'))) {
    *at += !is_inside, is_inside = 0;
    *at += strspn(*at, "-+ #0123456789.vhlLzjtq");
    char conversion = **at;
    if (conversion) *at += 1;
    if (conversion != '%') return conversion;
  }
  *at = "";
  return 0;
}

void cc_printf(struct context *c, u32 call, u8 *record, u64 n) {
  const char *format;
  memcpy(&format, record + 8, 8);
  u64 head[3] = {call, n, strlen(format)};
  put(c, head, sizeof head);
  put(c, format, head[2]);
  const char *at = format;
  char conversion = 0;
  for (u64 i = 1; i < n; i++) {
    u8 *value = record + RECORD * i + 8, is_pointer = value[-8];
    char *text = 0;
    conversion = next_conversion(&at, conversion == '*');
    if (conversion == 's' && is_pointer) memcpy(&text, value, 8);
    u64 tail[2] = {text != 0, text ? strlen(text) : VALUE};
    put(c, tail, sizeof tail);
    put(c, text ? (u8 *)text : value, tail[1]);
  }
}
