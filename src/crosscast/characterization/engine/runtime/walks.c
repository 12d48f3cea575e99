/* Accesses of a work-item that rise, or fall: a CPU, which runs work-items in turn, uses a line of one again in the next
 * work-item's walk. At most a line of a CPU counts of each distance. */
#include "sub_groups.h"
#include <string.h>

struct walk {
  u64 bytes, distances; /* the latter, one or another */
  u64 falls;
};

static void end_walk(struct sub_site *s, struct walk *w, u64 items) {
  u64 bytes = items * w->bytes;
  s->moved += bytes, s->walks += bytes * (63 - __builtin_clzll(w->bytes | 1));
  s->aligned += bytes * __builtin_ctzll(w->distances | (u64)1 << 63);
  *w = (struct walk){0};
}

/* Go on by a distance so many times. */
static void walk_on(struct sub_site *s, struct walk *w, u64 distance, u64 times) {
  u64 falls = distance >> 63;
  if (!distance || !times) return;
  if (falls != w->falls) end_walk(s, w, 1);
  w->falls = falls;
  w->bytes += times * least(falls ? -distance : distance, CPU_LINE), w->distances |= distance;
}

/* Each of so many work-items goes on by a distance so many times. */
void cc_add_even_walks(struct sub_site *s, u64 distance, u64 times, u64 items) {
  struct walk w = {0};
  walk_on(s, &w, distance, times), end_walk(s, &w, items);
}

static void add_runs(struct sub_site *s, const struct reader *r) {
  struct walk w = {0};
  for (u64 at = r->at; at != r->end; at += 3) {
    u64 more = word_at(r, at + 2) - 1, last = word_at(r, at) + more * word_at(r, at + 1);
    walk_on(s, &w, word_at(r, at + 1), more);
    if (at + 3 != r->end) walk_on(s, &w, word_at(r, at + 3) - last, 1);
  }
  end_walk(s, &w, 1);
}

/* Walks of eight work-items, and what those that have ended add up to. Irregular ones end at random: no branches. */
struct walks {
  wide8 last, bytes, distances, falls, moved, walks, aligned;
};

static inline void end_walks(struct walks *w, wide8 ends) {
  wide8 bytes = w->bytes & ends;
  w->moved += bytes;
  w->walks += bytes * (63 - __builtin_elementwise_clzg(bytes | 1));
  w->aligned += bytes * __builtin_elementwise_ctzg(w->distances | (u64)1 << 63);
  w->bytes &= ~ends, w->distances &= ~ends;
}

static inline void walk_all_on(struct walks *w, wide8 address, wide8 there) {
  wide8 distance = (address - w->last) & there, goes = (wide8)(distance != 0), falls = (wide8)(distance >> 63 != 0);
  end_walks(w, goes & (falls ^ w->falls));
  w->falls = (falls & goes) | (w->falls & ~goes), w->last = address, w->distances |= distance;
  w->bytes += __builtin_elementwise_min((distance ^ falls) - falls, (wide8){0} + CPU_LINE);
}

typedef u64 loaded8 __attribute__((vector_size(8 * AT_ONCE), aligned(8), may_alias));

#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define LOW_2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

static inline void mirror(wide8 *v) {
  wide8 a[8], b[8];
  for (u32 i = 0; i < 8; i += 2) a[i] = LOW(v[i], v[i + 1]), a[i + 1] = HIGH(v[i], v[i + 1]);
  for (u32 i = 0; i < 8; i += i & 1 ? 3 : 1) b[i] = LOW_2(a[i], a[i + 2]), b[i + 2] = HIGH_2(a[i], a[i + 2]);
  for (u32 i = 0; i < 4; i++) v[i] = LOW_4(b[i], b[i + 4]), v[i + 4] = HIGH_4(b[i], b[i + 4]);
}

/* The next eight words of a work-item; behind its last one stands anything. */
static inline wide8 load(const struct reader *r, u64 place) {
  u64 at = place & r->last, around[AT_ONCE];
  if (at + AT_ONCE <= r->last + 1) return *(const loaded8 *)(r->words + at);
  for (u32 k = 0; k < AT_ONCE; k++) around[k] = word_at(r, at + k);
  return *(const loaded8 *)around;
}

struct lanes {
  const struct reader *readers[AT_ONCE];
  u64 places[AT_ONCE], left[AT_ONCE], fresh[AT_ONCE];
};

/* Work-items whose walks are complete are followed by others; 0 if there are none. */
static int refill(struct lanes *l, const struct reader **next, const struct reader *end) {
  u64 any = 0;
  for (u32 i = 0; i < AT_ONCE; i++) {
    l->fresh[i] = 0;
    for (; !l->left[i] && *next < end; ++*next)
      l->readers[i] = *next, l->places[i] = (*next)->at, l->left[i] = (*next)->end - (*next)->at, l->fresh[i] = -1;
    any |= l->left[i];
  }
  return any != 0;
}

static void add_streams(struct sub_site *s, const struct reader *r, u32 n) {
  struct walks w = {0};
  struct lanes l = {0};
  for (u32 i = 0; i < AT_ONCE; i++) l.readers[i] = r;
  for (const struct reader *next = r, *end = r + n; refill(&l, &next, end);) {
    wide8 v[AT_ONCE], fresh = *(const loaded8 *)l.fresh, left = *(const loaded8 *)l.left;
    for (u32 i = 0; i < AT_ONCE; i++) v[i] = load(l.readers[i], l.places[i]);
    mirror(v);
    end_walks(&w, fresh);
    w.last = (v[0] & fresh) | (w.last & ~fresh);
    _Pragma("unroll") for (u32 k = 0; k < AT_ONCE; k++) walk_all_on(&w, v[k], (wide8)(left > k));
    for (u32 i = 0; i < AT_ONCE; i++) l.places[i] += AT_ONCE, l.left[i] -= least(l.left[i], AT_ONCE);
  }
  end_walks(&w, (wide8){0} - 1);
  for (u32 i = 0; i < AT_ONCE; i++) s->moved += w.moved[i], s->walks += w.walks[i], s->aligned += w.aligned[i];
}

void cc_add_walks(struct sub_site *s, const struct reader *r, u32 n, int runs) {
  for (u32 i = 0; runs && i < n; i++) add_runs(s, &r[i]);
  if (!runs) add_streams(s, r, n);
}
