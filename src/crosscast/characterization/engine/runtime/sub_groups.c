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

enum { LANES = 64, HALF = 32, BLOCKS = MAX_ITEMS / LANES, AT_ONCE = 8, LINE = 128, SHAPES = 8, PATIENCE = 64 };
enum { ACCESSES, SECTORS, LINES_64, LINES_128, CONFLICTS, OF_WIDTH, OF_ROW = 2 * OF_WIDTH };
enum { UNIFORM, CONTIGUOUS, STRIDED, IRREGULAR, STRIDES, PAIRS };
enum { MOST_WAITING = 1 << 16 };
static const u32 NONE = ~(u32)0;
typedef u32 row8 __attribute__((vector_size(4 * AT_ONCE)));

/* Distances of work-items from the first one that takes part, and what rows of this shape cost by the place in a
 * line where they begin. */
struct shape {
  u64 hash, active;
  u32 distances[LANES];
  u8 known[LINE];
  u32 costs[LINE][OF_ROW], pairs[PAIRS];
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
  u64 flags, nbytes, shift, place_mask; /* of a key: its place in a line, or in a word of local memory */
  u64 totals[OF_ROW], pairs[PAIRS];
  u64 hits, misses, batched;
  struct shape *shapes;
  struct plane plane;
  row8 *batch;
  struct waiting *waiting;
};

/* Comparators of a network that sorts 32 keys, and of one that merges two times 32 (Batcher 1968). */
static u8 sorter[192][2], merger[192][2];
static u32 in_sorter, in_merger;

static void build_network(u32 from, u32 n, u8 (*network)[2], u32 *size) {
  for (u32 p = from; p < n; p *= 2)
    for (u32 k = p; k; k /= 2)
      for (u32 j = k % p; j + k < n; j += 2 * k)
        for (u32 i = j; i < j + k && i + k < n; i++)
          if (i / (2 * p) == (i + k) / (2 * p)) network[*size][0] = i, network[(*size)++][1] = i + k;
}

static void sort(row8 *v, u8 (*network)[2], u32 n) {
  for (u32 i = 0; i < n; i++) {
    row8 a = v[network[i][0]], b = v[network[i][1]];
    v[network[i][0]] = __builtin_elementwise_min(a, b);
    v[network[i][1]] = __builtin_elementwise_max(a, b);
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
  row8 some = (row8)(v[0] != NONE) & 1, ended = some & (row8)(v[n - 1] == NONE);
  int straddles = s->nbytes > (u64)1 << s->shift;
  for (u32 level = 0; level < 3; level++) {
    u32 bits = 5 + level - s->shift, extent = s->nbytes ? (s->nbytes - 1) >> s->shift : 0;
    row8 sum = {0};
    if (!straddles) {
      for (u32 i = 1; i < n; i++) sum -= (row8)((v[i] ^ v[i - 1]) >> bits != 0);
      lines[level] = sum + some - ended;
      continue;
    }
    row8 end = {0};
    for (u32 i = 0; i < n; i++) {
      row8 first = v[i] >> bits, behind = ((v[i] + extent) >> bits) + 1;
      row8 from = __builtin_elementwise_max(first, end);
      row8 valid = (row8)(v[i] != NONE);
      sum += (behind - from) & valid;
      end = (behind & valid) | (end & ~valid);
    }
    lines[level] = sum;
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

/* Most distinct words of local memory in one of 32 banks, of rising keys. */
static row8 count_wavefronts(const struct sub_site *s, const row8 *v, u32 n) {
  row8 most = {0};
  for (u32 r = 0; r < AT_ONCE; r++) {
    u8 banks[32] = {0}, worst = 0;
    u64 before = ~(u64)0;
    for (u32 i = 0; i < n && v[i][r] != NONE; i++) {
      u64 word = ((u64)v[i][r] << s->shift) >> 2;
      u8 here = banks[word % 32] += word != before;
      before = word;
      if (here > worst) worst = here;
    }
    most[r] = worst;
  }
  return most;
}

/* How addresses change between neighbours of the same 32 that both take part. */
static void count_pairs(const struct sub_site *s, const row8 *v, row8 *pairs) {
  const row8 one = (row8){0} + 1;
  row8 width = (row8){0} + (s->nbytes % (1u << s->shift) ? NONE : (u32)(s->nbytes >> s->shift));
  for (u32 first = 0; first < LANES; first += HALF) {
    row8 step[HALF + 1] = {0}, both[HALF + 1] = {0};
    for (u32 i = 1; i < HALF; i++) {
      step[i] = v[first + i] - v[first + i - 1];
      both[i] = (row8)(v[first + i] != NONE) & (row8)(v[first + i - 1] != NONE);
    }
    for (u32 i = 1; i < HALF; i++) {
      row8 same = (row8)(step[i] == 0), next = (row8)(step[i] == width) | (row8)(step[i] == -width);
      row8 even = ((row8)(step[i] == step[i - 1]) & both[i - 1]) | ((row8)(step[i] == step[i + 1]) & both[i + 1]);
      row8 other = both[i] & ~same & ~next, strided = other & even;
      pairs[UNIFORM] += both[i] & same & one, pairs[CONTIGUOUS] += both[i] & next & ~same & one;
      pairs[STRIDED] += strided & one, pairs[IRREGULAR] += other & ~even & one;
      row8 length = __builtin_elementwise_min(step[i], -step[i]);
      pairs[STRIDES] += strided & length;
    }
  }
}

/* What eight rows cost, each in a column of keys, which are sorted on the way. */
static void count_rows(const struct sub_site *s, row8 *v, row8 *costs, row8 *pairs) {
  if (!(s->flags & SITE_LOCAL)) count_pairs(s, v, pairs);
  if (!is_sorted(v, HALF)) sort(v, sorter, in_sorter);
  if (!is_sorted(v + HALF, HALF)) sort(v + HALF, sorter, in_sorter);
  for (u32 width = 0; width < 2; width++) {
    if (width && !is_sorted(v, LANES)) sort(v, merger, in_merger);
    for (u32 first = 0; first < LANES; first += width ? LANES : HALF) {
      u32 n = width ? LANES : HALF;
      row8 *to = costs + OF_WIDTH * width, lines[3];
      to[ACCESSES] += (row8)(v[first] != NONE) & 1;
      if (s->flags & SITE_LOCAL) to[SECTORS] += count_wavefronts(s, v + first, n);
      else {
        count_lines(s, v + first, n, lines);
        for (u32 level = 0; level < 3; level++) to[SECTORS + level] += lines[level];
      }
      if (s->flags & SITE_ATOMIC) to[CONFLICTS] += most_alike(v + first, n);
    }
  }
}

static u64 sum_of(row8 x) {
  u64 sum = 0;
  for (u32 i = 0; i < AT_ONCE; i++) sum += x[i];
  return sum;
}

static void flush_batch(struct sub_site *s) {
  row8 costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  if (!s->batched) return;
  for (u32 lane = 0; lane < LANES; lane++)
    for (u64 i = s->batched; i < AT_ONCE; i++) s->batch[lane][i] = NONE;
  count_rows(s, s->batch, costs, pairs);
  for (u32 i = 0; i < OF_ROW; i++) s->totals[i] += sum_of(costs[i]);
  for (u32 i = 0; i < PAIRS; i++) s->pairs[i] += sum_of(pairs[i]);
  s->batched = 0;
}

static void push(struct context *c, struct sub_site *s, const u32 *keys, u32 step, u64 times) {
  if (!s->batch) s->batch = (row8 *)(((u64)cc_map(c, (LANES + 1) * sizeof *s->batch) + 31) & -(u64)32);
  row8 *batch = s->batch;
  for (u64 k = 0; k < times; k++) {
    u32 by = k * step;
    for (u32 lane = 0; lane < LANES; lane++) ((u32 *)&batch[lane])[s->batched] = keys[lane] == NONE ? NONE : keys[lane] + by;
    if (++s->batched == AT_ONCE) flush_batch(s);
  }
}

/* Costs of the eight places in a line of which `place` is one. */
static void learn(const struct sub_site *s, struct shape *f, u32 place) {
  row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  u32 first = place & -AT_ONCE;
  for (u32 lane = 0; lane < LANES; lane++)
    for (u32 i = 0; i < AT_ONCE; i++) v[lane][i] = f->active >> lane & 1 ? f->distances[lane] + (1u << 30) + first + i : NONE;
  count_rows(s, v, costs, pairs);
  for (u32 i = 0; i < AT_ONCE; i++) {
    f->known[first + i] = 1;
    for (u32 k = 0; k < OF_ROW; k++) f->costs[first + i][k] = costs[k][i];
  }
  for (u32 k = 0; k < PAIRS; k++) f->pairs[k] = pairs[k][0];
}

/* The shape of a row; a null pointer where shapes do not come again, or it is too wide for one. */
static struct shape *find_shape(struct context *c, struct sub_site *s, const u32 *keys, u32 first) {
  u32 distances[LANES];
  u64 active = 0, sum = 0;
  u32 far = 0;
  for (u32 lane = 0; lane < LANES; lane++) {
    u32 there = keys[lane] != NONE, distance = there ? keys[lane] - first : 0;
    distances[lane] = distance, active |= (u64)there << lane;
    far |= distance + (1u << 29) >= 1u << 30;
  }
  if (far) return 0;
  u32 sums[8] = {0};
  for (u32 lane = 0; lane < LANES; lane++) sums[lane % 8] = sums[lane % 8] * 0x9E3779B1u + distances[lane];
  for (u32 i = 0; i < 8; i++) sum = (sum ^ sums[i]) * 0x9E3779B97F4A7C15u;
  u64 hash = (sum ^ active) * 0x9E3779B97F4A7C15u;
  if (!s->shapes) s->shapes = cc_map(c, SHAPES * sizeof *s->shapes);
  struct shape *f = &s->shapes[hash >> 61];
  if (f->active == active && f->hash == hash && !memcmp(f->distances, distances, sizeof distances)) {
    s->hits++;
    return f;
  }
  s->misses++;
  if (s->misses > s->hits + PATIENCE) return 0;
  f->hash = hash, f->active = active;
  memcpy(f->distances, distances, sizeof distances), memset(f->known, 0, sizeof f->known);
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
  for (u64 r = 0; r < different && r < times; r++) {
    u32 place = (key + r * step) & s->place_mask;
    u64 n = (times - r + different - 1) / different * weight;
    if (!f->known[place]) learn(s, f, place);
    for (u32 i = 0; i < OF_ROW; i++) s->totals[i] += n * f->costs[place][i];
  }
  for (u32 i = 0; i < PAIRS; i++) s->pairs[i] += times * weight * f->pairs[i];
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
  w->used = 0;
  memset(w->filled, 0, sizeof w->filled);
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
  memmove(w->rows, w->rows + LANES * complete, 4 * LANES * (w->used - complete));
  w->used -= complete;
  for (u32 lane = 0; lane < LANES; lane++) w->filled[lane] -= complete;
}

static void defer(struct context *c, struct sub_site *s, u32 item, u32 key) {
  if (!s->waiting) s->waiting = cc_map(c, BLOCKS * sizeof *s->waiting);
  struct waiting *w = &s->waiting[item / LANES];
  u32 k = w->filled[item % LANES];
  if (k == MOST_WAITING) relieve(c, s, w), k = w->filled[item % LANES];
  if (k == w->room) {
    u32 room = w->room ? 2 * w->room : 16;
    w->rows = cc_remap(c, w->rows, 4 * LANES * w->room, 4 * LANES * room), w->room = room;
  }
  if (k == w->used) memset(w->rows + LANES * w->used++, -1, 4 * LANES);
  w->rows[LANES * k + item % LANES] = key, w->filled[item % LANES]++;
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
  u64 span = j->data_high - j->data_low, at = address - j->data_low;
  if (at >= span) at = address - j->variables_low + ((span + PAGE) & -(u64)PAGE);
  return at >> (*s)->shift;
}

/* Keys of a block of addresses, of memory that is known. */
static void keys_of(struct context *c, const struct sub_site *s, const u64 *addresses, u32 n, u32 *keys) {
  struct job *j = c->job;
  u64 low = s->flags & SITE_LOCAL ? (u64)c->local : j->data_low, span = s->flags & SITE_LOCAL ? ~(u64)0 : j->data_high - low;
  u64 beyond = j->variables_low - low - ((span + PAGE) & -(u64)PAGE);
  for (u32 i = 0; i < n; i++) {
    u64 at = addresses[i] - low;
    at -= at >= span ? beyond : 0;
    keys[i] = addresses[i] == ~(u64)0 ? NONE : (u32)(at >> s->shift);
  }
  for (u32 i = n; i < LANES; i++) keys[i] = NONE;
}

static struct sub_site *site_of(struct context *c, u64 number) { return (struct sub_site *)c->sub_sites + number; }

/* A row of which each work-item knows whether it takes part. */
static void add_addresses(struct context *c, struct sub_site *s, const u64 *addresses, u32 block, u32 n, int final) {
  u32 keys[2][LANES];
  if (s->flags & SITE_DYNAMIC) {
    memset(keys, -1, sizeof keys);
    for (u32 i = 0; i < n; i++) {
      struct sub_site *to = s;
      u32 key = key_of(c, &to, addresses[i]);
      keys[to - s][i] = key;
    }
  } else keys_of(c, s, addresses, n, keys[0]);
  for (u32 k = 0; k <= (s->flags & SITE_DYNAMIC) / SITE_DYNAMIC; k++) {
    u32 there = 0;
    for (u32 i = 0; i < n; i++) there += keys[k][i] != NONE;
    if (!there) continue;
    if (final || (there == n && !is_waiting(s + k, block))) add_rows(c, s + k, keys[k], 0, 1);
    else
      for (u32 i = 0; i < n; i++)
        if (keys[k][i] != NONE) defer(c, s + k, LANES * block + i, keys[k][i]);
  }
}

/* What one work-item accessed, in order: runs of addresses at equal distances. */
struct reader {
  const u64 *words;
  u64 at, end, in_run;
};

static u64 word_at(const struct reader *r, u64 i) { return r->words[i % STREAM_WORDS]; }

static u64 next_of(struct reader *r, int runs) {
  if (r->at == r->end) return ~(u64)0;
  if (!runs) return word_at(r, r->at++);
  u64 address = word_at(r, r->at) + r->in_run * word_at(r, r->at + 1);
  if (++r->in_run == word_at(r, r->at + 2)) r->at += 3, r->in_run = 0;
  return address;
}

/* Each work-item has one run of the same length and step. */
static int is_plain(const struct reader *r, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (r[i].end - r[i].at != 3) return 0;
    if (word_at(&r[i], r[i].at + 1) != word_at(r, r->at + 1) || word_at(&r[i], r[i].at + 2) != word_at(r, r->at + 2)) return 0;
  }
  return 1;
}

static u64 length_of(const struct reader *r, int runs) {
  if (!runs) return r->end - r->at;
  u64 n = 0;
  for (u64 at = r->at; at != r->end; at += 3) n += word_at(r, at + 2);
  return n;
}

static void add_streams(struct context *c, struct sub_site *s, struct reader *r, u32 block, u32 n, int runs, int final) {
  u64 addresses[LANES], least = ~(u64)0, most = 0;
  u32 keys[LANES];
  int even = !is_waiting(s, block) && !(s->flags & SITE_DYNAMIC && is_waiting(s + 1, block));
  if (runs && (even || final) && !(s->flags & SITE_DYNAMIC) && is_plain(r, n)) {
    for (u32 i = 0; i < n; i++) addresses[i] = word_at(&r[i], r[i].at);
    keys_of(c, s, addresses, n, keys);
    add_rows(c, s, keys, (int64_t)word_at(r, r->at + 1) >> s->shift, word_at(r, r->at + 2));
    return;
  }
  for (u32 i = 0; i < n; i++) {
    u64 length = length_of(&r[i], runs);
    least = length < least ? length : least, most = length > most ? length : most;
  }
  final |= even && least == most && !(s->flags & SITE_DYNAMIC);
  for (u64 k = 0; k < most; k++) {
    for (u32 i = 0; i < n; i++) addresses[i] = next_of(&r[i], runs);
    add_addresses(c, s, addresses, block, n, final);
  }
}

/* What the work-items of a set that ran a segment did there. Where each has run it but once in the group's life, the
 * k-th execution there is the k-th of all. */
static void add_segment(struct context *c, u32 segment, u64 first, u64 set, u64 n, int in_turn, int final) {
  const struct recorded *all = (struct recorded *)c->job->recorded;
  struct reader readers[LANES];
  u64 addresses[LANES];
  u32 block = first / LANES;
  for (u64 i = 0; i < c->job->n_recorded; i++) {
    const struct recorded *e = &all[i];
    if (e->segment != segment) continue;
    struct sub_site *s = site_of(c, e->site);
    if (e->mode == ONCE) {
      const u64 *given = c->addresses + MAX_ITEMS * e->place + LANES * block;
      for (u32 k = 0; k < n; k++) addresses[k] = set >> k & 1 ? given[k] : ~(u64)0;
      add_addresses(c, s, addresses, block, n, final);
      continue;
    }
    const u64 *ends = c->ends + MAX_ITEMS * e->place, *words = c->words + (u64)STREAM_WORDS * e->place;
    u64 start = first && !in_turn ? ends[first - 1] : 0;
    for (u32 k = 0; k < n; k++) {
      u64 end = set >> k & 1 ? ends[first + k] : start;
      readers[k] = (struct reader){words, start, end, 0};
      start = end;
    }
    if (c->positions[e->place] - readers[0].at > STREAM_WORDS) c->inexact = 1;
    else add_streams(c, s, readers, block, n, e->mode == RUNS, final);
  }
}

static void end_streams(struct context *c, u32 segment) {
  const struct recorded *all = (struct recorded *)c->job->recorded;
  for (u64 i = 0; i < c->job->n_recorded; i++)
    if (all[i].segment == segment && all[i].mode != ONCE) c->positions[all[i].place] = 0;
}

/* All work-items of a group have run a segment. */
void cc_sub_groups(struct context *c, u32 segment, u64 items, u32 final) {
  for (u64 first = 0; first < items; first += LANES) {
    u64 n = items - first < LANES ? items - first : LANES;
    add_segment(c, segment, first, ~(u64)0 >> (LANES - n), n, 0, final);
  }
  end_streams(c, segment);
}

/* Some work-items of a warp have run a segment; a warp does not reach across blocks of 64. */
void cc_sub_groups_of(struct context *c, u32 segment, u64 first, u64 set) {
  u64 low = first / LANES * LANES, left = c->items - low;
  add_segment(c, segment, low, set << (first - low), left < LANES ? left : LANES, 1, 0);
  end_streams(c, segment);
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
  for (u64 i = 0; i < slice->addresses; i++)
    add_addresses(c, site_of(c, slice->sites[i]), addresses[i], block, n, final);
}

/* The shape of blocks of work-items in rows of so many; a null pointer where blocks differ, or reach too far. */
static struct shape *shape_of_plane(struct context *c, struct sub_site *s, u64 dx, u64 dy, u64 columns) {
  struct plane *p = &s->plane;
  if (p->shape && p->dx == dx && p->dy == dy && p->columns == columns) return p->shape;
  if (LANES % columns && columns % LANES) return 0;
  u64 across = columns < LANES ? columns : LANES, far = 0;
  if (!p->shape) p->shape = cc_map(c, sizeof *p->shape);
  struct shape *f = p->shape;
  for (u64 k = 0; k < LANES; k++) {
    u64 distance = (int64_t)(k % across * dx + k / across * dy) >> s->shift;
    far |= distance + (1u << 29) >= 1u << 30;
    f->distances[k] = distance;
  }
  p->columns = 0;
  if (far) return 0;
  f->active = ~(u64)0, p->dx = dx, p->dy = dy, p->columns = columns;
  memset(f->known, 0, sizeof f->known);
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

/* Groups of an even box, in columns and rows of them; each has its work-items in one layer. */
static void add_groups(struct context *c, const struct slice *slice, const struct part *p, const u64 *origin, const u64 *size,
                       u64 columns, u64 rows) {
  u64 addresses[LANES], items = size[0] * size[1];
  u32 keys[LANES];
  for (u64 n = 0; n < slice->addresses && p->reached; n++) {
    struct sub_site *s = site_of(c, slice->sites[n]);
    u32 across = (int64_t)(size[0] * p->dx[n]) >> s->shift, up = (int64_t)(size[1] * p->dy[n]) >> s->shift;
    for (u64 first = 0; first < items; first += LANES) {
      u64 there = items - first < LANES ? items - first : LANES;
      struct shape *f = there == LANES ? shape_of_plane(c, s, p->dx[n], p->dy[n], size[0]) : 0;
      for (u64 k = 0; k < (f ? 1 : there); k++)
        addresses[k] = address_in(p, n, origin[0] + (first + k) % size[0], origin[1] + (first + k) / size[0]);
      if (f) *keys = key_of(c, &s, *addresses);
      else keys_of(c, s, addresses, there, keys);
      add_grid(c, s, f, keys, across, columns, up, rows);
    }
  }
}

static u64 least(u64 a, u64 b) { return a < b ? a : b; }

/* Groups from `from` to before `to` of a launch, in one layer of groups. */
void cc_sub_groups_of_launch(struct context *c, const struct slice *slice, const u64 *from, const u64 *to) {
  struct job *j = c->job;
  u64 layered = j->local[2] == 1 || j->local[0] * j->local[1] % LANES == 0;
  u64 layers = least(j->local[2], j->global[2] - from[2] * j->local[2]);
  int whole = c->n_parts <= MOST_PARTS && layered;
  for (u64 k = 0; k < layers; k++) {
    u64 z = from[2] * j->local[2] + k;
    for (u64 y = from[1]; y < to[1]; y++) {
      for (u64 x = from[0]; x < to[0];) {
        u64 origin[] = {x * j->local[0], y * j->local[1], layered ? z : z - k}, size[3];
        for (int d = 0; d < 3; d++) size[d] = least(j->local[d], j->global[d] - origin[d]);
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
  if (n >= LANES) add_rows(c, s, keys, (int64_t)(LANES * step) >> s->shift, n / LANES);
  if (n % LANES) {
    for (u64 k = 0; k < LANES; k++) addresses[k] = k < n % LANES ? address + (n - n % LANES + k) * step : ~(u64)0;
    keys_of(c, s, addresses, LANES, keys);
    add_rows(c, s, keys, 0, 1);
  }
}

/* How often blocks ran: of each, the most times that any work-item of a sub-group ran it. */

struct term {
  u64 column;
  int64_t coefficient;
};

static void add_column(const struct context *c, u64 column, int64_t coefficient, u64 first, u64 n, int64_t *sums) {
  if (c->job->narrow) {
    const u32 *from = (const u32 *)c->columns + MAX_ITEMS * column + first;
    for (u64 i = 0; i < n; i++) sums[i] += coefficient * (int32_t)from[i];
    return;
  }
  const u64 *from = (const u64 *)c->columns + MAX_ITEMS * column + first;
  if (coefficient == 1)
    for (u64 i = 0; i < n; i++) sums[i] += from[i];
  else if (coefficient == -1)
    for (u64 i = 0; i < n; i++) sums[i] -= from[i];
  else
    for (u64 i = 0; i < n; i++) sums[i] += coefficient * from[i];
}

static void keep_longest(struct context *c, u64 item, u64 total) {
  struct job *j = c->job;
  u64 columns = j->n_columns, *kept = c->longest;
  u64 number = c->group[0] + j->groups[0] * (c->group[1] + j->groups[1] * c->group[2]);
  if (total < kept[0] || (total == kept[0] && number >= kept[1])) return;
  kept[0] = total, kept[1] = number;
  memcpy(kept + 2, c->runs, 8 * j->segments);
  for (u64 k = 0; k < columns; k++)
    kept[2 + j->segments + k] = j->narrow ? ((u32 *)c->columns)[MAX_ITEMS * k + item] : ((u64 *)c->columns)[MAX_ITEMS * k + item];
}

static void measure(struct context *c) {
  struct job *j = c->job;
  const struct form *forms = (struct form *)j->forms;
  const struct term *terms = (struct term *)j->terms;
  u64 all = 0;
  for (u64 k = 0; k < j->segments; k++) all += c->runs[k] * ((u64 *)j->segment_weights)[k];
  int64_t longest = INT64_MIN;
  u64 who = 0;
  for (u64 f = 0; f < j->n_forms; f++) {
    for (u64 first = 0; first < c->items; first += LANES) {
      int64_t most[2] = {INT64_MIN, INT64_MIN};
      for (u64 half = 0; half < 2; half++) {
        u64 from = first + HALF * half, n = c->items - from < HALF ? c->items - from : HALF;
        int64_t sums[HALF] = {0};
        if (from >= c->items) break;
        for (u64 t = forms[f].first; t < forms[f].first + forms[f].n; t++) add_column(c, terms[t].column, terms[t].coefficient, from, n, sums);
        for (u64 i = 0; i < n; i++) most[half] = sums[i] > most[half] ? sums[i] : most[half];
        if (!f && most[half] > longest)
          for (longest = most[half], who = from; sums[who - from] != longest;) who++;
        c->form_sums[f] += most[half];
      }
      c->form_sums[j->n_forms + f] += most[0] > most[1] ? most[0] : most[1];
    }
  }
  if (j->n_forms) keep_longest(c, who, all + longest);
}

void cc_end_group(struct context *c) {
  struct job *j = c->job;
  u64 narrow = (c->items + HALF - 1) / HALF, wide = (c->items + LANES - 1) / LANES;
  measure(c);
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
  if (!in_sorter) build_network(1, HALF, sorter, &in_sorter), build_network(HALF, LANES, merger, &in_merger);
  const u64 *sites = (u64 *)j->sites;
  u64 span = j->data_high - j->data_low + j->variables_high - j->variables_low + 2 * PAGE;
  c->sub_sites = cc_map(c, j->n_sites * sizeof(struct sub_site));
  for (u64 i = 0; i < j->n_sites; i++, sites += 3) {
    struct sub_site *s = site_of(c, i);
    s->flags = sites[0], s->nbytes = sites[1], s->shift = sites[2];
    while (s->shift < 5 && span >> s->shift >= NONE - (1u << 10)) s->shift++;
    s->place_mask = ((s->flags & SITE_LOCAL ? 4 : LINE) - 1) >> s->shift;
  }
  c->parts = cc_map(c, (MOST_PARTS + 1) * sizeof *c->parts);
  c->addresses = cc_map(c, 8 * MAX_ITEMS * j->n_once);
  c->ends = cc_map(c, 8 * MAX_ITEMS * j->n_streams), c->positions = cc_map(c, 8 * j->n_streams);
  c->words = cc_map(c, (u64)8 * STREAM_WORDS * j->n_streams);
  c->columns = cc_map(c, 8 * MAX_ITEMS * j->n_columns);
  c->runs = cc_map(c, 8 * j->segments), c->entries = cc_map(c, 16 * j->segments);
  c->form_sums = cc_map(c, 16 * j->n_forms), c->longest = cc_map(c, 8 * (2 + j->segments + j->n_columns));
}

void cc_finish_sub_groups(struct context *c) {
  for (u64 i = 0; i < c->job->n_sites; i++) flush_batch(site_of(c, i));
}

/* What was counted of each site, behind its number. */
u64 cc_sub_group_words(struct context *c, u64 site, u64 *words) {
  struct sub_site *s = site_of(c, site);
  words[0] = site;
  memcpy(words + 1, s->totals, sizeof s->totals), memcpy(words + 1 + OF_ROW, s->pairs, sizeof s->pairs);
  words[1 + OF_ROW + STRIDES] <<= s->shift;
  return 1 + OF_ROW + PAIRS;
}
