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
  row8 last, bytes, distances, falls, moved, walks, aligned;
};

static inline void end_walks(struct walks *w, row8 ends) {
  row8 bytes = w->bytes & ends;
  w->moved += bytes;
  w->walks += bytes * (31 - __builtin_elementwise_clzg(bytes | 1));
  w->aligned += bytes * __builtin_elementwise_ctzg(w->distances | 1u << 31);
  w->bytes &= ~ends, w->distances &= ~ends;
}

static inline void walk_all_on(struct walks *w, row8 address, row8 there) {
  row8 distance = (address - w->last) & there, goes = (row8)(distance != 0), falls = (row8)(distance >> 31 != 0);
  end_walks(w, goes & (falls ^ w->falls));
  w->falls = (falls & goes) | (w->falls & ~goes), w->last = address, w->distances |= distance;
  w->bytes += __builtin_elementwise_min((distance ^ falls) - falls, (row8){0} + CPU_LINE);
}

/* Work-items side by side: where each is, and how many words it has left. */
struct lanes {
  const struct reader *readers[AT_ONCE];
  u64 places[AT_ONCE];
  u32 left[AT_ONCE];
};

/* Work-items whose walks are complete are followed by others, as long as there are any; returns where. */
static inline row8 refill(struct lanes *l, row8 *left, const struct reader **next, const struct reader *end) {
  const row8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  row8 fresh = {0};
  for (u32 done = bits_of((row8)(*left == 0)); done; done &= done - 1) {
    while (*next < end && (*next)->at == (*next)->end) ++*next;
    if (*next == end) break;
    u32 i = __builtin_ctz(done);
    row8 here = (row8)(places == i);
    l->readers[i] = *next, l->places[i] = (*next)->at;
    *left |= here & (u32)((*next)->end - (*next)->at), fresh |= here, ++*next;
  }
  return fresh;
}

/* The next eight words of a work-item, counted from `origin` on, and their bits; behind its last one stands anything. */
static inline void load(const struct lanes *l, u32 i, u64 origin, row8 *low, wide8 *bits) {
  const struct reader *r = l->readers[i];
  const wide8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  u64 at = l->places[i] & r->last, around[AT_ONCE];
  wide8 words;
  row8 halves[2];
  for (u32 k = 0; at + AT_ONCE > r->last + 1 && k < AT_ONCE; k++) around[k] = word_at(r, at + k);
  memcpy(&words, at + AT_ONCE > r->last + 1 ? around : r->words + at, sizeof words);
  words -= origin;
  memcpy(halves, &words, sizeof halves);
  *low = __builtin_shufflevector(halves[0], halves[1], 0, 2, 4, 6, 8, 10, 12, 14);
  *bits |= words & (wide8)(places < l->left[i]);
}

enum { MOST_WORDS = 1 << 21 /* of which the sums have room in 32 bits */, NEAR = 1 << 30 };

/* Eight work-items at a time; 0 if addresses are too far from each other, or too many. */
static int add_together(struct sub_site *s, const struct reader *r, u32 n) {
  struct walks w = {0};
  struct lanes l = {0};
  row8 left = {0};
  wide8 bits = {0};
  u64 origin = word_at(r, r->at) - NEAR;
  if (r[n - 1].end - r->at > MOST_WORDS) return 0;
  for (u32 i = 0; i < AT_ONCE; i++) l.readers[i] = r;
  for (const struct reader *next = r, *end = r + n;;) {
    row8 v[AT_ONCE], fresh = refill(&l, &left, &next, end);
    if (!bits_of(left)) break;
    memcpy(l.left, &left, sizeof left);
    for (u32 i = 0; i < AT_ONCE; i++) load(&l, i, origin, &v[i], &bits), l.places[i] += AT_ONCE;
    cc_mirror(v);
    end_walks(&w, fresh);
    w.last = (v[0] & fresh) | (w.last & ~fresh);
    _Pragma("unroll") for (u32 k = 0; k < AT_ONCE; k++) walk_all_on(&w, v[k], (row8)(left > k));
    left -= __builtin_elementwise_min(left, (row8){0} + AT_ONCE);
  }
  if (bits_of(__builtin_convertvector(bits >> 31, row8))) return 0;
  end_walks(&w, (row8){0} - 1);
  s->moved += sum_of(w.moved), s->walks += sum_of(w.walks), s->aligned += sum_of(w.aligned);
  return 1;
}

static void add_stream(struct sub_site *s, const struct reader *r) {
  struct walk w = {0};
  for (u64 at = r->at; at != r->end && at + 1 != r->end; at++) walk_on(s, &w, word_at(r, at + 1) - word_at(r, at), 1);
  end_walk(s, &w, 1);
}

void cc_add_walks(struct sub_site *s, const struct reader *r, u32 n, int runs) {
  int together = !runs && add_together(s, r, n);
  for (u32 i = 0; !together && i < n; i++) runs ? add_runs(s, &r[i]) : add_stream(s, &r[i]);
}
