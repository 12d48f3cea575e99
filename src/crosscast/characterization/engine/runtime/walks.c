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

/* The next words of work-items; behind the last one stands anything. */
static inline void load(const struct reader *r, u64 place, wide8 *words) {
  u64 at = place & r->last;
  if (at + AT_ONCE <= r->last + 1) memcpy(words, r->words + at, sizeof *words);
  else
    for (u32 k = 0; k < AT_ONCE; k++) (*words)[k] = word_at(r, at + k);
}

/* The elements of `v`, each so many places further, and before them the last ones of `before`. */
#define MOVED(before, v, by) \
  __builtin_shufflevector(before, v, 8 - (by), 9 - (by), 10 - (by), 11 - (by), 12 - (by), 13 - (by), 14 - (by), 15 - (by))

/* What walks have come to at each of eight addresses: bytes, and all distances, one or another. */
struct walks {
  row8 bytes, distances;
};

/* Add what walks had come to so many places before, unless they began since. */
#define ADD_BEFORE(w, by, began)                                               \
  (w).bytes += MOVED((row8){0}, (w).bytes, by) & row_of(~(began));             \
  (w).distances |= MOVED((row8){0}, (w).distances, by) & row_of(~(began));     \
  (began) |= (began) << (by) | ((1u << (by)) - 1);

enum { PIECE = 2048 };

/* All work-items one after the other, eight addresses at a time: walks end where the next work-item begins, or where the
 * direction changes. Irregular ones end at random: no branches. */
static void add_streams(struct sub_site *s, const struct reader *r, u32 n) {
  const struct reader *next = r, *end = r + n;
  struct walks w = {0};
  row8 moved = {0};
  wide8 walks = {0}, aligned = {0};
  u32 falling = 0;
  u8 begins[PIECE / AT_ONCE];
  for (u64 start = r->at, at = start, last = end[-1].end; at <= last; at += AT_ONCE) {
    u64 place = (at - start) % PIECE / AT_ONCE;
    if (!place) {
      memset(begins, 0, sizeof begins);
      for (; next < end && next->at - at < PIECE; next++) begins[(next->at - at) / AT_ONCE] |= 1u << (next->at - at) % AT_ONCE;
    }
    u32 begin = begins[place];
    if (last - at < AT_ONCE) begin |= 255u << (last - at);
    wide8 to, from;
    load(r, at, &to), load(r, at - 1, &from);
    wide8 distance = to - from, falls = (wide8)((distances8)distance < 0);
    row8 bytes = __builtin_convertvector(__builtin_elementwise_min((distance ^ falls) - falls, (wide8){0} + CPU_LINE), row8);
    u32 goes = bits_of(bytes) & ~begin, down = bits_of(__builtin_convertvector(falls, row8)) & goes;
    /* Where it stays in place, the direction is that of the step before: a carry takes it there. */
    u32 stays = ~goes & 255, way = down | (((stays + ((down << 1 | falling) & stays)) ^ stays) & stays);
    u32 first = begin | (goes & (down ^ (way << 1 | falling))), began = first;
    struct walks before = w;
    w.bytes = bytes & row_of(goes), w.distances = __builtin_convertvector(distance, row8) & row_of(goes);
    moved += w.bytes, falling = way >> (AT_ONCE - 1) & 1;
    ADD_BEFORE(w, 1, began) ADD_BEFORE(w, 2, began) ADD_BEFORE(w, 4, began)
    row8 old = row_of((first & -first) - 1);
    w.bytes += before.bytes[AT_ONCE - 1] & old, w.distances |= before.distances[AT_ONCE - 1] & old;
    row8 ended = MOVED(before.bytes, w.bytes, 1) & row_of(first), distances = MOVED(before.distances, w.distances, 1);
    wide8 wide = __builtin_convertvector(ended, wide8);
    walks += wide * __builtin_convertvector(31 - __builtin_elementwise_clzg(ended | 1), wide8);
    aligned += wide * __builtin_convertvector(__builtin_elementwise_ctzg(distances | 1u << 31), wide8);
  }
  for (u32 i = 0; i < AT_ONCE; i++) s->moved += moved[i], s->walks += walks[i], s->aligned += aligned[i];
}

void cc_add_walks(struct sub_site *s, const struct reader *r, u32 n, int runs) {
  for (u32 i = 0; runs && i < n; i++) add_runs(s, &r[i]);
  if (!runs) add_streams(s, r, n);
}
