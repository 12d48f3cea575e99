/* What rows cost. Shapes that come again are remembered, and how often; rows of sites where they do not are counted
 * eight at a time. */
#include "sub_groups.h"
#include <string.h>

enum { SHAPES = 32, PATIENCE = 64 };

#define INLINE static inline __attribute__((always_inline))

INLINE void compare(row8 *v, u32 i, u32 k) {
  row8 a = v[i], b = v[k];
  v[i] = __builtin_elementwise_min(a, b), v[k] = __builtin_elementwise_max(a, b);
}

/* Networks that merge two sorted halves of keys `r` apart, and that sort (Batcher 1968), unrolled. */
INLINE void merge_2(row8 *v, u32 r) { compare(v, 0, r); }

#define MERGE(n, half)                                                                      \
  INLINE void merge_##n(row8 *v, u32 r) {                                                   \
    half(v, 2 * r), half(v + r, 2 * r);                                                     \
    _Pragma("unroll") for (u32 i = 1; i + 1 < n; i += 2) compare(v, i * r, (i + 1) * r);    \
  }
MERGE(4, merge_2)
MERGE(8, merge_4)
MERGE(16, merge_8)
MERGE(32, merge_16)
MERGE(64, merge_32)

INLINE void sort_4(row8 *v) { merge_2(v, 1), merge_2(v + 2, 1), merge_4(v, 1); }
static void sort_8(row8 *v) { sort_4(v), sort_4(v + 4), merge_8(v, 1); }
static void join_4(row8 *v) { merge_8(v, 1); }
static void join_8(row8 *v) { merge_16(v, 1); }
static void join_16(row8 *v) { merge_32(v, 1); }
static void join_32(row8 *v) { merge_64(v, 1); }
static void sort_16(row8 *v) { sort_8(v), sort_8(v + 8), join_8(v); }
static void sort_32(row8 *v) { sort_16(v), sort_16(v + 16), join_16(v); }

/* Of 4, 8, 16 and 32 keys, and two times as many. */
static void (*const sorters[])(row8 *) = {sort_4, sort_8, sort_16, sort_32};
static void (*const mergers[])(row8 *) = {join_4, join_8, join_16, join_32};

static int is_sorted(const row8 *v, u32 n) {
  row8 falls = {0};
  for (u32 i = 1; i < n; i++) falls |= (row8)(v[i - 1] > v[i]);
  return !bits_of(falls);
}

/* Distinct lines of each size that rising keys touch; keys that touch just one each are told apart by a few bits. */
static void count_lines(const struct sub_site *s, const row8 *v, u32 n, row8 *lines) {
  u32 bits = 5 - s->shift, extent = (s->nbytes - 1) >> s->shift;
  if (s->nbytes <= (u64)1 << s->shift) {
    row8 some = (row8)(v[0] != NONE) & 1, ended = some & (row8)(v[n - 1] == NONE), times = {0};
    for (u32 i = 1; i < n; i++) { /* how often they differ by 0 to 3, 7 bits each: there are less than 64 of all */
      row8 differ = __builtin_elementwise_min((v[i] ^ v[i - 1]) >> bits, (row8){0} + 4);
      times += (row8){1, 1, 1, 1, 1, 1, 1, 1} << ((differ << 3) - differ);
    }
    row8 same = times & 127, near = same + (times >> 7 & 127), all[] = {same, near, near + (times >> 14 & 127) + (times >> 21 & 127)};
    for (u32 level = 0; level < 3; level++) lines[level] += n - 1 - all[level] + some - ended;
    return;
  }
  for (u32 level = 0; level < 3; level++, bits++) {
    row8 end = {0};
    for (u32 i = 0; i < n; i++) {
      row8 first = v[i] >> bits, behind = ((v[i] + extent) >> bits) + 1, valid = (row8)(v[i] != NONE);
      lines[level] += (behind - __builtin_elementwise_max(first, end)) & valid;
      end = (behind & valid) | (end & ~valid);
    }
  }
}

/* Most work-items at one address, of rising keys. */
static row8 most_alike(const row8 *v, u32 n) {
  row8 run = (row8)(v[0] != NONE) & 1, most = run;
  for (u32 i = 1; i < n; i++) {
    row8 same = (row8)(v[i] == v[i - 1]);
    run = ((run & same) + 1) & (row8)(v[i] != NONE);
    most = __builtin_elementwise_max(most, run);
  }
  return most;
}

/* Keys of local memory by bank, word and byte of it, so that what meets in a bank stands together. */
static row8 by_bank(row8 key, u64 shift) {
  row8 byte = key << (u32)shift, sorted = (byte >> 2 & 31) << 27 | byte >> 7 << 2 | (byte & 3);
  row8 absent = (row8)(key == NONE);
  return absent | sorted;
}

/* Most distinct words of local memory in one of 32 banks, of rising keys by bank. */
static row8 count_wavefronts(const row8 *v, u32 n) {
  row8 run = (row8)(v[0] != NONE) & 1, most = run;
  for (u32 i = 1; i < n; i++) {
    row8 differ = v[i] ^ v[i - 1], other = (row8)(differ >> 27 != 0);
    run = (((run & ~other) + ((row8)(differ >> 2 != 0) & 1)) | (other & 1)) & (row8)(v[i] != NONE);
    most = __builtin_elementwise_max(most, run);
  }
  return most;
}

/* How addresses change between neighbours, of work-items in order of which all take part in some row. Which of them are
 * neighbours is no branch, where they end at random. */
static void count_pairs(const struct sub_site *s, const row8 *v, const u8 *lanes, u32 n, row8 *pairs) {
  u32 bytes = s->nbytes % ((u64)1 << s->shift) ? NONE : s->nbytes >> s->shift;
  row8 last = {0}, before = {0}, step = n > 1 ? v[1] - v[0] : last, sums[PAIRS] = {0};
  for (u32 i = 1; i < n; i++) {
    row8 follows = i + 1 < n ? v[i + 1] - v[i] : ~step, near = (row8){0} - (lanes[i] == lanes[i - 1] + 1);
    row8 both = near & (row8)(v[i] != NONE) & (row8)(v[i - 1] != NONE);
    row8 differ = __builtin_elementwise_min(step ^ last, step ^ follows);
    differ = __builtin_elementwise_min(differ, __builtin_elementwise_min(step, step - bytes));
    if (!bits_of((row8)(differ == 0) & both)) sums[IRREGULAR] -= both; /* mostly none is another, if one is */
    else {
      row8 even = before & (row8)(step == last);
      if (i + 1 < n && lanes[i + 1] == lanes[i] + 1) even |= ~before & (row8)(follows == step) & (row8)(v[i + 1] != NONE);
      row8 same = both & (row8)(step == 0), next = both & (row8)(step == bytes) & ~same, other = both & ~same & ~next;
      row8 strided = other & even;
      sums[UNIFORM] -= same, sums[CONTIGUOUS] -= next, sums[STRIDED] -= strided, sums[IRREGULAR] -= other & ~even;
      sums[STRIDES] += strided & __builtin_elementwise_min(step, -step);
    }
    before = both, last = step, step = follows;
  }
  for (u32 i = 0; i < PAIRS; i++) pairs[i] += sums[i];
}

static void count_sorted(const struct sub_site *s, const row8 *v, u32 n, row8 *costs) {
  costs[ACCESSES] += (row8)(v[0] != NONE) & 1;
  if (s->flags & SITE_LOCAL) costs[SECTORS] += count_wavefronts(v, n);
  else count_lines(s, v, n, costs + SECTORS);
  if (s->flags & SITE_ATOMIC) costs[CONFLICTS] += most_alike(v, n);
}

/* What eight rows cost, each in a column of keys. Both halves have room for `room` keys, a power of two from 4 to 32;
 * `n` of each may be other than NONE. The keys are sorted on the way. */
void cc_count_rows(const struct sub_site *s, row8 *v, u32 room, const u8 *lanes, const u32 *n, row8 *costs, row8 *pairs) {
  u32 size = __builtin_ctz(room) - 2;
  row8 own[OF_WIDTH] = {0};
  for (u32 half = 0; half < 2; half++) {
    row8 *keys = v + room * half;
    if (!n[half]) continue;
    if (s->flags & SITE_LOCAL)
      for (u32 i = 0; i < n[half]; i++) keys[i] = by_bank(keys[i], s->shift);
    else count_pairs(s, keys, lanes + HALF * half, n[half], pairs);
    /* What does not take part may as well repeat its neighbour, which keeps rising keys rising. */
    if (!(s->flags & SITE_ATOMIC))
      for (u32 i = n[half] - 1; i-- > 0;) {
        row8 absent = (row8)(keys[i] == NONE);
        keys[i] = (absent & keys[i + 1]) | (~absent & keys[i]);
      }
    if (!is_sorted(keys, room)) sorters[size](keys);
    count_sorted(s, keys, room, own);
  }
  for (u32 i = 0; i < OF_WIDTH; i++) costs[i] += own[i];
  if (!n[0] || !n[1]) {
    for (u32 i = 0; i < OF_WIDTH; i++) costs[OF_WIDTH + i] += own[i];
    return;
  }
  if (!is_sorted(v, 2 * room)) mergers[size](v);
  count_sorted(s, v, 2 * room, costs + OF_WIDTH);
}

static u8 all_lanes[LANES];
static const u32 all_of_halves[] = {HALF, HALF};

void cc_add_sums(struct sub_site *s, row8 *costs, row8 *pairs) {
  for (u32 i = 0; i < OF_ROW; i++) s->totals[i] += sum_of(costs[i]), costs[i] = (row8){0};
  for (u32 i = 0; i < PAIRS; i++) s->pairs[i] += sum_of(pairs[i]), pairs[i] = (row8){0};
}

/* Add what each of eight rows costs, so many times. */
static void add_times(struct sub_site *s, const row8 *costs, const row8 *pairs, const u64 *times, u64 n) {
  for (u32 i = 0; i < n; i++) {
    for (u32 k = 0; k < OF_ROW; k++) s->totals[k] += times[i] * costs[k][i];
    for (u32 k = 0; k < PAIRS; k++) s->pairs[k] += times[i] * pairs[k][i];
  }
}

static void flush_batch(struct sub_site *s) {
  row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  if (!s->batched) return;
  memset(s->batch + s->batched, -1, (AT_ONCE - s->batched) * sizeof *s->batch);
  for (u32 lane = 0; lane < LANES; lane += AT_ONCE) {
    for (u32 i = 0; i < AT_ONCE; i++) memcpy(&v[lane + i], s->batch[i] + lane, sizeof *v);
    cc_mirror(v + lane);
  }
  cc_count_rows(s, v, HALF, all_lanes, all_of_halves, costs, pairs);
  if (s->is_weighted) add_times(s, costs, pairs, s->batch_times, s->batched);
  else cc_add_sums(s, costs, pairs);
  s->batched = s->is_weighted = 0;
}

static void push(struct context *c, struct sub_site *s, const u32 *keys, u32 step, u64 times, u64 weight) {
  u64 each = step ? 1 : times; /* rows alike are one */
  if (!s->batch) s->batch = cc_map(c, AT_ONCE * sizeof *s->batch);
  for (u64 k = 0; k < times; k += each) {
    u32 *to = s->batch[s->batched];
    s->batch_times[s->batched] = each * weight, s->is_weighted |= each * weight > 1;
    for (u32 lane = 0; lane < LANES; lane += AT_ONCE) {
      row8 eight;
      memcpy(&eight, keys + lane, sizeof eight);
      eight = (eight + (u32)(k * step)) | (row8)(eight == NONE);
      memcpy(to + lane, &eight, sizeof eight);
    }
    if (++s->batched == AT_ONCE) flush_batch(s);
  }
}

/* Add up what the rows of a shape cost, eight places in a line at a time. */
static void flush_shape(struct sub_site *s, struct shape *f) {
  for (u32 first = 0; f->times && first <= s->place_mask; first += AT_ONCE) {
    row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
    u64 *times = f->times + first, any = 0;
    for (u32 i = 0; i < AT_ONCE; i++) any |= times[i];
    if (!any) continue;
    for (u32 lane = 0; lane < LANES; lane++)
      for (u32 i = 0; i < AT_ONCE; i++) v[lane][i] = f->distances[lane] == ABSENT ? NONE : f->distances[lane] + (1u << 30) + first + i;
    cc_count_rows(s, v, HALF, all_lanes, all_of_halves, costs, pairs);
    add_times(s, costs, pairs, times, AT_ONCE);
    memset(times, 0, AT_ONCE * sizeof *times);
  }
}

/* Room for rows at each place, eight places at least. */
static u64 *map_times(struct context *c, const struct sub_site *s) { return cc_map(c, 8 * (s->place_mask | (AT_ONCE - 1)) + 8); }

/* The shape of a row; a null pointer where shapes do not come again, or it is too wide for one. */
static struct shape *find_shape(struct context *c, struct sub_site *s, const u32 *keys, u32 first) {
  u32 distances[LANES], sum = 0;
  row8 wide = {0};
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight, absent, distance;
    memcpy(&eight, keys + i, sizeof eight);
    absent = (row8)(eight == NONE), distance = eight - first;
    wide |= (distance + (1u << 29)) & ~absent;
    distance = (distance & ~absent) | (absent & ABSENT);
    memcpy(distances + i, &distance, sizeof distance);
  }
  if (bits_of(wide >> 30)) return 0;
  if (s->shape && !memcmp(s->shape->distances, distances, sizeof distances)) {
    s->hits++;
    return s->shape;
  }
  for (u32 lane = 0; lane < LANES; lane++) sum += (distances[lane] ^ distances[lane] >> 15) * (0x9E3779B1u * (2 * lane + 1));
  if (!s->shapes) s->shapes = cc_map(c, SHAPES * sizeof *s->shapes);
  struct shape *f = s->shape = &s->shapes[(sum * 0x85EBCA6Bu) >> 27];
  if (f->times && !memcmp(f->distances, distances, sizeof distances)) {
    s->hits++;
    return f;
  }
  s->misses++;
  if (f->times) flush_shape(s, f);
  else f->times = map_times(c, s);
  memcpy(f->distances, distances, sizeof distances);
  return f;
}

/* How many places in a line rows begin at that are so many keys apart. */
static u64 different_places(const struct sub_site *s, u64 step) {
  u64 places = s->place_mask + 1;
  return step % places ? places >> __builtin_ctzll(step) : 1;
}

/* So many rows of a shape, the first one at `key` and each `step` behind the one before; and that `weight` times. */
static void count_shape(struct sub_site *s, struct shape *f, u32 key, u32 step, u64 times, u64 weight) {
  u64 different = different_places(s, step);
  for (u64 r = 0; r < different && r < times; r++)
    f->times[(key + r * step) & s->place_mask] += (times - r + different - 1) / different * weight;
}

/* So many rows, each `step` keys behind the one before; and that `weight` times. */
void cc_add_rows(struct context *c, struct sub_site *s, const u32 *keys, u32 step, u64 times, u64 weight) {
  if (s->misses > s->hits + PATIENCE) {
    push(c, s, keys, step, times, weight);
    return;
  }
  u32 first = 0;
  while (first < LANES && keys[first] == NONE) first++;
  if (first == LANES) return;
  struct shape *f = find_shape(c, s, keys, keys[first]);
  if (f) count_shape(s, f, keys[first], step, times, weight);
  else push(c, s, keys, step, times, weight);
}

/* The shape of blocks of work-items in rows of so many; a null pointer where blocks differ, or reach too far. */
struct shape *cc_shape_of_plane(struct context *c, struct sub_site *s, u64 dx, u64 dy, u64 columns) {
  struct plane *p = &s->plane;
  if (columns >= LANES) dy = 0; /* a block lies in one row */
  if (p->shape && p->dx == dx && p->dy == dy && p->columns == columns) return p->shape;
  if (LANES % columns && columns % LANES) return 0;
  u64 across = columns < LANES ? columns : LANES, far = 0;
  if (!p->shape) p->shape = cc_map(c, sizeof *p->shape), p->shape->times = map_times(c, s);
  struct shape *f = p->shape;
  flush_shape(s, f);
  for (u64 k = 0; k < LANES; k++) {
    u64 distance = (int64_t)(k % across * dx + k / across * dy) >> s->shift;
    far |= distance + (1u << 29) >= 1u << 30;
    f->distances[k] = distance;
  }
  p->columns = 0;
  if (far) return 0;
  u32 keys[LANES];
  for (u64 k = 0; k < LANES; k++) keys[k] = f->distances[k] + (1u << 30);
  p->n = cc_intervals(keys, s->shift, s->nbytes, p->intervals);
  for (u64 k = 0; k < p->n; k++) p->intervals[k][0] -= 1u << 30, p->intervals[k][1] -= 1u << 30;
  p->dx = dx, p->dy = dy, p->columns = columns;
  return f;
}

/* Rows in a grid of them; of a known shape, the first key is enough. */
void cc_add_grid(struct context *c, struct sub_site *s, struct shape *f, const u32 *keys, u32 across, u64 columns, u32 up, u64 rows) {
  u32 first = 0;
  while (first < LANES && keys[first] == NONE) first++;
  if (first == LANES) return;
  if (!f && s->misses <= s->hits + PATIENCE) f = find_shape(c, s, keys, keys[first]);
  u64 different = f ? different_places(s, up) : rows;
  for (u64 r = 0; r < different && r < rows; r++) {
    if (f) {
      count_shape(s, f, keys[first] + r * up, across, columns, (rows - r + different - 1) / different);
      continue;
    }
    u32 moved[LANES];
    for (u32 k = 0; k < LANES; k++) moved[k] = keys[k] == NONE ? NONE : keys[k] + r * up;
    push(c, s, moved, across, columns, 1);
  }
}

void cc_prepare_shapes(void) {
  for (u32 k = 0; k < LANES; k++) all_lanes[k] = k;
}

void cc_finish_sub_groups(struct context *c) {
  for (u64 i = 0; i < c->job->n_sites; i++) {
    struct sub_site *s = site_of(c, i);
    cc_stop_repeat(c, s), cc_end_again(c, s);
    flush_batch(s);
    for (u32 k = 0; s->shapes && k < SHAPES; k++) flush_shape(s, &s->shapes[k]);
    if (s->plane.shape) flush_shape(s, s->plane.shape);
    for (u32 k = 0; k < OF_ROW && s->flags & SITE_REPEATED; k++) s->totals[k] *= *groups_done(c);
  }
}

/* What was counted of each site, behind its number; blocks that were lost are as those that were kept. */
u64 cc_sub_group_words(struct context *c, u64 site, u64 *words) {
  struct sub_site *s = site_of(c, site);
  words[0] = site;
  memcpy(words + 1, s->totals, sizeof s->totals), memcpy(words + 1 + OF_ROW, s->pairs, sizeof s->pairs);
  words[1 + OF_ROW + STRIDES] <<= s->shift, words[1 + OF_ROW + PAIRS] = s->moved;
  words[2 + OF_ROW + PAIRS] = s->walks, words[3 + OF_ROW + PAIRS] = s->aligned;
  for (u32 k = 1; s->lost && s->kept && k < 4 + OF_ROW + PAIRS; k++)
    words[k] += (double)words[k] * s->lost / s->kept + 0.5;
  return 4 + OF_ROW + PAIRS;
}
