/* What hardware does that runs work-items in step, by sub-groups of 32 and of 64 that follow each other in a
 * work-group: which sectors and lines of memory each access touches, how long banks of local memory are busy, and
 * how many work-items of an atomic access meet at one address.
 *
 * The k-th execution of an instruction by one work-item goes with the k-th by its neighbours. A row is what 64
 * work-items access then, as keys: distances from where memory begins, in units of what accesses are aligned to.
 * What it costs depends on distances between the work-items, its shape, and on where in a line it begins. Shapes
 * that come again are remembered with their costs; rows of sites where they do not are counted eight at a time. */
#include "runtime.h"
#include <string.h>

enum { LANES = 64, HALF = 32, BLOCKS = MAX_ITEMS / LANES, AT_ONCE = 8, LINE = 128, SHAPES = 32, PATIENCE = 64 };
static const u32 ABSENT = 1u << 31; /* no distance */
enum { ACCESSES, SECTORS, LINES_64, LINES_128, CONFLICTS, OF_WIDTH, OF_ROW = 2 * OF_WIDTH };
enum { UNIFORM, CONTIGUOUS, STRIDED, IRREGULAR, STRIDES, PAIRS };
enum { MOST_WAITING = 1 << 16 };
/* A time, from its highest bits on: segments in turn, places of a segment, how far a loop there has come, and sites. */
enum { SEQUENCE_LOG = 44, ORDER_LOG = 32, LOOP_LOG = 8, MOST_TOLD = 255 };
static u64 part_of_loop(u64 n) { return ((u64)1 << (ORDER_LOG - LOOP_LOG)) / n << LOOP_LOG; }
static const u32 NONE = ~(u32)0;
typedef u32 row8 __attribute__((vector_size(4 * AT_ONCE)));
typedef u64 wide8 __attribute__((vector_size(8 * AT_ONCE)));

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
};

/* Rows of one block of 64 work-items whose accesses are not yet known to go together. */
struct waiting {
  u32 *rows, used, room, filled[LANES];
};

struct sub_site {
  u64 flags, nbytes, shift, origin, place_mask; /* of a key: its place in a line, or in a word of local memory */
  u64 totals[OF_ROW], pairs[PAIRS];
  u64 hits, misses, batched;
  struct shape *shapes, *shape; /* remembered ones, and the last one */
  struct plane plane;
  u32 (*batch)[LANES];
  struct waiting *waiting;
};

/* Comparators of networks that sort 8, 16 and 32 keys, and that merge two times as many (Batcher 1968). */
struct network {
  u32 n;
  u8 pairs[192][2];
};
static struct network sorters[3], mergers[3];

static void build_network(struct network *w, u32 from, u32 n) {
  for (u32 p = from; p < n; p *= 2)
    for (u32 k = p; k; k /= 2)
      for (u32 j = k % p; j + k < n; j += 2 * k)
        for (u32 i = j; i < j + k && i + k < n; i++)
          if (i / (2 * p) == (i + k) / (2 * p)) w->pairs[w->n][0] = i, w->pairs[w->n++][1] = i + k;
}

static void sort(row8 *v, const struct network *w) {
  for (u32 i = 0; i < w->n; i++) {
    row8 a = v[w->pairs[i][0]], b = v[w->pairs[i][1]];
    v[w->pairs[i][0]] = __builtin_elementwise_min(a, b);
    v[w->pairs[i][1]] = __builtin_elementwise_max(a, b);
  }
}

static int is_true(row8 x) {
  u32 any = 0;
  for (u32 i = 0; i < AT_ONCE; i++) any |= x[i];
  return any != 0;
}

static int is_sorted(const row8 *v, u32 n) {
  row8 falls = {0};
  for (u32 i = 1; i < n; i++) falls |= (row8)(v[i - 1] > v[i]);
  return !is_true(falls);
}

/* Distinct lines of each size that rising keys touch; keys that touch just one each are told apart by a few bits. */
static void count_lines(const struct sub_site *s, const row8 *v, u32 n, row8 *lines) {
  u32 bits = 5 - s->shift, extent = (s->nbytes - 1) >> s->shift;
  if (s->nbytes <= (u64)1 << s->shift) {
    row8 some = (row8)(v[0] != NONE) & 1, ended = some & (row8)(v[n - 1] == NONE), sums[3] = {0};
    for (u32 i = 1; i < n; i++) {
      row8 differ = (v[i] ^ v[i - 1]) >> bits;
      sums[0] -= (row8)(differ != 0), sums[1] -= (row8)(differ > 1), sums[2] -= (row8)(differ > 3);
    }
    for (u32 level = 0; level < 3; level++) lines[level] += sums[level] + some - ended;
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

/* How addresses change between neighbours, of work-items in order of which all take part in some row. */
static void count_pairs(const struct sub_site *s, const row8 *v, const u8 *lanes, u32 n, row8 *pairs) {
  u32 bytes = s->nbytes % ((u64)1 << s->shift) ? NONE : s->nbytes >> s->shift;
  row8 last = {0}, before = {0}, sums[PAIRS] = {0};
  for (u32 i = 1; i < n; i++) {
    row8 both = {0}, step = v[i] - v[i - 1];
    if (lanes[i] == lanes[i - 1] + 1) {
      both = (row8)(v[i] != NONE) & (row8)(v[i - 1] != NONE);
      row8 even = before & (row8)(step == last);
      if (i + 1 < n && lanes[i + 1] == lanes[i] + 1) even |= ~before & (row8)(v[i + 1] - v[i] == step) & (row8)(v[i + 1] != NONE);
      row8 same = both & (row8)(step == 0), next = both & (row8)(step == bytes) & ~same, other = both & ~same & ~next;
      row8 strided = other & even;
      sums[UNIFORM] -= same, sums[CONTIGUOUS] -= next, sums[STRIDED] -= strided, sums[IRREGULAR] -= other & ~even;
      sums[STRIDES] += strided & __builtin_elementwise_min(step, -step);
    }
    before = both, last = step;
  }
  for (u32 i = 0; i < PAIRS; i++) pairs[i] += sums[i];
}

static void count_sorted(const struct sub_site *s, const row8 *v, u32 n, row8 *costs) {
  costs[ACCESSES] += (row8)(v[0] != NONE) & 1;
  if (s->flags & SITE_LOCAL) costs[SECTORS] += count_wavefronts(v, n);
  else count_lines(s, v, n, costs + SECTORS);
  if (s->flags & SITE_ATOMIC) costs[CONFLICTS] += most_alike(v, n);
}

/* What eight rows cost, each in a column of keys. Both halves have room for `room` keys, a power of two from 8 to 32;
 * `n` of each may be other than NONE. The keys are sorted on the way. */
static void count_rows(const struct sub_site *s, row8 *v, u32 room, const u8 *lanes, const u32 *n, row8 *costs, row8 *pairs) {
  u32 size = __builtin_ctz(room) - 3;
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
    if (!is_sorted(keys, room)) sort(keys, &sorters[size]);
    count_sorted(s, keys, room, own);
  }
  for (u32 i = 0; i < OF_WIDTH; i++) costs[i] += own[i];
  if (!n[0] || !n[1]) {
    for (u32 i = 0; i < OF_WIDTH; i++) costs[OF_WIDTH + i] += own[i];
    return;
  }
  if (!is_sorted(v, 2 * room)) sort(v, &mergers[size]);
  count_sorted(s, v, 2 * room, costs + OF_WIDTH);
}

static u8 all_lanes[LANES];
static const u32 all_of_halves[] = {HALF, HALF};

static u64 least(u64 a, u64 b) { return a < b ? a : b; }

static u64 sum_of(row8 x) {
  u64 sum = 0;
  for (u32 i = 0; i < AT_ONCE; i++) sum += x[i];
  return sum;
}

static void add_sums(struct sub_site *s, row8 *costs, row8 *pairs) {
  for (u32 i = 0; i < OF_ROW; i++) s->totals[i] += sum_of(costs[i]), costs[i] = (row8){0};
  for (u32 i = 0; i < PAIRS; i++) s->pairs[i] += sum_of(pairs[i]), pairs[i] = (row8){0};
}

/* Eight times eight keys, mirrored. */
static void mirror(const u32 (*from)[LANES], row8 *to) {
  row8 a[8], b[8];
  for (u32 i = 0; i < 8; i++) memcpy(&a[i], from[i], sizeof *a);
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
    to[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    to[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

static void flush_batch(struct sub_site *s) {
  row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  if (!s->batched) return;
  memset(s->batch + s->batched, -1, (AT_ONCE - s->batched) * sizeof *s->batch);
  for (u32 lane = 0; lane < LANES; lane += AT_ONCE) mirror((const u32 (*)[LANES])((u32 *)s->batch + lane), v + lane);
  count_rows(s, v, HALF, all_lanes, all_of_halves, costs, pairs);
  add_sums(s, costs, pairs);
  s->batched = 0;
}

static void push(struct context *c, struct sub_site *s, const u32 *keys, u32 step, u64 times) {
  if (!s->batch) s->batch = cc_map(c, AT_ONCE * sizeof *s->batch);
  for (u64 k = 0; k < times; k++) {
    u32 *to = s->batch[s->batched];
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
    count_rows(s, v, HALF, all_lanes, all_of_halves, costs, pairs);
    for (u32 i = 0; i < AT_ONCE; times[i++] = 0) {
      for (u32 k = 0; k < OF_ROW; k++) s->totals[k] += times[i] * costs[k][i];
      for (u32 k = 0; k < PAIRS; k++) s->pairs[k] += times[i] * pairs[k][i];
    }
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
  u32 far = 0;
  for (u32 i = 0; i < AT_ONCE; i++) far |= wide[i] >> 30;
  if (far) return 0;
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

/* So many rows, each `step` keys behind the one before. */
static void add_rows(struct context *c, struct sub_site *s, const u32 *keys, u32 step, u64 times) {
  if (s->misses > s->hits + PATIENCE) {
    push(c, s, keys, step, times);
    return;
  }
  u32 first = 0;
  while (first < LANES && keys[first] == NONE) first++;
  if (first == LANES) return;
  struct shape *f = find_shape(c, s, keys, keys[first]);
  if (f) count_shape(s, f, keys[first], step, times, 1);
  else push(c, s, keys, step, times);
}

static void flush_waiting(struct context *c, struct sub_site *s, struct waiting *w) {
  for (u32 k = 0; k < w->used; k++) add_rows(c, s, w->rows + LANES * k, 0, 1);
  if (w->used) memset(w->rows, -1, 4 * LANES), memset(w->filled, 0, sizeof w->filled);
  w->used = 0;
}

/* Rows that all work-items have come to are complete; if there are none, not all can be kept. */
static void relieve(struct context *c, struct sub_site *s, struct waiting *w) {
  u32 complete = NONE;
  for (u32 lane = 0; lane < LANES; lane++)
    if (w->filled[lane] < complete) complete = w->filled[lane];
  if (!complete) {
    c->inexact = 1;
    flush_waiting(c, s, w);
    return;
  }
  for (u32 k = 0; k < complete; k++) add_rows(c, s, w->rows + LANES * k, 0, 1);
  memmove(w->rows, w->rows + LANES * complete, 4 * LANES * (w->used + 1 - complete));
  w->used -= complete;
  for (u32 lane = 0; lane < LANES; lane++) w->filled[lane] -= complete;
}

/* Work-items that take part. */
static u64 who(const u32 *keys) {
  const row8 bits = {1, 2, 4, 8, 16, 32, 64, 128};
  u64 found = 0;
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight;
    memcpy(&eight, keys + i, sizeof eight);
    found |= sum_of((row8)(eight != NONE) & bits) << i;
  }
  return found;
}

/* Put keys behind those that each work-item has; the row behind the last one is always empty. */
static void defer(struct context *c, struct sub_site *s, u32 block, const u32 *keys) {
  if (!s->waiting) s->waiting = cc_map(c, BLOCKS * sizeof *s->waiting);
  struct waiting *w = &s->waiting[block];
  if (w->used == MOST_WAITING) relieve(c, s, w);
  if (w->used + 2 > w->room) {
    u32 room = w->room ? 2 * w->room : 16;
    w->rows = cc_remap(c, w->rows, 4 * LANES * w->room, 4 * LANES * room);
    if (!w->room) memset(w->rows, -1, 4 * LANES);
    w->room = room;
  }
  u32 full = 0;
  for (u64 left = who(keys); left; left &= left - 1) {
    u32 lane = __builtin_ctzll(left), k = w->filled[lane]++;
    w->rows[LANES * k + lane] = keys[lane], full |= k >= w->used;
  }
  if (full) w->used++, memset(w->rows + LANES * w->used, -1, 4 * LANES);
}

static int is_waiting(const struct sub_site *s, u32 block) { return s->waiting && s->waiting[block].used; }

/* Key of an address; of memory that is known only while running, the site of local memory stands behind. */
static u32 key_of(struct context *c, struct sub_site **s, u64 address) {
  struct job *j = c->job;
  if (address == ~(u64)0) return NONE;
  if ((*s)->flags & SITE_DYNAMIC) {
    if (address - (u64)c->local < j->local_bytes) ++*s;
    else if (!cc_region_at(c, address)) return NONE;
  }
  if ((*s)->flags & SITE_LOCAL) return (address - (u64)c->local) >> (*s)->shift;
  u64 at = address - (*s)->origin;
  return (at >= c->span ? at - c->beyond : at) >> (*s)->shift;
}

/* Keys of eight addresses, of memory that is known. */
static inline row8 eight_keys(struct context *c, const struct sub_site *s, const u64 *addresses) {
  u64 local = s->flags & SITE_LOCAL, low = local ? (u64)c->local : s->origin, span = local ? ~(u64)0 : c->span;
  wide8 all, at;
  memcpy(&all, addresses, sizeof all);
  at = all - low;
  at -= (wide8)(at >= span) & c->beyond;
  return __builtin_convertvector(at >> s->shift, row8) | __builtin_convertvector((wide8)(all == ~(u64)0), row8);
}

static void keys_of(struct context *c, const struct sub_site *s, const u64 *addresses, u32 n, u32 *keys) {
  for (u32 i = 0; i < n; i += AT_ONCE) {
    row8 eight = eight_keys(c, s, addresses + i);
    memcpy(keys + i, &eight, sizeof eight);
  }
  for (u32 i = n; i < LANES; i++) keys[i] = NONE;
}

static struct sub_site *site_of(struct context *c, u64 number) { return (struct sub_site *)c->sub_sites + number; }

static u32 how_many(const u32 *keys) {
  row8 sum = {0};
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight;
    memcpy(&eight, keys + i, sizeof eight);
    sum -= (row8)(eight != NONE);
  }
  return sum_of(sum);
}

static u64 number_of(struct job *j, u64 x, u64 y, u64 z) { return x + j->groups[0] * (y + j->groups[1] * z); }

static u64 time_of(u64 sequence, u64 order, u64 site) {
  return (sequence << SEQUENCE_LOG) + (order << ORDER_LOG) + (site < MOST_TOLD ? site : MOST_TOLD);
}

/* When the group that runs makes an access. */
static void set_time(struct context *c, u64 order, u64 site) {
  c->time = time_of(c->sequence, order, site);
  c->toucher = number_of(c->job, c->group[0], c->group[1], c->group[2]);
}

/* Whether accesses reach memory, and if so what they do there: an atomic fetches what it writes. */
static int is_touched(struct context *c, const struct sub_site *s) {
  c->how = s->flags & SITE_ATOMIC ? 12 : s->flags & SITE_WRITES ? 4 : 8; /* as `reuse.c` has it */
  return !(s->flags & SITE_LOCAL);
}

static void add_keys(struct context *c, struct sub_site *s, const u32 *keys, u32 block, u32 n, int final) {
  u32 there = how_many(keys);
  if (!there) return;
  if (is_touched(c, s)) cc_touch_row(c, s->shift, s->nbytes, keys, c->time, c->toucher);
  if (final || (there == n && !is_waiting(s, block))) add_rows(c, s, keys, 0, 1);
  else defer(c, s, block, keys);
}

/* A row of `n` work-items, of which each knows whether it takes part. */
static void add_addresses(struct context *c, struct sub_site *s, const u64 *addresses, u32 block, u32 n, int final) {
  u32 keys[2][LANES];
  if (!(s->flags & SITE_DYNAMIC)) {
    keys_of(c, s, addresses, n, keys[0]);
    add_keys(c, s, keys[0], block, n, final);
    return;
  }
  memset(keys, -1, sizeof keys);
  for (u32 i = 0; i < n; i++) {
    struct sub_site *to = s;
    u32 key = key_of(c, &to, addresses[i]);
    keys[to - s][i] = key;
  }
  for (u32 k = 0; k < 2; k++) add_keys(c, s + k, keys[k], block, n, final);
}

/* What one work-item accessed, in order: addresses, or runs of them at equal distances. */
struct reader {
  const u64 *words;
  u64 at, end, in_run, left; /* `left`: accesses */
};

static u64 word_at(const struct reader *r, u64 i) { return r->words[i % STREAM_WORDS]; }

static u64 next_of(struct reader *r, int runs) {
  if (!r->left) return ~(u64)0;
  r->left--;
  if (!runs) return word_at(r, r->at++);
  u64 address = word_at(r, r->at) + r->in_run * word_at(r, r->at + 1);
  if (++r->in_run == word_at(r, r->at + 2)) r->at += 3, r->in_run = 0;
  return address;
}

static u64 length_of(const struct reader *r, int runs) {
  if (!runs) return r->end - r->at;
  u64 n = 0;
  for (u64 at = r->at; at != r->end; at += 3) n += word_at(r, at + 2);
  return n;
}

/* The next eight keys of a work-item; of one that has one run of known `step`, or whose words do not wrap around. */
static row8 take_eight(struct context *c, const struct sub_site *s, struct reader *r, int runs) {
  const row8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  row8 eight;
  u64 n = r->left < AT_ONCE ? r->left : AT_ONCE;
  if (runs && r->at + 3 == r->end) {
    u64 address = word_at(r, r->at) + r->in_run * word_at(r, r->at + 1);
    eight = eight_keys(c, s, (u64[AT_ONCE]){address})[0] + places * (u32)((int64_t)word_at(r, r->at + 1) >> s->shift);
    r->in_run += n;
  } else if (!runs && r->at % STREAM_WORDS <= STREAM_WORDS - AT_ONCE) {
    eight = eight_keys(c, s, r->words + r->at % STREAM_WORDS);
    r->at += n;
  } else {
    u64 addresses[AT_ONCE];
    for (u32 k = 0; k < AT_ONCE; k++) addresses[k] = next_of(r, runs);
    return eight_keys(c, s, addresses);
  }
  r->left -= n;
  return eight | (row8)(places >= (u32)n);
}

/* The k-th accesses of work-items for all k, eight at a time, of those that have any left. */
static void add_eights(struct context *c, struct sub_site *s, struct reader *r, u32 n, int runs, u64 later) {
  row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  u8 lanes[LANES];
  u32 there[2] = {0};
  for (u32 i = 0; i < n; i++)
    if (r[i].left) lanes[HALF * (i / HALF) + there[i / HALF]++] = i;
  for (u64 round = 1; there[0] || there[1]; round++) {
    u32 largest = there[0] > there[1] ? there[0] : there[1], room = largest <= 8 ? 8 : largest <= 16 ? 16 : 32;
    for (u32 half = 0; half < 2; half++) {
      u32 k = 0;
      for (; k < there[half]; k++) v[room * half + k] = take_eight(c, s, &r[lanes[HALF * half + k]], runs);
      for (; k < room; k++) v[room * half + k] = (row8){0} + NONE;
    }
    count_rows(s, v, room, lanes, there, costs, pairs);
    if (is_touched(c, s)) cc_touch_columns(c, s->shift, s->nbytes, v, 2 * room, c->time + (round - 1) * AT_ONCE * later, later, c->toucher);
    for (u32 half = 0; half < 2; half++) {
      u32 kept = 0;
      for (u32 k = 0; k < there[half]; k++)
        if (r[lanes[HALF * half + k]].left) lanes[HALF * half + kept++] = lanes[HALF * half + k];
      there[half] = kept;
    }
    if (round % 256 == 0) add_sums(s, costs, pairs);
  }
  add_sums(s, costs, pairs);
}

/* Each work-item has one run, all of the same length and step; the words of a block stand one after the other. */
static int is_plain(const u64 *words, u64 start, const u64 *ends, u32 n) {
  u64 differ = ends[n - 1] - start - 3 * n;
  if (differ || start % STREAM_WORDS + 3 * n > STREAM_WORDS) return 0;
  words += start % STREAM_WORDS;
  for (u32 i = 0; i < n; i++) differ |= (ends[i] - start - 3 * (i + 1)) | (words[3 * i + 1] ^ words[1]) | (words[3 * i + 2] ^ words[2]);
  return !differ;
}

/* Runs of the same step, which no work-item begins before its neighbour, as in rows of a sparse matrix: what is shared
 * with the one before follows from how far apart they are. */
struct rising {
  u32 keys[LANES], step;
  u64 times[LANES];
};

/* Of the places `key + k * step` for k from `from` to before `to`, how many are `least` or more in a line of so many. */
static u64 count_beyond(u32 key, u32 step, u64 from, u64 to, u32 line, u32 least_) {
  u32 log = __builtin_ctz(step), period = line >> log, rest = key & (step - 1);
  u32 first = least_ > rest ? (least_ - rest + step - 1) >> log : 0, at = ((key >> log) + from) & (period - 1);
  u64 n = to - from, found = n / period * (period - first), end = at + n % period;
  u64 high = least(end, period), low = at > first ? at : first;
  found += high > low ? high - low : 0;
  return found + (end > period + first ? end - period - first : 0);
}

static void count_rising(struct sub_site *s, const struct rising *r, u32 n) {
  u64 lines[2][3] = {0};
  u32 widest = LINE >> s->shift;
  for (u32 i = 0; i < n; i++) {
    u64 known = 0;
    for (u32 width = 0; width < 2; width++)
      for (u32 level = 0; level < 3; level++) lines[width][level] += r->times[i];
    for (u32 j = i; j-- > 0 && known < r->times[i] && r->keys[i] - r->keys[j] < widest;) {
      u64 end = least(r->times[j], r->times[i]);
      u32 apart = r->keys[i] - r->keys[j];
      if (end <= known) continue;
      for (u32 level = 0; level < 3; level++) {
        u32 line = widest >> (2 - level);
        u64 shared = apart < line ? count_beyond(r->keys[i], r->step, known, end, line, apart) : 0;
        lines[0][level] -= i / HALF == j / HALF ? shared : 0, lines[1][level] -= shared;
      }
      known = end;
    }
  }
  u64 longest[2] = {0};
  for (u32 i = 0; i < n; i++) longest[i / HALF] = r->times[i] > longest[i / HALF] ? r->times[i] : longest[i / HALF];
  for (u32 width = 0; width < 2; width++) {
    u64 *to = s->totals + OF_WIDTH * width;
    to[ACCESSES] += width ? (longest[0] > longest[1] ? longest[0] : longest[1]) : longest[0] + longest[1];
    for (u32 level = 0; level < 3; level++) to[SECTORS + level] += lines[width][level];
  }
}

static void count_rising_pairs(struct sub_site *s, const struct rising *r, u32 n) {
  u32 bytes = s->nbytes >> s->shift;
  for (u32 i = 1; i < n; i++) {
    if (i % HALF == 0) continue;
    u32 apart = r->keys[i] - r->keys[i - 1];
    u64 both = least(r->times[i], r->times[i - 1]), before = 0, even = 0;
    if (apart == 0 || apart == bytes) {
      s->pairs[apart ? CONTIGUOUS : UNIFORM] += both;
      continue;
    }
    if (i % HALF > 1) {
      before = least(both, r->times[i - 2]);
      if (r->keys[i - 1] - r->keys[i - 2] == apart) even = before;
    }
    if (i + 1 < n && (i + 1) % HALF && r->keys[i + 1] - r->keys[i] == apart && least(both, r->times[i + 1]) > before)
      even += least(both, r->times[i + 1]) - before;
    s->pairs[STRIDED] += even, s->pairs[IRREGULAR] += both - even, s->pairs[STRIDES] += even * apart;
  }
}

static int add_rising(struct context *c, struct sub_site *s, const struct reader *readers, u32 n, u64 most) {
  struct rising r;
  u64 addresses[LANES] = {0}, step = 0;
  if (s->flags & (SITE_LOCAL | SITE_ATOMIC | SITE_DYNAMIC) || s->nbytes != (u64)1 << s->shift) return 0;
  for (u32 i = 0; i < n; i++) {
    const struct reader *x = &readers[i];
    if (x->end - x->at > 3) return 0;
    r.times[i] = x->left;
    addresses[i] = x->left ? word_at(x, x->at) : i ? addresses[i - 1] : 0;
    if (!x->left) continue;
    if (step && word_at(x, x->at + 1) != step) return 0;
    step = word_at(x, x->at + 1);
  }
  for (u32 i = n - 1; i-- > 0;)
    if (!addresses[i]) addresses[i] = addresses[i + 1];
  r.step = step >> s->shift;
  if (!r.step || r.step & (r.step - 1) || (u64)r.step << s->shift != step || r.step > 32u >> s->shift) return 0;
  keys_of(c, s, addresses, n, r.keys);
  for (u32 i = 1; i < n; i++)
    if (r.keys[i] < r.keys[i - 1]) return 0;
  count_rising(s, &r, n);
  count_rising_pairs(s, &r, n);
  for (u32 i = 0; is_touched(c, s) && i < n; i++)
    if (r.times[i]) cc_touch_run(c, s->shift, r.keys[i], r.step, r.times[i], c->time, part_of_loop(most), c->toucher);
  return 1;
}

static void add_streams(struct context *c, struct sub_site *s, struct reader *r, u32 block, u32 n, int runs, int final) {
  u64 addresses[LANES], least = ~(u64)0, most = 0;
  for (u32 i = 0; i < n; i++) {
    r[i].left = length_of(&r[i], runs);
    least = r[i].left < least ? r[i].left : least, most = r[i].left > most ? r[i].left : most;
  }
  if (!(s->flags & SITE_DYNAMIC) && (final || (least == most && !is_waiting(s, block)))) {
    if (most && !(runs && add_rising(c, s, r, n, most))) add_eights(c, s, r, n, runs, part_of_loop(most));
    return;
  }
  for (u64 k = 0; k < most; k++, c->time += part_of_loop(most)) {
    for (u32 i = 0; i < n; i++) addresses[i] = next_of(&r[i], runs);
    add_addresses(c, s, addresses, block, n, final);
  }
}

/* Whether anybody takes part. */
static int is_any(const u64 *addresses, u64 n) {
  wide8 absent = (wide8){0} - 1;
  u64 i = 0, rest = ~(u64)0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    wide8 eight;
    memcpy(&eight, addresses + i, sizeof eight);
    absent &= eight;
  }
  for (; i < n; i++) rest &= addresses[i];
  for (i = 0; i < AT_ONCE; i++) rest &= absent[i];
  return rest != ~(u64)0;
}

/* A block's part of what a segment left of one access. Where work-items run the segment but once, the k-th execution
 * there is the k-th of all: it is final. */
static void add_recorded(struct context *c, const struct recorded *e, u64 first, u64 n, u64 set, int in_turn, int final) {
  struct sub_site *s = site_of(c, e->site);
  u32 block = first / LANES;
  set_time(c, e->order, e->site);
  if (e->mode == ONCE) {
    u64 addresses[LANES];
    const u64 *given = c->addresses + MAX_ITEMS * e->place + first;
    if (in_turn) {
      for (u32 k = 0; k < n; k++) addresses[k] = set >> k & 1 ? given[k] : ~(u64)0;
      given = addresses;
    }
    if (is_any(given, n)) add_addresses(c, s, given, block, n, final);
    return;
  }
  const u64 *ends = c->ends + MAX_ITEMS * e->place + first, *words = c->words + (u64)STREAM_WORDS * e->place;
  u64 start = first && !in_turn ? ends[-1] : 0;
  if (c->positions[e->place] - start > STREAM_WORDS) {
    c->inexact = 1;
    return;
  }
  if (e->mode == RUNS && !in_turn && (final || !is_waiting(s, block)) && !(s->flags & SITE_DYNAMIC) && is_plain(words, start, ends, n)) {
    u64 addresses[LANES];
    u32 keys[LANES];
    words += start % STREAM_WORDS;
    for (u32 i = 0; i < n; i++) addresses[i] = words[3 * i];
    keys_of(c, s, addresses, n, keys);
    u32 step = (int64_t)words[1] >> s->shift;
    add_rows(c, s, keys, step, words[2]);
    if (is_touched(c, s)) cc_touch(c, s->shift, s->nbytes, keys, step, words[2], c->time, part_of_loop(words[2]), c->toucher, 0);
    return;
  }
  struct reader readers[LANES];
  for (u32 k = 0; k < n; k++) {
    u64 end = set >> k & 1 ? ends[k] : start;
    readers[k] = (struct reader){words, start, end, 0, 0};
    start = end;
  }
  add_streams(c, s, readers, block, n, e->mode == RUNS, final);
}

static const struct recorded *recorded_of(struct context *c, u32 segment) {
  const struct recorded *e = (struct recorded *)c->job->recorded, *end = e + c->job->n_recorded;
  while (e < end && e->segment < segment) e++;
  return e;
}

static int is_of(struct context *c, const struct recorded *e, u32 segment) {
  return e < (struct recorded *)c->job->recorded + c->job->n_recorded && e->segment == segment;
}

/* All work-items of a group have run a segment. */
void cc_sub_groups(struct context *c, u32 segment, u64 items, u32 final) {
  for (const struct recorded *e = recorded_of(c, segment); is_of(c, e, segment); e++) {
    for (u64 first = 0; first < items; first += LANES) add_recorded(c, e, first, items - first < LANES ? items - first : LANES, ~(u64)0, 0, final);
    if (e->mode != ONCE) c->positions[e->place] = 0;
  }
  c->sequence += c->job->several;
}

/* Some work-items of a warp have run a segment; a warp does not reach across blocks of 64. */
void cc_sub_groups_of(struct context *c, u32 segment, u64 from, u64 set) {
  u64 first = from / LANES * LANES, left = c->items - first;
  for (const struct recorded *e = recorded_of(c, segment); is_of(c, e, segment); e++) {
    add_recorded(c, e, first, left < LANES ? left : LANES, set << (from - first), 1, 0);
    if (e->mode != ONCE) c->positions[e->place] = 0;
  }
  c->sequence += c->job->several;
}

/* Accesses of which slices tell the addresses: `rows.c` has found in which boxes they are even. */

static u64 address_in(const struct part *p, u64 n, u64 x, u64 y) {
  return p->origin[n] + (x - p->box.x) * p->dx[n] + (y - p->box.y) * p->dy[n];
}

static int is_in(const struct part *p, u64 x, u64 y, u64 z) {
  return x - p->box.x < p->box.nx && y - p->box.y < p->box.ny && z == p->z;
}

/* A block of a group of which no box has all: one work-item after another. */
static void add_block(struct context *c, const struct slice *slice, const u64 *origin, const u64 *size, u32 block, int final) {
  u64 addresses[MOST_PARTS_OF_SLICE][LANES], results[MOST_RESULTS], items = size[0] * size[1] * size[2];
  u64 n = items - LANES * block < LANES ? items - LANES * block : LANES;
  const struct part *p = c->parts;
  for (u32 k = 0; k < n; k++) {
    u64 item = LANES * block + k, x = origin[0] + item % size[0], y = origin[1] + item / size[0] % size[1];
    u64 z = origin[2] + item / size[0] / size[1];
    u64 parts = c->n_parts;
    if (parts > MOST_PARTS) {
      slice->at(c, x, y, z, results);
      for (u64 i = 0; i < slice->addresses; i++) addresses[i][k] = results[0] ? results[2 + i] : ~(u64)0;
      continue;
    }
    if (!is_in(p, x, y, z))
      for (p = c->parts; p < c->parts + parts && !is_in(p, x, y, z);) p++;
    for (u64 i = 0; i < slice->addresses; i++) addresses[i][k] = p->reached ? address_in(p, i, x, y) : ~(u64)0;
  }
  for (u64 i = 0; i < slice->addresses; i++) {
    c->time = time_of(c->sequence, slice->order, slice->sites[i]);
    add_addresses(c, site_of(c, slice->sites[i]), addresses[i], block, n, final);
  }
}

/* The shape of blocks of work-items in rows of so many; a null pointer where blocks differ, or reach too far. */
static struct shape *shape_of_plane(struct context *c, struct sub_site *s, u64 dx, u64 dy, u64 columns) {
  struct plane *p = &s->plane;
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
  p->dx = dx, p->dy = dy, p->columns = columns;
  return f;
}

/* Rows in a grid of them. */
static void add_grid(struct context *c, struct sub_site *s, struct shape *f, const u32 *keys, u32 across, u64 columns, u32 up, u64 rows) {
  if (!f) f = find_shape(c, s, keys, *keys);
  u64 different = f ? different_places(s, up) : rows;
  for (u64 r = 0; r < different && r < rows; r++) {
    if (f) {
      count_shape(s, f, *keys + r * up, across, columns, (rows - r + different - 1) / different);
      continue;
    }
    u32 moved[LANES];
    for (u32 k = 0; k < LANES; k++) moved[k] = keys[k] == NONE ? NONE : keys[k] + r * up;
    push(c, s, moved, across, columns);
  }
}

/* What a grid of rows touches, of groups that stand in columns and rows too. */
static void touch_grid(struct context *c, struct sub_site *s, struct shape *f, u32 *keys, u32 across, u64 columns, u32 up, u64 rows) {
  int by_rows = rows > columns;
  u64 line = c->job->groups[0];
  u32 moved[LANES];
  if (!is_touched(c, s)) return;
  for (u32 k = 0; f && k < LANES; k++) moved[k] = *keys + f->distances[k];
  if (!f) memcpy(moved, keys, sizeof moved);
  for (u64 i = 0; i < (by_rows ? columns : rows); i++) {
    cc_touch(c, s->shift, s->nbytes, moved, by_rows ? up : across, by_rows ? rows : columns, c->time, 0, c->toucher + (by_rows ? i : i * line), by_rows ? line : 1);
    for (u32 k = 0; k < LANES; k++) moved[k] += moved[k] == NONE ? 0 : by_rows ? across : up;
  }
}

/* Groups of an even box, in columns and rows of them; each has its work-items in one layer. */
static void add_groups(struct context *c, const struct slice *slice, const struct part *p, const u64 *origin, const u64 *size,
                       u64 columns, u64 rows) {
  u64 addresses[LANES], items = size[0] * size[1];
  u32 keys[LANES];
  for (u64 n = 0; n < slice->addresses && p->reached; n++) {
    struct sub_site *s = site_of(c, slice->sites[n]);
    c->time = time_of(c->sequence, slice->order, slice->sites[n]);
    u32 across = (int64_t)(size[0] * p->dx[n]) >> s->shift, up = (int64_t)(size[1] * p->dy[n]) >> s->shift;
    for (u64 first = 0; first < items; first += LANES) {
      u64 there = items - first < LANES ? items - first : LANES;
      struct shape *f = there == LANES ? shape_of_plane(c, s, p->dx[n], p->dy[n], size[0]) : 0;
      for (u64 k = 0; k < (f ? 1 : there); k++)
        addresses[k] = address_in(p, n, origin[0] + (first + k) % size[0], origin[1] + (first + k) / size[0]);
      if (f) *keys = key_of(c, &s, *addresses);
      else keys_of(c, s, addresses, there, keys);
      add_grid(c, s, f, keys, across, columns, up, rows);
      touch_grid(c, s, f, keys, across, columns, up, rows);
    }
  }
}


/* Groups from `from` to before `to` of a launch, in one layer of groups. */
void cc_sub_groups_of_launch(struct context *c, const struct slice *slice, const u64 *from, const u64 *to) {
  struct job *j = c->job;
  u64 layered = j->local[2] == 1 || j->local[0] * j->local[1] % LANES == 0;
  u64 layers = least(j->local[2], j->global[2] - from[2] * j->local[2]);
  int whole = c->n_parts <= MOST_PARTS && layered;
  c->sequence = 0;
  for (u64 k = 0; k < layers; k++) {
    u64 z = from[2] * j->local[2] + k;
    for (u64 y = from[1]; y < to[1]; y++) {
      for (u64 x = from[0]; x < to[0];) {
        u64 origin[] = {x * j->local[0], y * j->local[1], layered ? z : z - k}, size[3];
        for (int d = 0; d < 3; d++) size[d] = least(j->local[d], j->global[d] - origin[d]);
        c->toucher = number_of(j, x, y, from[2]);
        if (layered) size[2] = 1;
        const struct part *p = c->parts, *end = p + (whole ? c->n_parts : 0);
        for (; p < end; p++)
          if (is_in(p, origin[0], origin[1], z) && is_in(p, origin[0] + j->local[0] - 1, origin[1] + j->local[1] - 1, z)) break;
        if (p < end) {
          u64 columns = least(to[0], (p->box.x + p->box.nx) / j->local[0]) - x;
          u64 rows = least(to[1], (p->box.y + p->box.ny) / j->local[1]) - y;
          /* Rows of groups that begin the box in y take those above them along. */
          int begins = y == from[1] || origin[1] - j->local[1] < p->box.y || origin[1] < j->local[1];
          if (begins) add_groups(c, slice, p, origin, size, columns, rows);
          x += columns;
          continue;
        }
        if (layered || !k)
          for (u64 b = 0; LANES * b < size[0] * size[1] * size[2]; b++) add_block(c, slice, origin, size, b, 1);
        x++;
      }
    }
  }
}

/* The work-group that runs. */
void cc_sub_groups_of_group(struct context *c, const struct slice *slice, u64 nx, u64 ny, u64 nz, u32 final) {
  const u64 origin[3] = {0}, size[] = {nx, ny, nz}, layer[] = {nx, ny, 1}, items = nx * ny * nz;
  set_time(c, slice->order, 0);
  int whole = c->n_parts == nz && (nz == 1 || nx * ny % LANES == 0);
  for (u64 z = 0; z < nz && whole && !final; z++) whole = c->parts[z].reached == c->parts[0].reached;
  for (u64 n = 0; n < slice->addresses && whole && !final; n++)
    for (u32 b = 0; LANES * b < items; b++) whole &= !is_waiting(site_of(c, slice->sites[n]), b);
  for (u64 z = 0; z < nz && whole; z++) add_groups(c, slice, &c->parts[z], origin, layer, 1, 1);
  if (!whole)
    for (u32 b = 0; LANES * b < items; b++) add_block(c, slice, origin, size, b, final);
}

/* `n` elements that a work-group copies together, as if each work-item took the next one. */
void cc_sub_groups_of_copy(struct context *c, u32 site, u64 address, u64 step, u64 n) {
  u64 addresses[LANES];
  struct sub_site *s = site_of(c, site);
  u32 keys[LANES];
  if (!n) return;
  for (u64 k = 0; k < LANES; k++) addresses[k] = k < n ? address + k * step : ~(u64)0;
  keys_of(c, s, addresses, LANES, keys);
  set_time(c, 0, site);
  if (n >= LANES) add_rows(c, s, keys, (int64_t)(LANES * step) >> s->shift, n / LANES);
  if (n >= LANES && is_touched(c, s)) cc_touch(c, s->shift, s->nbytes, keys, (int64_t)(LANES * step) >> s->shift, n / LANES, c->time, 0, c->toucher, 0);
  if (n % LANES) {
    for (u64 k = 0; k < LANES; k++) addresses[k] = k < n % LANES ? address + (n - n % LANES + k) * step : ~(u64)0;
    keys_of(c, s, addresses, LANES, keys);
    add_keys(c, s, keys, 0, LANES, 1);
  }
}

/* How often blocks ran: of each, the most times that any work-item of a sub-group ran it. */

struct term {
  u64 column;
  int64_t coefficient;
};

/* Of the work-items from `first` on, the one that a form is largest for, and how large. */
static int64_t find_most(const struct context *c, const struct form *f, u64 first, u64 n, u64 *who) {
  const struct term *t = (struct term *)c->job->terms + f->first, *end = t + f->n;
  int64_t sums[HALF] = {0}, most = INT64_MIN;
  for (; t < end; t++)
    for (u64 i = 0; i < n; i++) {
      u64 at = MAX_ITEMS * t->column + first + i;
      sums[i] += t->coefficient * (c->job->narrow ? ((int32_t *)c->columns)[at] : ((int64_t *)c->columns)[at]);
    }
  for (u64 i = 0; i < n; i++)
    if (sums[i] > most) most = sums[i], *who = first + i;
  return most;
}

/* How large it is, if that is all. */
static int64_t find_largest(const struct context *c, const struct form *f, u64 first, u64 n) {
  const struct term *t = (struct term *)c->job->terms + f->first, *end = t + f->n;
  if (n < HALF) return find_most(c, f, first, n, &n);
  if (c->job->narrow) { /* runs of a segment without loops: 32 bits hold what they count */
    int32_t sums[HALF] = {0}, largest = INT32_MIN;
    for (; t < end; t++) {
      const int32_t *from = (const int32_t *)c->columns + MAX_ITEMS * t->column + first;
      for (u64 i = 0; i < HALF; i++) sums[i] += (int32_t)t->coefficient * from[i];
    }
    for (u64 i = 0; i < HALF; i++) largest = sums[i] > largest ? sums[i] : largest;
    return largest;
  }
  int64_t sums[HALF] = {0}, largest = INT64_MIN;
  for (; t < end; t++) {
    const int64_t *from = (const int64_t *)c->columns + MAX_ITEMS * t->column + first;
    if (t->coefficient == 1)
      for (u64 i = 0; i < HALF; i++) sums[i] += from[i];
    else if (t->coefficient == -1)
      for (u64 i = 0; i < HALF; i++) sums[i] -= from[i];
    else
      for (u64 i = 0; i < HALF; i++) sums[i] += t->coefficient * from[i];
  }
  for (u64 i = 0; i < HALF; i++) largest = sums[i] > largest ? sums[i] : largest;
  return largest;
}

/* Whether the columns are those of the group before, as they mostly are where few work-items go another way. */
static int is_repeated(struct context *c) {
  u64 bytes = c->items * (c->job->narrow ? 4 : 8), pitch = MAX_ITEMS * (c->job->narrow ? 4 : 8), same = c->repeated == c->items;
  if (!c->before) c->before = cc_map(c, pitch * c->job->n_columns);
  for (u64 k = 0; k < c->job->n_columns; k++) {
    u8 *now = (u8 *)c->columns + pitch * k, *then = (u8 *)c->before + pitch * k;
    if (same && !memcmp(now, then, bytes)) continue;
    same = 0;
    memcpy(then, now, bytes);
  }
  c->repeated = c->items;
  return same;
}

static void keep_longest(struct context *c, u64 item, u64 total) {
  struct job *j = c->job;
  u64 columns = j->n_columns, *kept = c->longest;
  u64 number = number_of(j, c->group[0], c->group[1], c->group[2]);
  if (total < kept[0] || (total == kept[0] && number >= kept[1])) return;
  kept[0] = total, kept[1] = number;
  memcpy(kept + 2, c->runs, 8 * j->segments);
  for (u64 k = 0; k < columns; k++)
    kept[2 + j->segments + k] = j->narrow ? ((u32 *)c->columns)[MAX_ITEMS * k + item] : ((u64 *)c->columns)[MAX_ITEMS * k + item];
}

static void measure(struct context *c) {
  struct job *j = c->job;
  const struct form *forms = (struct form *)j->forms;
  u64 all = 0, who = 0;
  int64_t longest = INT64_MIN;
  if (!j->n_forms) return;
  for (u64 k = 0; k < j->segments; k++) all += c->runs[k] * ((u64 *)j->segment_weights)[k];
  int64_t *last = (int64_t *)c->form_sums + 2 * j->n_forms;
  if (!is_repeated(c)) {
    memset(last, 0, 16 * j->n_forms);
    for (u64 f = 0; f < j->n_forms; f++)
      for (u64 first = 0; first < c->items; first += LANES) {
        u64 n = c->items - first;
        int64_t low = find_largest(c, &forms[f], first, least(n, HALF)), high = INT64_MIN;
        if (n > HALF) high = find_largest(c, &forms[f], first + HALF, least(n - HALF, HALF)), last[f] += high;
        last[f] += low, last[j->n_forms + f] += low > high ? low : high;
        if (!f && (low > longest || high > longest)) {
          u64 from = low >= high ? first : first + HALF;
          longest = find_most(c, forms, from, least(c->items - from, HALF), &who);
        }
      }
    keep_longest(c, who, all + longest);
    c->longest_of_group = longest, c->longest_item = who;
  } else keep_longest(c, c->longest_item, all + c->longest_of_group);
  for (u64 f = 0; f < 2 * j->n_forms; f++) c->form_sums[f] += last[f];
}

void cc_end_group(struct context *c) {
  struct job *j = c->job;
  u64 narrow = (c->items + HALF - 1) / HALF, wide = (c->items + LANES - 1) / LANES;
  measure(c);
  c->sequence = 0;
  for (u64 k = 0; k < j->segments; k++) {
    c->entries[k] += narrow * c->runs[k], c->entries[j->segments + k] += wide * c->runs[k];
    c->runs[k] = 0;
  }
  if (j->several)
    for (u64 k = 0; k < j->n_columns; k++) memset((u8 *)c->columns + MAX_ITEMS * k * (j->narrow ? 4 : 8), 0, c->items * (j->narrow ? 4 : 8));
  for (u64 i = 0; i < j->n_sites; i++) {
    struct sub_site *s = site_of(c, i);
    for (u64 b = 0; s->waiting && LANES * b < c->items; b++) flush_waiting(c, s, &s->waiting[b]);
  }
}

void cc_prepare_sub_groups(struct context *c, struct job *j) {
  for (u32 size = 0; size < 3 && !c->number; size++) build_network(&sorters[size], 1, 8u << size), build_network(&mergers[size], 8u << size, 16u << size);
  for (u32 k = 0; k < LANES; k++) all_lanes[k] = k;
  const u64 *sites = (u64 *)j->sites;
  c->span = (j->data_high - j->data_low + PAGE) & -(u64)PAGE; /* variables follow the buffers, as keys have it */
  c->beyond = (j->variables_low & -(u64)PAGE) - j->data_low - c->span;
  u64 span = c->span + j->variables_high - j->variables_low + 2 * PAGE;
  c->sub_sites = cc_map(c, j->n_sites * sizeof(struct sub_site));
  for (u64 i = 0; i < j->n_sites; i++, sites += 4) {
    struct sub_site *s = site_of(c, i);
    s->flags = sites[0], s->nbytes = sites[1], s->shift = sites[2], s->origin = j->data_low + sites[3];
    while (s->shift < 5 && span >> s->shift >= NONE - (1u << 10)) s->shift++;
    s->place_mask = ((s->flags & SITE_LOCAL ? 4 : LINE) - 1) >> s->shift;
  }
  c->parts = cc_map(c, (MOST_PARTS + 1) * sizeof *c->parts);
  c->addresses = cc_map(c, 8 * MAX_ITEMS * j->n_once);
  c->ends = cc_map(c, 8 * MAX_ITEMS * j->n_streams), c->positions = cc_map(c, 8 * j->n_streams);
  c->words = cc_map(c, (u64)8 * STREAM_WORDS * j->n_streams);
  c->columns = cc_map(c, 8 * MAX_ITEMS * j->n_columns);
  c->runs = cc_map(c, 8 * j->segments), c->entries = cc_map(c, 16 * j->segments);
  c->form_sums = cc_map(c, 32 * j->n_forms) /* of all groups, and of the last one */, c->longest = cc_map(c, 8 * (2 + j->segments + j->n_columns));
}

void cc_finish_sub_groups(struct context *c) {
  for (u64 i = 0; i < c->job->n_sites; i++) {
    struct sub_site *s = site_of(c, i);
    flush_batch(s);
    for (u32 k = 0; s->shapes && k < SHAPES; k++) flush_shape(s, &s->shapes[k]);
    if (s->plane.shape) flush_shape(s, s->plane.shape);
  }
}

/* What was counted of each site, behind its number. */
u64 cc_sub_group_words(struct context *c, u64 site, u64 *words) {
  struct sub_site *s = site_of(c, site);
  words[0] = site;
  memcpy(words + 1, s->totals, sizeof s->totals), memcpy(words + 1 + OF_ROW, s->pairs, sizeof s->pairs);
  words[1 + OF_ROW + STRIDES] <<= s->shift;
  return 1 + OF_ROW + PAIRS;
}
