/* What instrumented kernels call while they run, and what turns their counters into results.
 *
 * Compiled by the pinned clang, once, and linked to each kernel. It runs only in the child process that runs the
 * kernel. `layout.py` reads the structures and enumerations that Python and generated code know as well. */
#ifndef CC_RUNTIME_H
#define CC_RUNTIME_H
#include <stdint.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef unsigned char u8;

enum { PAGE = 4096, MAX_ITEMS = 4096, MOST_THREADS = 256, GUARD = 1 << 20 };
enum { PAD = 1 << 16 }; /* zeros before and behind each buffer, which a kernel may read by mistake, as devices let it */
enum { TABLE = 1 << 18 };             /* counts of one history's outcomes */
enum { MOST_LEFT_BY_SWEEP = 1 << 20 }; /* what a counter of 4 bytes may hold after a sweep */
enum memory_kind { BUFFER, VARIABLE, LOCAL, IMAGE };
enum fault { NO_FAULT, SIGNAL, BOUNDS, DIVERGED, STACK, NO_MEMORY, LANES_MISSING, ASSERTION, OUTSIDE, PRINTED };

struct region {
  u64 start, size, granule, kind, constant, read_only, commutes; /* the latter: of sums, the bytes of each; or 1 */
  u64 counted;   /* some accesses are not strided */
  u64 scattered; /* what the accesses do that are counted in small counters: read 1, write 2; or there are none */
  /* of the widest read and write, or 0 for a granule; after the reduction, distinct bytes read and written */
  u64 read_bytes, write_bytes;
  u64 overlaps;  /* which accesses may overlap without starting at the same address: reads 1, writes 2 */
  u64 lines_64, lines_128; /* after the reduction, distinct ones in which accesses start */
  u64 largest; /* after the reduction, the most accesses of a granule */
  u64 before, behind; /* how far it was read outside of its bytes */
};

enum { FEW = 4096 };

/* A hash table of counts by value; keys are stored plus 1. */
struct log {
  u64 (*few)[4]; /* counts of the values below `FEW`, which need no search, in four parts */
  u64 *keys, *values;
  u64 capacity, used;
};

/* What a group did piece by piece, and how many groups did the same. */
struct repeats {
  u8 *rows;
  u64 used, at; /* bytes of it, and as far as the group that runs has done the same */
  u64 times, alike, other, differs;
  struct log log;
};

static inline u64 few_of(const struct log *l, u64 value) {
  const u64 *parts = l->few[value];
  return parts[0] + parts[1] + parts[2] + parts[3];
}

struct history {
  u64 past;    /* a leading 1, then up to 16 outcomes */
  u64 last;    /* length of the last run that left the loop */
  u64 steady;  /* that run left `past` as it was */
  u64 repeats; /* how often it has come again since, not yet in the table */
  u64 *table;
  u64 stay;             /* outcome while the loop goes on */
  u64 *lead, led, room; /* outcomes of a segment that ran once for all work-items, in runs */
  u64 repeated, known;  /* all work-groups have the same outcomes; they are those of the first, which has run */
  u64 longs[2], more[2]; /* by `stay`: runs of 16 and more that follow each other, and what they have above 16; not yet in the table */
  u64 alike_times[2], alike_past[2], alike_n[2], alike_after[2]; /* rows of one outcome, by it: all but the first are not yet in the table */
};

enum { LEVELS = 11, SMALL = 1 << 11, CHANNELS = 16, CHUNK = 1024, LINE_LOG = 7, PLACES = 4 /* chunks that take each channel once */ };
struct levels {
  u64 *small; /* of each level, then of each granule: how many addresses have a count below SMALL, in four parts */
  struct log large[LEVELS + 4];
  u64 most[LEVELS + 4]; /* largest count below SMALL, at least */
  u64 reads, writes, conflict;
  u64 largest; /* count of a granule of this region */
  u64 times; /* how often that occurred of which addresses are tallied */
  u64 in_channel[CHANNELS]; /* lines of 128 bytes in which accesses start, if blocks of 256 bytes take memory channels in turn */
};
static inline u64 small_of(struct levels *v, u64 level, u64 count) {
  const u64 *parts = v->small + 4 * (level * SMALL + count);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

/* Results on their way to the parent: records of a tag, a length in words, and the words. */
enum tag { COUNTERS = 1, TOTALS, PIECES, PATTERNS, HISTORIES, DYNAMIC, UNIQUE, DISTINCT, BY_LEVEL, SITE, ENTRIES, FORMS, LONGEST, INEXACT, REUSE, BEYOND, IN_CHANNEL };
struct out {
  u64 *words, used, capacity;
};

enum { NESTED = 6 };

/* Addresses from `base` on: `n` of them at a distance of `step`, and the same of these, by dimension. */
struct dim {
  int64_t step;
  u64 n;
};
struct pattern {
  u64 base, dims;
  struct dim dim[NESTED + 2];
};
struct open {
  struct pattern first;
  u64 last, count, usual; /* `usual`: count of the one before */
  int64_t delta;
};

/* One strided access: `count` ranges so far, each of `n` addresses at a distance of `stride`. */
struct strided {
  u64 stride, n, first, last, count, usual;
  int64_t delta;
  u64 flags; /* read, write, local */
  struct open open[NESTED];
  struct pattern *patterns;
  u64 n_patterns;
};
enum { STRIDED_BYTES = 1136 }; /* of it */

/* How much the number of accesses changes from a granule to the next: by chunk a list of changes, or a number
 * for each granule where they are many. */
struct change {
  u32 next, at;
  u64 by;
};
struct changes {
  u64 first; /* of the list, plus 1; or of the numbers */
  u64 count; /* of the list; above `MOST_LISTED` there are numbers */
};
enum { MOST_LISTED = 64, FEWEST_NUMBERS = 128 }; /* of a chunk whose granules have 8 bytes */
struct pool {
  void *items;
  u64 used, room;
};

struct context {
  u64 group[3], base[3], size[3], items; /* the work-group: its id, first global id, local size and work-items */
  u64 global[3], groups[3], offset[3], enqueued[3], dims;
  u64 shift_buffer, shift_global, shift_local; /* distances from data to their counters */
  u64 shift_small;          /* the same to small counters, after addresses are divided by 4 */
  u64 shift_sums;           /* the same to what this thread adds to memory, if there are others */
  u8 *local;                /* this thread's local memory */
  u8 *private, *live;       /* private arrays and values that live across barriers */
  u8 *outcomes;             /* branch outcomes of one segment, a row a branch */
  struct history *histories;
  u64 *tables;              /* of the histories */
  u64 *counts;              /* counters of executed edges */
  void *piece, *total;      /* instructions since the last barrier and so far, a work-item each */
  u8 *args;
  struct log *pieces_log, *totals_log;
  u64 *dynamic;             /* counters of accesses whose memory is known only while running */
  u64 *exchange;            /* values of a work-group collective */
  u64 *order;               /* per work-item state of the published tool's freedom-to-reorder */
  u8 *scratch;              /* arguments of a printf call */
  u8 *warps;                /* arguments and results of warp operations, and where each work-item stands */
  u64 *addresses;           /* by site and work-item, of accesses that a segment makes at most once */
  u64 *words, *positions, *ends; /* of the others: addresses or runs, where the next goes, and by work-item where its own end */
  void *columns;            /* by work-item, how often it went along the counted edges */
  u64 texels;               /* the stream of the image function that is called */
  u64 *runs;                /* of each segment, in this work-group */
  u64 first;                /* whether this group records what all do alike: the first one, or all if it is too much to keep */
  struct strided *strided;  /* accesses at equal distances, by access */
  /* from here on the runtime's own */
  struct job *job;
  u64 number;
  struct log pieces, totals, spills;
  struct repeats repeats;
  struct changes **spreads; /* by chunk; two a region: reads and writes */
  struct pool listed, numbers;
  u8 *arena, *stack;
  u64 taken, stack_size, spilled, run_ns, swept;
  struct levels levels; /* what it reduced: a share of the counters of all threads */
  struct out out;
  void *sub_sites; /* what sub-groups did, by site */
  void *rising; /* runs that were counted last */
  u64 *entries, *form_sums, *longest, inexact;
  void *before;             /* columns of the group before, of so many work-items, and its longest one */
  u64 repeated, longest_of_group, longest_item;
  u64 span, beyond; /* bytes of buffers, and how far variables are behind them */
  struct part *parts; /* boxes in which a slice is even */
  u64 n_parts;
  struct touch *touches; /* of sampled lines of memory; `unsampled` are bits that the hash of one must not have */
  u64 n_touches, most_touches, touched_before, unsampled, sequence, time, toucher, how; /* when and by which group an access is made, and what it does */
  u64 is_native;
} __attribute__((aligned(128))); /* threads do not share a cache line */

/* What the parent asks for, at the start of a file; the tables behind it are named by their distance from there
 * until `cc_run` makes pointers of them, and files by their place among those that come with the job. */
struct buffer {
  u64 file, address, bytes, written;
};
struct job {
  u64 threads, regions, n_regions, variables, n_variables, buffers, n_buffers; /* variables: regions that begin with a name */
  u64 status_file, result_file, print_file, data_low, data_high;
  u64 dims, global[3], local[3], offset[3], groups[3];
  u64 args, args_address, args_bytes, local_bytes, private_bytes, live_bytes;
  u64 histories, strided, counters, in_memory, n_in_memory, repeated, n_repeated, weights, several, published;
  u64 sites, n_sites, recorded, n_recorded, n_once, n_streams, stream_words; /* accesses by sub-groups */
  u64 segments, segment_weights, n_columns, narrow, forms, n_forms, terms, at_group_end, instructions; /* executions by sub-groups */
  u64 native_ns, native_once; /* longest run without counting; its content cannot be put back */
  u64 pieces, n_pieces; /* work-groups from one number to before another, where not all of them run */
  u64 keeps_buffers; /* whether the parent's buffers stay as they are */
  u64 alike; /* all work-groups go the same way */
  u64 most_instructions; /* of all work-items, if that is known; or 0 */
  /* from here on the runtime's own */
  u64 status, variables_low, variables_high;
  u64 next_group, next_share; /* what a thread takes next: of the run, and of the reduction */
};

/* Static accesses, by their numbers: four words each. */
enum { SITE_WRITES = 1, SITE_LOCAL = 2, SITE_ATOMIC = 4, SITE_DYNAMIC = 8, SITE_REPEATED = 16 /* alike in all groups */ };
/* How a segment leaves what its work-items access at a site: an address, a stream of them, or a stream of runs. */
enum { ONCE, STREAM, RUNS };
struct recorded {
  u64 segment, site, mode, place, order; /* `order`: where it stands in the segment */
};
struct form {
  u64 first, n; /* of its terms */
};

/* Words of the status page that the parent reads. */
enum {
  S_FAULT, S_SIGNAL, S_ADDRESS, S_GROUP, S_SITE = 6, S_ITEM, S_A, S_B,
  S_RUN_NS, S_REDUCE_NS, S_OVERFLOW, S_CPU_NS, S_REDUCE_CPU_NS,
  S_NATIVE_NS, S_NATIVE_REPEATS,
  S_DONE = 24 /* of each thread, on a cache line of its own: the work-groups that it has run */
};

/* One library holds the runtime and the kernel, so that calls need no detour through its tables. */
#pragma GCC visibility push(hidden)

extern __thread struct context *cc_self;

void cc_group(struct context *); /* the kernel */
__attribute__((weak)) void cc_native(struct context *); /* the same, but it counts nothing; only if it is wanted */

/* threads.c */
_Noreturn void cc_fail(struct context *, enum fault, u64 signal_, u64 address, u64 site, u64 item, u64 a, u64 b);
void *cc_map(struct context *, u64 bytes);
void *cc_map_filled(struct context *, u64 bytes); /* all of it is used soon: its pages come together, which is faster */
void cc_unmap(void *, u64 bytes);
void *cc_remap(struct context *, void *, u64 bytes, u64 more); /* moved rather than copied; or mapped if there is none */
void cc_diverged(struct context *, u32 all, u32 any);
void cc_assertion(struct context *, u32 site, u64 item);
void cc_catch_signals(void);
u64 cc_now(void); /* ns */
void cc_prepare_to_run(struct context *, struct job *);
void cc_place_group(struct context *, u64 number);
void cc_next_group(struct context *);
void cc_use_signal_stack(struct context *);

/* histories.c */
u64 *cc_log_find(struct log *, u64 key);
void cc_log_add(struct context *, struct log *, u64 key, u64 n);
void cc_log_empty(struct log *);
void cc_fold32(struct log *, const u32 *values, u64 n);
void cc_fold64(struct log *, const u64 *values, u64 n);
void cc_fold_piece32(struct context *, u64 n, u32 barrier);
void cc_fold_piece64(struct context *, u64 n, u64 barrier);
void cc_fold_totals(struct context *, u64 n);
void cc_end_pieces(struct context *);

/* histories.c */
void cc_settle(struct history *);
void cc_end_history(struct history *);
void cc_leave_loop(struct history *, u64 n, u64 stay);
void cc_end_run(struct history *, u64 n, u64 stay);
void cc_fold_row(struct history *, const u8 *row, u64 n);
void cc_fold_cell(struct history *, const u8 *cell, u64 n);
void cc_lead_outcome(struct context *, u32 branch, u32 bit);
void cc_fold_lead(struct context *, u64 n);

/* accesses.c: counters that become too large */
u64 cc_spill(struct context *, u8 *counter, u32 granule);
void cc_guard_counters(struct context *);

/* A slice computes, for a work-item of a line or plane of them: whether it got to some accesses, bits of the comparisons
 * on its way, the addresses, and values that must change evenly. */
enum { MOST_RESULTS = 64 };
struct slice {
  void (*at)(struct context *, u64 x, u64 y, u64 z, u64 *results);
  u64 addresses, checks;
  u64 positive; /* checked values that must not be negative, a bit each */
  u64 site;     /* of the first access; each has two: planes and single places */
  u64 flags;    /* of each access three bits */
  const u64 *sites;
  u64 order;    /* where it stands in the segment */
};
extern const struct slice cc_launch_slices[]; /* of the whole launch; the last one has no addresses */

/* strided.c */
void cc_record(struct context *, const struct slice *, u64 nx, u64 ny, u64 nz);
void cc_record_launch(struct context *, u64 first, u64 end);

/* strided.c */
void cc_add_strided(struct context *, u32 site, u32 flags, u64 base, u64 stride, u64 n);
void cc_add_plane(struct context *, u32 site, u32 flags, u64 base, u64 stride, u64 n, u64 pitch, u64 lines);
void cc_end_strided(struct context *, struct strided *);
void cc_finish_strided(struct context *);
void cc_spread(struct context *, struct strided *);
void cc_add_changes(struct context *, struct changes *, u64 *differences, u64 shift);

/* Places of a slice, from `x` and `y` on; and a box of them that is even: distances from its first place. */
struct box {
  u64 x, nx, y, ny;
};
enum { MOST_PARTS = 64, MOST_PARTS_OF_SLICE = 20 };
struct part {
  struct box box;
  u64 z, reached, origin[MOST_PARTS_OF_SLICE], dx[MOST_PARTS_OF_SLICE], dy[MOST_PARTS_OF_SLICE];
};

/* sub_groups.c */
void cc_sub_groups(struct context *, u32 segment, u64 items, u32 final);
void cc_sub_groups_of(struct context *, u32 segment, u64 first, u64 set);
void cc_sub_groups_of_launch(struct context *, const struct slice *, const u64 *from, const u64 *to);
void cc_sub_groups_of_group(struct context *, const struct slice *, u64 nx, u64 ny, u64 nz, u32 final);
void cc_sub_groups_of_copy(struct context *, u32 site, u64 address, u64 step, u64 n);
void cc_end_group(struct context *);
void cc_prepare_sub_groups(struct context *, struct job *);
void cc_finish_sub_groups(struct context *);
u64 cc_sub_group_words(struct context *, u64 site, u64 *words);

/* reuse.c; the lowest bits of a time number sites, which are in straight code if the others are alike */
enum { SITE_LOG = 8 };
void cc_prepare_reuse(struct context *, struct job *);
u32 cc_intervals(const u32 *keys, u32 shift, u64 nbytes, u32 (*found)[2]);
void cc_touch(struct context *, u32 shift, const u32 (*intervals)[2], u32 n, u32 start, u32 step, u64 times, u64 time, u64 later, u64 group, u64 apart, u32 once);
void cc_touch_runs(struct context *, u32 shift, const u32 *keys, u32 step, const u64 *times, u32 n, u64 time, u64 later, u64 group, u32 once);
void cc_touch_row(struct context *, u32 shift, u64 nbytes, const u32 *keys, u64 time, u64 group);
void cc_touch_columns(struct context *, u32 shift, u64 nbytes, const void *columns, u32 room, const u32 *n, u64 time, u64 later, u64 group);
enum { REUSE_WORDS = 91 /* the rate, and for six ways lines and 14 caches */ };
void cc_reuse(struct context *, u64 threads, u64 instructions, u64 *words);

/* accesses.c: memory of buffers, and what is read beside it */
void cc_read_beside(struct context *, u64 address, u64 writes);
struct region *cc_region_at(struct context *, u64 address);
void cc_count_dynamic(struct context *, u8 *p, u32 flags, u32 granule);
void cc_texel_read(const void *p, u64 nbytes);
void cc_texel_write(const void *p, u64 nbytes);
void cc_check(struct context *, u8 *p, u64 n, u32 site, u32 write, u64 item);
void *cc_to_space(struct context *, void *p, u32 space);
u32 cc_fence_of(struct context *, void *p);
void cc_async_copy(struct context *, u8 *to, u8 *from, u64 n, u64 stride, u64 bytes, u64 item, u32 to_local, u32 sites,
                   u32 read, u32 written);

/* native.c */
void cc_measure_native(struct job *, const int *files);

/* warps.c */
void cc_collective(struct context *, u32 operation, u32 type, u64 n);
/* The sum, least or greatest (`what` 0 to 2) of the values of members, of which the 64 bits repeat. */
enum { FOR_ALL, SCANNED_BEFORE, SCANNED };
void cc_combine(u64 *values, u64 stride, u64 n, u64 members, u32 type, u32 how, u32 what);

/* threads.c */
void cc_printf(struct context *, u32 call, u8 *record, u64 n);

/* results.c */
enum { WINDOWS = 16 };
struct window {
  u64 first, known;
};
struct pages {
  int file;
  struct window windows[WINDOWS]; /* one a thread, whose counters are far from the others' */
  u64 entries[WINDOWS][512];
};
void cc_open_pages(struct pages *);
int cc_touched(struct pages *, u64 number, u64 address);
void cc_close_pages(struct pages *);
void cc_reduce_share(struct context *);
void cc_write_results(struct context *, struct job *);

/* reduction.c */
void cc_refuse_outside(struct context *, struct job *, struct pages *);
u64 cc_reduce(struct context *, struct job *, struct levels *, struct pages *);

#pragma GCC visibility pop

static inline u64 *status_of(struct context *c) { return (u64 *)c->job->status; }

static inline u64 *groups_done(struct context *c) { return status_of(c) + S_DONE + 8 * c->number; }

static inline u64 take_share(struct job *j) { return __atomic_fetch_add(&j->next_share, 1, __ATOMIC_RELAXED); }

static inline struct region *regions_of(struct job *j) { return (struct region *)j->regions; }

/* Distance from the data of a region, as its start has it, to its counters. */
static inline u64 shift_of(struct context *c, struct region *r) {
  return r->kind == LOCAL ? c->shift_local + (u64)c->local : r->kind == VARIABLE ? c->shift_global : c->shift_buffer;
}

/* Small counters: a byte for each 4 bytes of a buffer, whose carries go to the counters of the other kind. */
enum { SMALL_LOG = 2 };
static inline const u8 *small_at(struct context *c, u64 address) { return (u8 *)((address >> SMALL_LOG) + c->shift_small); }

/* Most accesses that a counter holds: the two bits above tell whether it was read and written. */
static inline u64 most_of(u64 granule) { return ((u64)1 << (8 * granule - 2)) - 1; }

static inline u64 load_counter(const void *counter, u64 granule) {
  if (granule == 4) return *(const u32 *)counter;
  if (granule == 8) return *(const u64 *)counter;
  return granule == 1 ? *(const u8 *)counter : *(const uint16_t *)counter;
}

static inline void store_counter(void *counter, u64 granule, u64 word) {
  if (granule == 4) *(u32 *)counter = word;
  else if (granule == 8) *(u64 *)counter = word;
  else if (granule == 1) *(u8 *)counter = word;
  else *(uint16_t *)counter = word;
}

#endif
