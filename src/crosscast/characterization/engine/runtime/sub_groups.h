/* What hardware does that runs work-items in step, by sub-groups of 32 and of 64 that follow each other in a
 * work-group: which sectors and lines of memory each access touches, how long banks of local memory are busy, and
 * how many work-items of an atomic access meet at one address.
 *
 * The k-th execution of an instruction by one work-item goes with the k-th by its neighbours. A row is what 64
 * work-items access then, as keys: distances from where memory begins, in units of what accesses are aligned to.
 * What it costs depends on distances between the work-items, its shape, and on where in a line it begins. */
#ifndef CC_SUB_GROUPS_H
#define CC_SUB_GROUPS_H
#include "runtime.h"
#include <string.h>

enum { LANES = 64, HALF = 32, BLOCKS = MAX_ITEMS / LANES, AT_ONCE = 8, LINE = 128, CPU_LINE = 64 };
static const u32 ABSENT = 1u << 31; /* no distance */
enum { ACCESSES, SECTORS, LINES_64, LINES_128, CONFLICTS, OF_WIDTH, OF_ROW = 2 * OF_WIDTH };
enum { UNIFORM, CONTIGUOUS, STRIDED, IRREGULAR, STRIDES, PAIRS };
/* A time, from its highest bits on: segments in turn, places of a segment, how far a loop there has come, and sites. */
enum { SEQUENCE_LOG = 44, ORDER_LOG = 32, LOOP_LOG = SITE_LOG, MOST_TOLD = (1 << SITE_LOG) - 1 };
static inline u64 part_of_loop(u64 n) { return ((u64)1 << (ORDER_LOG - LOOP_LOG)) / n << LOOP_LOG; }
static const u32 NONE = ~(u32)0;
typedef u32 row8 __attribute__((vector_size(4 * AT_ONCE)));
typedef u64 wide8 __attribute__((vector_size(8 * AT_ONCE)));
typedef _Bool bits8 __attribute__((ext_vector_type(AT_ONCE)));

/* A bit for each element that is not zero. */
static inline u32 bits_of(row8 x) {
  bits8 bits = __builtin_convertvector(x, bits8);
  u8 found;
  memcpy(&found, &bits, sizeof found);
  return found;
}

/* Distances of work-items from the first one that takes part, and how many rows there were by the place in a line
 * where they begin; what they cost is found out in the end. */
struct shape {
  u32 distances[LANES];
  u64 *times;
};

/* The shape that work-items have whose addresses rise evenly along x and along y. */
struct plane {
  u64 dx, dy, columns;
  struct shape *shape;
  u32 n, intervals[LANES][2]; /* what it covers, from the first work-item's key on */
};

/* Rows of one block of 64 work-items whose accesses are not yet known to go together. */
struct waiting {
  u32 *rows, used, room, filled[LANES];
};

/* What a group left at a site of local memory, event by event: a header and the addresses of its work-items. Groups
 * that leave the same are one group, so many times. */
struct repeat {
  u64 *words, used, room;
  u64 at;           /* as far as the group that runs has left the same */
  u64 times;        /* groups that did; 0 while the first one runs */
  u64 alike, other; /* how often it was worth while */
  int differs;      /* the group that runs does not */
};

struct sub_site {
  u64 flags, nbytes, shift, origin, place_mask; /* of a key: its place in a line, or in a word of local memory */
  u64 totals[OF_ROW], pairs[PAIRS];
  u64 moved;          /* bytes between successive accesses of one work-item */
  u64 walks, aligned; /* these times the logarithm of their walk, and of what divides all of its distances */
  u64 hits, misses, batched;
  struct shape *shapes, *shape; /* remembered ones, and the last one */
  struct plane plane;
  u32 (*batch)[LANES];
  u64 batch_times[AT_ONCE];
  int is_weighted; /* some of these are not 1 */
  struct waiting *waiting;
  u64 weight; /* how many groups the one stands for that is put together */
  struct repeat *repeat;
  struct again *again; /* by block */
  u64 same, changes;   /* how often a block left the same again, or something else */
  u64 kept, lost;      /* blocks of streams that had room, and that had not */
};

/* What one work-item accessed, in order: addresses, or runs of them at equal distances. */
struct reader {
  const u64 *words;
  u64 last; /* place in the ring of words */
  u64 at, end, in_run, left; /* `left`: accesses */
};

static inline u64 word_at(const struct reader *r, u64 i) { return r->words[i & r->last]; }

static inline u64 least(u64 a, u64 b) { return a < b ? a : b; }

static inline u64 sum_of(row8 x) {
  u64 sum = 0;
  for (u32 i = 0; i < AT_ONCE; i++) sum += x[i];
  return sum;
}

static inline struct sub_site *site_of(struct context *c, u64 number) { return (struct sub_site *)c->sub_sites + number; }

static inline int is_waiting(const struct sub_site *s, u32 block) { return s->waiting && s->waiting[block].used; }

/* Whether the first group of this thread has told what all groups do at a site. */
static inline int is_done_before(struct context *c, const struct sub_site *s) { return s->flags & SITE_REPEATED && *groups_done(c); }

static inline u64 number_of(struct job *j, u64 x, u64 y, u64 z) { return x + j->groups[0] * (y + j->groups[1] * z); }

static inline u64 time_of(u64 sequence, u64 order, u64 site) {
  return (sequence << SEQUENCE_LOG) + (order << ORDER_LOG) + (site < MOST_TOLD ? site : MOST_TOLD);
}

/* Whether accesses reach memory, and if so what they do there: an atomic fetches what it writes. */
static inline int is_touched(struct context *c, const struct sub_site *s) {
  c->how = s->flags & SITE_ATOMIC ? 12 : s->flags & SITE_WRITES ? 4 : 8; /* as `reuse.c` has it */
  return !(s->flags & SITE_LOCAL);
}

/* Eight times eight keys, mirrored. */
static inline void cc_mirror(row8 *v) {
  row8 a[8], b[8];
  memcpy(a, v, sizeof a);
  for (u32 i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (u32 i = 0; i < 8; i += 4)
    for (u32 k = 0; k < 2; k++) {
      a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * k + 1] = __builtin_shufflevector(b[i + k], b[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (u32 i = 0; i < 4; i++) {
    v[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

#pragma GCC visibility push(hidden)

/* shapes.c */
void cc_prepare_shapes(void);
void cc_count_rows(const struct sub_site *, row8 *v, u32 room, const u8 *lanes, const u32 *n, row8 *costs, row8 *pairs);
void cc_add_sums(struct sub_site *, row8 *costs, row8 *pairs);
void cc_add_rows(struct context *, struct sub_site *, const u32 *keys, u32 step, u64 times, u64 weight);
struct shape *cc_shape_of_plane(struct context *, struct sub_site *, u64 dx, u64 dy, u64 columns);
void cc_add_grid(struct context *, struct sub_site *, struct shape *, const u32 *keys, u32 across, u64 columns, u32 up, u64 rows);

/* walks.c */
void cc_add_walks(struct sub_site *, const struct reader *, u32 n, int runs);
void cc_add_even_walks(struct sub_site *, u64 distance, u64 times, u64 items);

/* sub_groups.c */
u32 cc_key_of(struct context *, struct sub_site **, u64 address);
void cc_keys_of(struct context *, const struct sub_site *, const u64 *addresses, u32 n, u32 *keys);
void cc_set_time(struct context *, u64 order, u64 site);
void cc_add_keys(struct context *, struct sub_site *, const u32 *keys, u32 block, u32 n, int final);
void cc_add_addresses(struct context *, struct sub_site *, const u64 *addresses, u32 block, u32 n, int final);
void cc_end_again(struct context *, struct sub_site *);
void cc_flush_waiting(struct context *, struct sub_site *, struct waiting *);
void cc_end_repeat(struct context *, struct sub_site *);
void cc_stop_repeat(struct context *, struct sub_site *);

#pragma GCC visibility pop
#endif
