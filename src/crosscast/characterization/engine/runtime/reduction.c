/* From counters and strided accesses to how many addresses have each count, with 0 to 10 bits skipped. */
#define _GNU_SOURCE
#include "runtime.h"
#include <string.h>

static void tally(struct context *c, struct levels *v, u64 level, u64 count, u64 addresses) {
  addresses *= v->times;
  if (level >= LEVELS && count > v->largest) v->largest = count;
  if (count < SMALL && count > v->most[level]) v->most[level] = count;
  if (count < SMALL) v->small[4 * (level * SMALL + count)] += addresses;
  else cc_log_add(c, &v->large[level], count, addresses);
}

static u64 put_aside(struct context *c, u64 counter) {
  if (!c->spilled) return 0;
  u64 *k = cc_log_find(&c->spills, counter);
  return *k ? c->spills.values[k - c->spills.keys] : 0;
}

/* One region on its way through the reduction. Of each thread, `level` is how many reads and writes each
 * granule has at this place by strided accesses. */
struct reducing {
  struct context *c;
  struct region *r;
  struct levels *v;
  u64 threads, log_g;
  u64 (*level)[2];
  struct pairs *pairs;
  struct alike *alike;
  u64 places[PLACES]; /* of the chunks that are reduced together, how many are at each place among those of a turn */
  struct {
    u64 any, last, bytes;
  } union_[2]; /* of reads and writes that may overlap: where the last one starts, and bytes before its own */
};

/* Where the reads or the writes of a chunk start: the first, the last, and bytes of all but the last. */
struct starts {
  u64 any, first, last, bytes;
};

/* Chunks in which strided accesses change in the same way, of which the first is reduced for all of them. */
enum { MOST_ALIKE = 64 };
struct alike {
  u64 chunk, times, places[PLACES], hash, (*level)[2]; /* `level` as it was before the first */
  struct starts starts[2];
};

/* How often two small counters that stand side by side were found to have such values; and sums of four each. Two
 * tables, so that equal pairs that follow each other do not wait. */
struct pairs {
  int any;
  u32 counters[1 << 16][2], fours[1 << 16][2];
};

/* Changes in a chunk by the strided accesses of one thread and kind of access; 0 if there are none. */
static struct changes *changes_of(struct reducing *x, u64 t, u64 write, u64 chunk) {
  struct changes *chunks = x->c[t].spreads[2 * (x->r - regions_of(x->c->job)) + write];
  return chunks && chunks[chunk].count ? &chunks[chunk] : 0;
}

static u64 width_of(struct reducing *x, u64 write) {
  u64 width = write ? x->r->write_bytes : x->r->read_bytes;
  return width ? width : x->r->granule;
}

/* An access covers its own bytes, up to where the next one starts. */
static u64 covered(struct reducing *x, u64 write, u64 to_next) {
  u64 width = width_of(x, write);
  return to_next < width ? to_next : width;
}

static void find_starts(struct reducing *x, const u8 *flags, struct starts *starts) {
  for (u64 write = 0; write < 2; write++) {
    struct starts s = {0};
    for (u64 i = 0; i < CHUNK >> x->log_g; i++) {
      u64 at = i << x->log_g;
      if (!(flags[i] >> write & 1)) continue;
      if (s.any) s.bytes += covered(x, write, at - s.last);
      else s.any = 1, s.first = at;
      s.last = at;
    }
    starts[write] = s;
  }
}

static void add_starts(struct reducing *x, u64 at, const struct starts *starts) {
  for (u64 write = 0; write < 2; write++) {
    const struct starts *s = &starts[write];
    if (!s->any) continue;
    if (x->union_[write].any) x->union_[write].bytes += covered(x, write, at + s->first - x->union_[write].last);
    x->union_[write].any = 1, x->union_[write].last = at + s->last;
    x->union_[write].bytes += s->bytes;
  }
}

/* Lines of a block of 256 bytes of a chunk. In keys, buffers begin on borders of pages, which is a block of each
 * channel. */
static void add_lines(struct reducing *x, u64 block, u64 lines) {
  if (x->r->kind == LOCAL) return;
  for (u64 place = 0; place < PLACES; place++) x->v->in_channel[CHANNELS / PLACES * place + block] += lines * x->places[place];
}

static void reduce_one(struct reducing *x, u64 chunk) {
  memset(x->places, 0, sizeof x->places);
  x->places[chunk % PLACES] = 1;
}

/* So many bytes of data from `at` on, whole chunks, whose granules have the same counts. */
static void reduce_even(struct reducing *x, u64 at, u64 nbytes) {
  u64 sum = 0, users = 0, writers = 0, readers = 0;
  for (u64 t = 0; t < x->threads; t++) {
    u64 reads = x->level[t][0], writes = x->level[t][1];
    sum += reads + writes, users += (reads | writes) != 0, readers += reads != 0, writers += writes != 0;
  }
  if (!sum) return;
  u64 m = nbytes >> x->log_g;
  x->v->reads += m * (readers != 0), x->v->writes += m * (writers != 0);
  if (users > 1 && writers && x->r->kind != LOCAL && !x->r->commutes) x->v->conflict = 1;
  if (x->r->overlaps) {
    u64 rest = nbytes - x->r->granule;
    struct starts starts[2] = {{readers != 0, 0, rest, (m - 1) * covered(x, 0, x->r->granule)},
                               {writers != 0, 0, rest, (m - 1) * covered(x, 1, x->r->granule)}};
    add_starts(x, at, starts);
  }
  for (u64 k = 0; k < PLACES; k++) x->places[(at / CHUNK + k) % PLACES] = (nbytes / CHUNK + PLACES - 1 - k) / PLACES;
  for (u64 block = 0; block < CHUNK >> 8; block++) add_lines(x, block, 2);
  tally(x->c, x->v, LEVELS + x->log_g, sum, m);
  for (u64 n = x->log_g + 1; n < LEVELS; n++) tally(x->c, x->v, n, sum <<= 1, m /= 2);
}

/* Small counts go to one of four tables in turn: equal ones that follow each other do not wait. */
static void tally_small(struct levels *v, u64 level, const u64 *counts, u64 m, u64 sum) {
  if (sum > v->most[level]) v->most[level] = sum;
  for (u64 i = 0; level >= LEVELS && i < m; i++) v->largest = counts[i] > v->largest ? counts[i] : v->largest;
  u64(*table)[4] = (u64(*)[4])v->small + level * SMALL;
  if (m < 4) {
    for (u64 i = 0; i < m; i++) table[counts[i]][0] += v->times;
    return;
  }
  for (u64 i = 0; i < m; i += 4)
    for (u64 k = 0; k < 4; k++) table[counts[i + k]][k] += v->times;
}

/* Tally the counts of a chunk at some level, and at those above. */
static void reduce_counts(struct reducing *x, u64 *counts, u64 n) {
  u64 m = CHUNK >> n, sum = 0;
  for (u64 i = 0; i < m; i++) sum += counts[i];
  if (!sum) return;
  for (;; n++) {
    u64 level = n == x->log_g ? LEVELS + n : n;
    if (sum < SMALL) tally_small(x->v, level, counts, m, sum);
    else
      for (u64 i = 0; i < m; i++)
        if (counts[i]) tally(x->c, x->v, level, counts[i], 1);
    for (u64 i = 0; n == LINE_LOG && i < m; i++) add_lines(x, i / 2, counts[i] != 0);
    if (n + 1 == LEVELS) return;
    m /= 2;
    for (u64 i = 0; i < m; i++) counts[i] = counts[2 * i] + counts[2 * i + 1];
  }
}

/* Add the strided accesses of one thread and kind to the counts of a chunk. */
static void add_strided(struct reducing *x, u64 t, u64 write, u64 chunk, u64 *counts, u8 *flags) {
  u64 m = CHUNK >> x->log_g, level = x->level[t][write], d[CHUNK];
  struct changes *changes = changes_of(x, t, write, chunk);
  if (!changes && !level) return;
  memset(d, 0, changes && changes->count > MOST_LISTED ? sizeof d : 8 * m);
  if (changes) cc_add_changes(&x->c[t], changes, d, x->log_g);
  for (u64 i = 0; i < m; i++) {
    level += d[i];
    counts[i] += level;
    flags[i] |= level ? 1 << write : 0;
  }
  x->level[t][write] = level;
}

#define ADD_COUNTERS(T)                                                        \
  for (u64 i = 0; i < CHUNK / sizeof(T); i++) {                                \
    T word = ((const T *)counters)[i];                                         \
    counts[i] += word & (T)most_of(sizeof(T));                                 \
    flags[i] |= word >> (8 * sizeof(T) - 2);                                   \
  }

static void add_small(struct reducing *x, u64 t, u64 at, u64 *restrict counts, u8 *restrict flags) {
  const u8 *small = small_at(&x->c[t], at);
  u64 apart = x->log_g - SMALL_LOG;
  for (u64 i = 0; i < CHUNK >> x->log_g; i++) {
    u8 count = small[i << apart];
    counts[i] += count, flags[i] |= count ? x->r->scattered : 0;
  }
}

static void add_counters(struct reducing *x, u64 t, u64 at, u64 *restrict counts, u8 *restrict flags) {
  struct context *c = &x->c[t];
  const u8 *counters = (u8 *)(at + shift_of(c, x->r));
  if (x->log_g == 2) ADD_COUNTERS(u32)
  else if (x->log_g == 0) ADD_COUNTERS(u8)
  else if (x->log_g == 1) ADD_COUNTERS(uint16_t)
  else ADD_COUNTERS(u64)
  if (!c->spilled) return;
  for (u64 i = 0; i < CHUNK >> x->log_g; i++) counts[i] += put_aside(c, (u64)counters + (i << x->log_g));
}

/* One chunk in which granules may differ. */
static void reduce_chunk(struct reducing *x, u64 chunk, int counted, int small, int in_order) {
  u64 counts[CHUNK], m = CHUNK >> x->log_g, conflict = 0;
  u8 all[CHUNK], own[CHUNK];
  memset(counts, 0, 8 * m), memset(all, 0, m);
  for (u64 t = 0; t < x->threads; t++) {
    memset(own, 0, m);
    for (u64 write = 0; write < 2; write++) add_strided(x, t, write, chunk, counts, own);
    if (counted) add_counters(x, t, x->r->start + chunk * CHUNK, counts, own);
    if (small) add_small(x, t, x->r->start + chunk * CHUNK, counts, own);
    for (u64 i = 0; i < m; i++) conflict |= own[i] && all[i] && (own[i] | all[i]) & 2, all[i] |= own[i];
  }
  if (conflict && x->r->kind != LOCAL && !x->r->commutes) x->v->conflict = 1;
  if (x->r->overlaps && in_order) {
    struct starts starts[2];
    find_starts(x, all, starts), add_starts(x, chunk * CHUNK, starts);
  }
  u64 reads = 0, writes = 0;
  for (u64 i = 0; i < m; i++) reads += all[i] & 1, writes += all[i] >> 1;
  x->v->reads += reads * x->v->times, x->v->writes += writes * x->v->times;
  reduce_counts(x, counts, x->log_g);
}

enum { MOST_PAIRED = 63 };

/* Add up the small counters of all threads; 0 if one is so large that sums of four would not fit a byte. */
static int sum_small(struct reducing *x, u64 at, u8 *restrict sums) {
  u8 conflict = 0, bits = 0;
  memcpy(sums, small_at(x->c, at), CHUNK >> SMALL_LOG);
  for (u64 i = 0; i < CHUNK >> SMALL_LOG; i++) bits |= sums[i];
  for (u64 t = 1; t < x->threads && bits <= MOST_PAIRED; t++) {
    const u8 *own = small_at(&x->c[t], at);
    for (u64 i = 0; i < CHUNK >> SMALL_LOG; i++) {
      u8 a = sums[i], b = own[i];
      conflict |= a && b, bits |= b, bits |= a + b;
      sums[i] = a + b;
    }
  }
  if (bits > MOST_PAIRED) return 0;
  if (conflict && x->r->scattered & 2 && !x->r->commutes) x->v->conflict = 1;
  return 1;
}

/* A chunk that has nothing but small counters: two at a time, which tells their sum as well. */
static int reduce_small(struct reducing *x, u64 at) {
  uint16_t counters[CHUNK / 8];
  u8 fours[CHUNK / 16], twos[CHUNK / 8];
  u64 sums[CHUNK / 64];
  struct pairs *p = x->pairs;
  if (!sum_small(x, at, (u8 *)counters)) return 0;
  if (!p) p = x->pairs = cc_map(x->c, sizeof *p);
  for (u64 i = 0; i < CHUNK / 8; i += 2) p->counters[counters[i]][0]++, p->counters[counters[i + 1]][1]++;
  for (u64 i = 0; i < CHUNK / 8; i++) twos[i] = (counters[i] & 255) + (counters[i] >> 8);
  for (u64 i = 0; i < CHUNK / 16; i++) fours[i] = twos[2 * i] + twos[2 * i + 1];
  for (u64 i = 0; i < CHUNK / 32; i++) p->fours[fours[2 * i] | fours[2 * i + 1] << 8][i & 1]++;
  for (u64 i = 0; i < CHUNK / 64; i++) sums[i] = fours[4 * i] + fours[4 * i + 1] + fours[4 * i + 2] + fours[4 * i + 3];
  reduce_counts(x, sums, 6);
  p->any = 1;
  return 1;
}

static void tally_some(struct reducing *x, u64 level, u64 count, u64 addresses) {
  if (count) tally(x->c, x->v, level, count, addresses);
}

/* What was found of pairs, counted at the levels that they tell of: 2 and 3, and 4 and 5. */
static void tally_pairs(struct reducing *x) {
  struct pairs *p = x->pairs;
  if (!p || !p->any) return;
  for (u64 pair = 1; pair < 1 << 16; pair++) {
    u64 n = (u64)p->counters[pair][0] + p->counters[pair][1], fours = (u64)p->fours[pair][0] + p->fours[pair][1];
    u64 a = pair & 255, b = pair >> 8, accessed = n * ((a != 0) + (b != 0));
    if (n) {
      tally_some(x, LEVELS + x->log_g, a, n);
      tally_some(x, x->log_g == SMALL_LOG ? LEVELS + SMALL_LOG : 3, b, n);
      if (x->log_g == SMALL_LOG) tally(x->c, x->v, 3, a + b, n);
      p->counters[pair][0] = p->counters[pair][1] = 0;
      x->v->reads += accessed * (x->r->scattered & 1), x->v->writes += accessed * (x->r->scattered >> 1);
    }
    if (fours) {
      tally_some(x, 4, pair & 255, fours), tally_some(x, 4, pair >> 8, fours);
      tally(x->c, x->v, 5, (pair & 255) + (pair >> 8), fours);
      p->fours[pair][0] = p->fours[pair][1] = 0;
    }
  }
  p->any = 0;
}

static int has_changes(struct reducing *x, u64 chunk) {
  for (u64 t = 0; t < x->threads; t++)
    if (changes_of(x, t, 0, chunk) || changes_of(x, t, 1, chunk)) return 1;
  return 0;
}

/* Whether accesses to a page of data were counted in counters, or in small ones. */
enum { COUNTED = 1, SMALL_COUNTED };
static int counted_in(struct reducing *x, struct pages *p, u64 at, u64 span) {
  int found = 0;
  for (u64 t = 0; t < x->threads; t++) {
    struct context *c = &x->c[t];
    u64 counters = at + shift_of(c, x->r), last = at + span - 1;
    if (cc_touched(p, 2 * t, counters) || cc_touched(p, 2 * t, counters + span - 1)) found |= COUNTED;
    if (!x->r->scattered) continue;
    if (cc_touched(p, 2 * t + 1, (u64)small_at(c, at)) || cc_touched(p, 2 * t + 1, (u64)small_at(c, last)))
      found |= SMALL_COUNTED;
  }
  return found;
}

static void reduce_alike(struct reducing *x, struct alike *a) {
  if (!a->times) return;
  u64(*now)[2] = x->level;
  x->level = a->level, x->v->times = a->times;
  memcpy(x->places, a->places, sizeof x->places), memset(a->places, 0, sizeof a->places);
  reduce_chunk(x, a->chunk, 0, 0, 0);
  x->level = now, x->v->times = 1, a->times = 0;
}

/* The changes of a chunk as a number, and the levels behind it. */
static u64 hash_changes(struct reducing *x, u64 chunk, u64 (*after)[2]) {
  u64 hash = 0;
  for (u64 i = 0; i < 2 * x->threads; i++) {
    const struct changes *of = changes_of(x, i / 2, i % 2, chunk);
    const struct change *all = x->c[i / 2].listed.items;
    u64 level = x->level[i / 2][i % 2];
    hash = (hash ^ level) * 0x9E3779B97F4A7C15u;
    for (u64 k = of ? of->first : 0; k; k = all[k - 1].next) {
      level += all[k - 1].by;
      hash = (hash ^ hash >> 29 ^ (all[k - 1].by * CHUNK + all[k - 1].at)) * 0x9E3779B97F4A7C15u;
    }
    after[i / 2][i % 2] = level;
  }
  return hash;
}

static int same_changes(struct reducing *x, u64 one, u64 other) {
  for (u64 i = 0; i < 2 * x->threads; i++) {
    const struct changes *a = changes_of(x, i / 2, i % 2, one), *b = changes_of(x, i / 2, i % 2, other);
    const struct change *all = x->c[i / 2].listed.items;
    u64 k = a ? a->first : 0, l = b ? b->first : 0;
    for (; k && l; k = all[k - 1].next, l = all[l - 1].next)
      if (all[k - 1].at != all[l - 1].at || all[k - 1].by != all[l - 1].by) return 0;
    if (k || l) return 0;
  }
  return 1;
}

/* Where the accesses of a chunk that has no counters start. */
static void find_starts_of_strided(struct reducing *x, u64 chunk, struct starts *starts) {
  u64 before[x->threads][2], counts[CHUNK];
  u8 all[CHUNK] = {0};
  memcpy(before, x->level, sizeof before), memset(counts, 0, sizeof counts);
  for (u64 i = 0; i < 2 * x->threads; i++) add_strided(x, i / 2, i % 2, chunk, counts, all);
  memcpy(x->level, before, sizeof before);
  find_starts(x, all, starts);
}

/* Let a chunk in which few things change wait for others like it; 0 if there are more. */
static int put_off(struct reducing *x, u64 chunk) {
  for (u64 i = 0; i < 2 * x->threads; i++) {
    const struct changes *of = changes_of(x, i / 2, i % 2, chunk);
    if (of && of->count > MOST_LISTED) return 0;
  }
  u64 nbytes = x->threads * sizeof *x->level, after[x->threads][2], hash = hash_changes(x, chunk, after);
  struct alike *a = &x->alike[hash % MOST_ALIKE];
  if (!a->times || a->hash != hash || memcmp(a->level, x->level, nbytes) || !same_changes(x, a->chunk, chunk)) {
    reduce_alike(x, a);
    a->chunk = chunk, a->hash = hash;
    memcpy(a->level, x->level, nbytes);
    if (x->r->overlaps) find_starts_of_strided(x, chunk, a->starts);
  }
  if (x->r->overlaps) add_starts(x, chunk * CHUNK, a->starts);
  a->times++, a->places[chunk % PLACES]++;
  memcpy(x->level, after, nbytes);
  return 1;
}

/* Whether strided accesses reach into a chunk that has no changes. */
static int has_level(struct reducing *x) {
  for (u64 t = 0; t < x->threads; t++)
    if (x->level[t][0] | x->level[t][1]) return 1;
  return 0;
}

/* Whether a chunk, in a page that was touched, has a counter that is not zero. */
static int has_counters(struct reducing *x, u64 at) {
  for (u64 t = 0; t < x->threads; t++) {
    const u8 *counters = (u8 *)(at + shift_of(&x->c[t], x->r));
    u64 words[CHUNK / 8], any = 0;
    memcpy(words, counters, CHUNK);
    for (u64 i = 0; i < CHUNK / 8; i++) any |= words[i];
    if (any) return 1;
  }
  return 0;
}

/* How many addresses have been tallied at a level. */
static u64 tallied(const struct levels *v, u64 level) {
  const struct log *l = &v->large[level];
  u64 sum = 0;
  for (u64 n = 1; n <= v->most[level]; n++) sum += small_of((struct levels *)v, level, n);
  for (u64 i = 0; l->few && i < FEW; i++) sum += few_of(l, i);
  for (u64 i = 0; i < l->capacity; i++) sum += l->keys[i] ? l->values[i] : 0;
  return sum;
}

static void reduce_region(struct reducing *x, struct pages *p) {
  struct region *r = x->r;
  r->lines_64 = -tallied(x->v, 6), r->lines_128 = -tallied(x->v, 7), x->v->largest = 0;
  u64 even = 0, touched = 0, size = (r->size + CHUNK - 1) & -CHUNK, found[2] = {x->v->reads, x->v->writes};
  memset(x->union_, 0, sizeof x->union_);
  memset(x->level, 0, x->threads * sizeof *x->level);
  for (u64 chunk = 0; chunk * CHUNK < r->size; chunk++) {
    u64 at = r->start + chunk * CHUNK;
    /* A page of counters holds those of one page of data, up to the distance between the two. */
    if (r->counted && (!chunk || at % PAGE < CHUNK)) touched = counted_in(x, p, at, PAGE - at % PAGE);
    u64 counted = touched & COUNTED && !has_counters(x, at) ? touched - COUNTED : touched;
    if (!counted && !has_changes(x, chunk)) {
      even += CHUNK;
      continue;
    }
    reduce_even(x, chunk * CHUNK - even, even), even = 0;
    if (!counted && put_off(x, chunk)) continue;
    reduce_one(x, chunk);
    if (counted == SMALL_COUNTED && !r->overlaps && !has_changes(x, chunk) && !has_level(x) && reduce_small(x, at)) continue;
    reduce_chunk(x, chunk, counted & COUNTED, counted & SMALL_COUNTED, 1);
  }
  reduce_even(x, size - even, even);
  for (u64 i = 0; i < MOST_ALIKE; i++) reduce_alike(x, &x->alike[i]);
  tally_pairs(x);
  r->lines_64 += tallied(x->v, 6), r->lines_128 += tallied(x->v, 7), r->largest = x->v->largest;
  found[0] = x->v->reads - found[0], found[1] = x->v->writes - found[1];
  for (u64 write = 0; write < 2; write++) {
    u64 width = width_of(x, write), *bytes = write ? &r->write_bytes : &r->read_bytes;
    *bytes = r->overlaps >> write & 1 ? x->union_[write].bytes + x->union_[write].any * width : found[write] * width;
  }
}

/* A counter that belongs to no memory of the program's. */
static void note_outside(struct reducing *x, u64 t, u64 at, u64 how) {
  if (x->r->kind == BUFFER) cc_read_beside(&x->c[t], at, how >> 1);
  else cc_fail(&x->c[t], OUTSIDE, 0, at, 0, 0, at, at);
}

/* Counters from `low` to before `high` belong to no memory of the program's. */
static void refuse_counted(struct reducing *x, struct pages *p, u64 low, u64 high) {
  u64 g = x->r->granule;
  for (u64 t = 0; t < x->threads; t++) {
    u64 shift = shift_of(&x->c[t], x->r);
    for (u64 at = low; at < high; at += g) {
      u64 counter = at + shift;
      if (!cc_touched(p, t, counter)) at += (PAGE - 1 - counter % PAGE) & -g;
      else if (load_counter((void *)counter, g)) note_outside(x, t, at, load_counter((void *)counter, g) >> (8 * g - 2));
    }
    if (!x->r->scattered) continue;
    for (u64 at = low & -4; at < high; at += 4) {
      const u8 *counter = small_at(&x->c[t], at);
      if (!cc_touched(p, t, (u64)counter)) at += (PAGE - 1 - (u64)counter % PAGE) << SMALL_LOG;
      else if (*counter && at >= low) note_outside(x, t, at, x->r->scattered);
    }
  }
}

/* Accesses outside of all regions leave counters beside them: what is farther away than a page faulted. */
static void refuse_outside(struct reducing *x, struct pages *p) {
  struct region *r = x->r, *first = regions_of(x->c->job), *last = first + x->c->job->n_regions - 1;
  u64 g = r->granule, end = (r->start + r->size + g - 1) & -g, low = r->start & -PAGE, high = (end + PAGE - 1) & -PAGE;
  if (r->kind == LOCAL) low = r->start, high = end + PAGE;
  if (r->kind == BUFFER) low -= PAD, high += PAD;
  if (r > first && r[-1].start + r[-1].size > low) low = (r[-1].start + r[-1].size + g - 1) & -g;
  if (r < last && r[1].start < high) high = r[1].start;
  refuse_counted(x, p, low, r->start);
  refuse_counted(x, p, end, high);
}

void cc_refuse_outside(struct context *c, struct job *j, struct pages *p) {
  struct reducing x = {.c = c, .threads = j->threads};
  for (u64 i = 0; i < j->n_regions; i++) {
    x.r = regions_of(j) + i;
    if (x.r->kind != IMAGE && x.r->counted) refuse_outside(&x, p);
    /* A write may start inside, and run over the end. */
    u64 end = x.r->start + x.r->size;
    for (u64 at = end; x.r->kind == BUFFER && at % PAGE; at++)
      if (*(u8 *)at) cc_read_beside(c, at, 1);
  }
}

/* Reduce regions until there are no more; returns the share taken last, behind all of them. */
u64 cc_reduce(struct context *c, struct job *j, struct levels *v, struct pages *p) {
  v->small = cc_map(c, (LEVELS + 4) * SMALL * 8 * 4);
  v->times = 1;
  struct alike alike[MOST_ALIKE] = {0};
  u64(*levels)[2] = cc_map(c, (MOST_ALIKE + 1) * 16 * j->threads), i;
  for (i = 0; i < MOST_ALIKE; i++) alike[i].level = levels + (i + 1) * j->threads;
  struct reducing x = {.alike = alike, .level = levels, .c = c, .v = v, .threads = j->threads};
  while ((i = take_share(j)) < j->n_regions) {
    x.r = regions_of(j) + i, x.log_g = __builtin_ctzll(x.r->granule);
    reduce_region(&x, p);
  }
  return i;
}
