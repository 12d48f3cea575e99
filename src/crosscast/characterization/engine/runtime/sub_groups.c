/* What work-items of a group left when they had run a segment, put together by sub-groups. */
#include "sub_groups.h"
#include <string.h>

enum { MOST_WAITING = 1 << 16, MOST_REPEATED = 1 << 16, TRIALS = 16 };
enum { DIFFERS = 1, GIVEN_UP }; /* of a repeat: until the group ends, and for good */

void cc_flush_waiting(struct context *c, struct sub_site *s, struct waiting *w) {
  for (u32 k = 0; k < w->used; k++) cc_add_rows(c, s, w->rows + LANES * k, 0, 1, s->weight);
  if (w->used) memset(w->rows, -1, 4 * LANES), memset(w->filled, 0, sizeof w->filled);
  w->used = 0;
}

/* Rows that all work-items have come to are complete; if there are none, not all can be kept. */
static void relieve(struct context *c, struct sub_site *s, struct waiting *w) {
  u32 complete = NONE;
  for (u32 lane = 0; lane < LANES; lane++)
    if (w->filled[lane] < complete) complete = w->filled[lane];
  if (!complete) {
    if (!c->inexact) c->inexact = 1;
    cc_flush_waiting(c, s, w);
    return;
  }
  for (u32 k = 0; k < complete; k++) cc_add_rows(c, s, w->rows + LANES * k, 0, 1, s->weight);
  memmove(w->rows, w->rows + LANES * complete, 4 * LANES * (w->used + 1 - complete));
  w->used -= complete;
  for (u32 lane = 0; lane < LANES; lane++) w->filled[lane] -= complete;
}

/* Work-items that take part. */
static u64 who(const u32 *keys) {
  u64 found = 0;
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight;
    memcpy(&eight, keys + i, sizeof eight);
    found |= (u64)bits_of((row8)(eight != NONE)) << i;
  }
  return found;
}

/* Put keys into one row, if all that take part have as many before it; 0 if they have not. */
static int defer_together(struct waiting *w, const u32 *keys, u32 k) {
  row8 differ = {0};
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight, filled;
    memcpy(&eight, keys + i, sizeof eight), memcpy(&filled, w->filled + i, sizeof filled);
    differ |= (row8)(eight != NONE) & (row8)(filled != k);
  }
  if (bits_of(differ)) return 0;
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight, filled, row;
    u32 *to = w->rows + LANES * k + i;
    memcpy(&eight, keys + i, sizeof eight), memcpy(&filled, w->filled + i, sizeof filled), memcpy(&row, to, sizeof row);
    row8 there = (row8)(eight != NONE);
    row = (eight & there) | (row & ~there), filled -= there;
    memcpy(to, &row, sizeof row), memcpy(w->filled + i, &filled, sizeof filled);
  }
  return 1;
}

/* Put keys of work-items behind those that each has; the row behind the last one is always empty. */
static void defer(struct context *c, struct sub_site *s, u32 block, const u32 *restrict keys, u64 left) {
  if (!s->waiting) s->waiting = cc_map(c, BLOCKS * sizeof *s->waiting);
  struct waiting *w = &s->waiting[block];
  if (w->used == MOST_WAITING) relieve(c, s, w);
  if (w->used + 2 > w->room) {
    u32 room = w->room ? 2 * w->room : 16;
    w->rows = cc_remap(c, w->rows, 4 * LANES * w->room, 4 * LANES * room);
    if (!w->room) memset(w->rows, -1, 4 * LANES);
    w->room = room;
  }
  u32 last = w->filled[__builtin_ctzll(left)], *restrict rows = w->rows, *restrict filled = w->filled;
  if (defer_together(w, keys, last)) left = 0;
  for (; left; left &= left - 1) {
    u32 lane = __builtin_ctzll(left), k = filled[lane]++;
    rows[LANES * k + lane] = keys[lane], last = k > last ? k : last;
  }
  if (last >= w->used) w->used++, memset(rows + LANES * w->used, -1, 4 * LANES);
}

/* Key of an address; of memory that is known only while running, the site of local memory stands behind. */
u32 cc_key_of(struct context *c, struct sub_site **s, u64 address) {
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

/* Where the keys of a site begin, and what to leave out of them behind so many bytes. */
struct memory {
  u64 low, span, beyond, shift;
};

static struct memory memory_of(struct context *c, const struct sub_site *s) {
  if (s->flags & SITE_LOCAL) return (struct memory){(u64)c->local, ~(u64)0, 0, s->shift};
  return (struct memory){s->origin, c->span, c->beyond, s->shift};
}

/* Keys of eight addresses, of memory that is known. */
static inline row8 eight_keys(const struct memory *m, const u64 *addresses) {
  wide8 all, at;
  memcpy(&all, addresses, sizeof all);
  at = all - m->low;
  at -= (wide8)(at >= m->span) & m->beyond;
  return __builtin_convertvector(at >> m->shift, row8) | __builtin_convertvector((wide8)(all == ~(u64)0), row8);
}

void cc_keys_of(struct context *c, const struct sub_site *s, const u64 *addresses, u32 n, u32 *keys) {
  struct memory m = memory_of(c, s);
  for (u32 i = 0; i < n; i += AT_ONCE) {
    row8 eight = eight_keys(&m, addresses + i);
    memcpy(keys + i, &eight, sizeof eight);
  }
  for (u32 i = n; i < LANES; i++) keys[i] = NONE;
}

/* When the group that runs makes an access. */
void cc_set_time(struct context *c, u64 order, u64 site) {
  c->time = time_of(c->sequence, order, site);
  c->toucher = number_of(c->job, c->group[0], c->group[1], c->group[2]);
}

void cc_add_keys(struct context *c, struct sub_site *s, const u32 *keys, u32 block, u32 n, int final) {
  u64 there = who(keys);
  if (!there) return;
  if (is_touched(c, s)) cc_touch_row(c, s->shift, s->nbytes, keys, c->time, c->toucher);
  if (final || ((u32)__builtin_popcountll(there) == n && !is_waiting(s, block))) cc_add_rows(c, s, keys, 0, 1, s->weight);
  else defer(c, s, block, keys, there);
}

/* A row of `n` work-items, of which each knows whether it takes part. */
void cc_add_addresses(struct context *c, struct sub_site *s, const u64 *addresses, u32 block, u32 n, int final) {
  u32 keys[2][LANES];
  if (!(s->flags & SITE_DYNAMIC)) {
    cc_keys_of(c, s, addresses, n, keys[0]);
    cc_add_keys(c, s, keys[0], block, n, final);
    return;
  }
  memset(keys, -1, sizeof keys);
  for (u32 i = 0; i < n; i++) {
    struct sub_site *to = s;
    u32 key = cc_key_of(c, &to, addresses[i]);
    keys[to - s][i] = key;
  }
  for (u32 k = 0; k < 2; k++) cc_add_keys(c, s + k, keys[k], block, n, final);
}

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
static inline row8 take_eight(const struct memory *m, struct reader *r, int runs) {
  const row8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  row8 eight;
  u64 n = r->left < AT_ONCE ? r->left : AT_ONCE;
  if (runs && r->at + 3 == r->end) {
    u64 address = word_at(r, r->at) + r->in_run * word_at(r, r->at + 1);
    eight = eight_keys(m, (u64[AT_ONCE]){address})[0] + places * (u32)((int64_t)word_at(r, r->at + 1) >> m->shift);
    r->in_run += n;
  } else if (!runs && (r->at & r->last) <= r->last + 1 - AT_ONCE) {
    eight = eight_keys(m, r->words + (r->at & r->last));
    r->at += n;
  } else {
    u64 addresses[AT_ONCE];
    for (u32 k = 0; k < AT_ONCE; k++) addresses[k] = next_of(r, runs);
    return eight_keys(m, addresses);
  }
  r->left -= n;
  return eight | (row8)(places >= (u32)n);
}

/* The k-th accesses of work-items for all k, eight at a time, of those that have any left. */
static void add_eights(struct context *c, struct sub_site *s, struct reader *r, u32 n, int runs, u64 later) {
  struct memory m = memory_of(c, s);
  row8 v[LANES], costs[OF_ROW] = {0}, pairs[PAIRS] = {0};
  u8 lanes[LANES];
  u32 there[2] = {0};
  for (u32 i = 0; i < n; i++)
    if (r[i].left) lanes[HALF * (i / HALF) + there[i / HALF]++] = i;
  for (u64 round = 1; there[0] || there[1]; round++) {
    u32 largest = there[0] > there[1] ? there[0] : there[1], room = largest <= 4 ? 4 : largest <= 8 ? 8 : largest <= 16 ? 16 : 32;
    for (u32 half = 0; half < 2; half++) {
      u32 k = 0;
      for (; k < there[half]; k++) v[room * half + k] = take_eight(&m, &r[lanes[HALF * half + k]], runs);
      for (; k < room; k++) v[room * half + k] = (row8){0} + NONE;
    }
    if (is_touched(c, s)) cc_touch_columns(c, s->shift, s->nbytes, v, room, there, c->time + (round - 1) * AT_ONCE * later, later, c->toucher);
    cc_count_rows(s, v, room, lanes, there, costs, pairs);
    for (u32 half = 0; half < 2; half++) {
      u32 kept = 0; /* without branches: work-items of irregular loops end at random */
      for (u32 k = 0; k < there[half]; k++) {
        u8 lane = lanes[HALF * half + k];
        lanes[HALF * half + kept] = lane, kept += r[lane].left != 0;
      }
      there[half] = kept;
    }
    if (round % 256 == 0) cc_add_sums(s, costs, pairs);
  }
  cc_add_sums(s, costs, pairs);
}

/* Each work-item has one run; the words of a block stand one after the other. */
static int is_single(u64 last, u64 start, const u64 *ends, u32 n) {
  u64 differ = 0;
  for (u32 i = 0; i < n; i++) differ |= ends[i] - start - 3 * (i + 1);
  return !differ && (start & last) + 3 * n <= last + 1;
}

/* All runs have the same length and step. */
static int is_plain(const u64 *words, u32 n) {
  u64 differ = 0;
  for (u32 i = 0; i < n; i++) differ |= (words[3 * i + 1] ^ words[1]) | (words[3 * i + 2] ^ words[2]);
  return !differ;
}

/* Runs that a block left at a site of local memory, as kernels mostly do again and again; and how often it did. */
struct again {
  u64 words[3 * LANES], n, times;
};
enum { MOST_CHANGES = 64 };

static int is_again(struct context *c, struct sub_site *s, u32 block, const u64 *words, u32 n) {
  if (!(s->flags & SITE_LOCAL)) return 0;
  if (!s->again) s->again = cc_map(c, BLOCKS * sizeof *s->again);
  struct again *a = &s->again[block];
  if (!a->times || a->n != n || memcmp(a->words, words, 24 * n)) return 0;
  a->times++, s->same++;
  return 1;
}

static void add_plain(struct context *c, struct sub_site *s, const u64 *words, u32 n, u64 times) {
  u64 addresses[LANES];
  u32 keys[LANES], step = (int64_t)words[1] >> s->shift;
  for (u32 i = 0; i < n; i++) addresses[i] = words[3 * i];
  cc_keys_of(c, s, addresses, n, keys);
  cc_add_rows(c, s, keys, step, words[2], times);
  if (is_touched(c, s)) {
    cc_add_even_walks(s, words[1], words[2] - 1, n);
    u32 intervals[LANES][2], found = cc_intervals(keys, s->shift, s->nbytes, intervals);
    cc_touch(c, s->shift, intervals, found, 0, step, words[2], c->time, part_of_loop(words[2]), c->toucher, 0, 0);
  }
}

static void end_again(struct context *c, struct sub_site *s, struct again *a) {
  if (a->times) add_plain(c, s, a->words, a->n, a->times);
  a->times = 0;
}

void cc_end_again(struct context *c, struct sub_site *s) {
  for (u32 b = 0; s->again && b < BLOCKS; b++) end_again(c, s, &s->again[b]);
}

/* Wait whether a block leaves plain runs again, if that is likely. */
static void keep_plain(struct context *c, struct sub_site *s, u32 block, const u64 *words, u32 n) {
  if (!s->again || ++s->changes > s->same + MOST_CHANGES) {
    add_plain(c, s, words, n, 1);
    return;
  }
  struct again *a = &s->again[block];
  end_again(c, s, a);
  memcpy(a->words, words, 24 * n), a->n = n, a->times = 1;
}

/* Runs of the same step, which no work-item begins before its neighbour, as in rows of a sparse matrix: what is shared
 * with the one before follows from how far apart they are. */
struct rising {
  u32 keys[LANES], step, n;
  u64 times[LANES], shift, totals[OF_ROW], pairs[PAIRS];
  u64 moved, walks, aligned; /* of the work-items' walks */
};

/* Of the places `key + k * step` for k from `from` to before `to`, how many are `least` or more in a line of so many. */
static u64 count_beyond(u32 key, u32 step, u64 from, u64 to, u32 line, u32 least_) {
  u32 log = __builtin_ctz(step), period_log = __builtin_ctz(line) - log, period = 1u << period_log, rest = key & (step - 1);
  u32 first = least_ > rest ? (least_ - rest + step - 1) >> log : 0, at = ((key >> log) + from) & (period - 1);
  u64 n = to - from, found = (n >> period_log) * (period - first), end = at + (n & (period - 1));
  u64 high = least(end, period), low = at > first ? at : first;
  found += high > low ? high - low : 0;
  return found + (end > period + first ? end - period - first : 0);
}

/* What work-items share of lines of a size with those before them, in all and in their own half. */
struct shared {
  u64 wide, narrow;
};

static inline void add_shared(struct shared *shared, const struct rising *r, u32 i, u32 j, u64 from, u64 to, u32 line) {
  u32 apart = r->keys[i] - r->keys[j];
  u64 found = apart < line ? count_beyond(r->keys[i], r->step, from, to, line, apart) : 0;
  shared->wide += found, shared->narrow += i / HALF == j / HALF ? found : 0;
}

static void count_rising(struct rising *r) {
  struct shared sectors = {0}, lines_64 = {0}, lines_128 = {0};
  u32 widest = LINE >> r->shift;
  u64 all = 0, longest[2] = {0};
  for (u32 i = 0; i < r->n; i++) {
    u64 known = 0;
    all += r->times[i];
    longest[i / HALF] = r->times[i] > longest[i / HALF] ? r->times[i] : longest[i / HALF];
    for (u32 j = i; j-- > 0 && known < r->times[i] && r->keys[i] - r->keys[j] < widest;) {
      u64 end = least(r->times[j], r->times[i]);
      if (end <= known) continue;
      add_shared(&sectors, r, i, j, known, end, widest / 4);
      add_shared(&lines_64, r, i, j, known, end, widest / 2);
      add_shared(&lines_128, r, i, j, known, end, widest);
      known = end;
    }
  }
  u64 *narrow = r->totals, *wide = narrow + OF_WIDTH;
  narrow[ACCESSES] += longest[0] + longest[1], wide[ACCESSES] += longest[0] > longest[1] ? longest[0] : longest[1];
  narrow[SECTORS] += all - sectors.narrow, wide[SECTORS] += all - sectors.wide;
  narrow[LINES_64] += all - lines_64.narrow, wide[LINES_64] += all - lines_64.wide;
  narrow[LINES_128] += all - lines_128.narrow, wide[LINES_128] += all - lines_128.wide;
}

static void count_rising_pairs(struct rising *r) {
  for (u32 i = 1; i < r->n; i++) {
    if (i % HALF == 0) continue;
    u32 apart = r->keys[i] - r->keys[i - 1];
    u64 both = least(r->times[i], r->times[i - 1]), before = 0, even = 0;
    if (apart == 0 || apart == 1) {
      r->pairs[apart ? CONTIGUOUS : UNIFORM] += both;
      continue;
    }
    if (i % HALF > 1) {
      before = least(both, r->times[i - 2]);
      if (r->keys[i - 1] - r->keys[i - 2] == apart) even = before;
    }
    if (i + 1 < r->n && (i + 1) % HALF && r->keys[i + 1] - r->keys[i] == apart && least(both, r->times[i + 1]) > before)
      even += least(both, r->times[i + 1]) - before;
    r->pairs[STRIDED] += even, r->pairs[IRREGULAR] += both - even, r->pairs[STRIDES] += even * apart;
  }
}

/* Whether runs are those of others, moved by lines: mostly several arrays are walked through together. */
static int is_moved(const struct rising *r, const struct rising *from) {
  u32 by = r->keys[0] - from->keys[0], differ = by & ((LINE >> r->shift) - 1);
  for (u32 i = 0; i < r->n; i++) differ |= r->keys[i] - from->keys[i] - by;
  return !differ && r->n == from->n && r->step == from->step && r->shift == from->shift && !memcmp(r->times, from->times, 8 * r->n);
}

static int add_rising(struct context *c, struct sub_site *s, const struct reader *readers, u32 n, u64 most) {
  struct rising r = {.n = n, .shift = s->shift}, *last = c->rising;
  u64 addresses[LANES] = {0}, step = 0, single = 0;
  if (s->flags & (SITE_LOCAL | SITE_ATOMIC | SITE_DYNAMIC) || s->nbytes != (u64)1 << s->shift) return 0;
  for (u32 i = 0; i < n; i++) {
    const struct reader *x = &readers[i];
    if (x->end - x->at > 3) return 0;
    r.times[i] = x->left;
    addresses[i] = x->left ? word_at(x, x->at) : i ? addresses[i - 1] : 0;
    single |= x->left == 1; /* of which no step is known */
    if (x->left < 2) continue;
    if (step && word_at(x, x->at + 1) != step) return 0;
    step = word_at(x, x->at + 1);
  }
  for (u32 i = n - 1; i-- > 0;)
    if (!addresses[i]) addresses[i] = addresses[i + 1];
  r.step = step >> s->shift;
  if (!r.step || r.step & (r.step - 1) || (u64)r.step << s->shift != step || r.step > 32u >> s->shift) return 0;
  cc_keys_of(c, s, addresses, n, r.keys);
  for (u32 i = 1; i < n; i++)
    if (r.keys[i] < r.keys[i - 1]) return 0;
  if (!last) last = c->rising = cc_map(c, sizeof *last);
  if (!is_moved(&r, last)) {
    struct sub_site walked = {0};
    cc_add_walks(&walked, readers, n, 1);
    count_rising(&r), count_rising_pairs(&r);
    r.moved = walked.moved, r.walks = walked.walks, r.aligned = walked.aligned, *last = r;
  }
  s->moved += last->moved, s->walks += last->walks, s->aligned += last->aligned;
  for (u32 i = 0; i < OF_ROW; i++) s->totals[i] += last->totals[i];
  for (u32 i = 0; i < PAIRS; i++) s->pairs[i] += last->pairs[i];
  /* Of rows without single accesses each work-item is a touch: how many lines are sampled depends on that. */
  if (is_touched(c, s)) cc_touch_runs(c, s->shift, r.keys, r.step, r.times, n, c->time, part_of_loop(most), c->toucher, single);
  return 1;
}

static void add_streams(struct context *c, struct sub_site *s, struct reader *r, u32 block, u32 n, int runs, int final) {
  u64 addresses[LANES], least = ~(u64)0, most = 0;
  for (u32 i = 0; i < n; i++) {
    r[i].left = length_of(&r[i], runs);
    least = r[i].left < least ? r[i].left : least, most = r[i].left > most ? r[i].left : most;
  }
  int together = !(s->flags & SITE_DYNAMIC) && (final || (least == most && !is_waiting(s, block)));
  if (together && runs && most && add_rising(c, s, r, n, most)) return;
  if (is_touched(c, s)) cc_add_walks(s, r, n, runs);
  if (together) {
    if (most) add_eights(c, s, r, n, runs, part_of_loop(most));
    return;
  }
  for (u64 k = 0; k < most; k++, c->time += part_of_loop(most)) {
    for (u32 i = 0; i < n; i++) addresses[i] = next_of(&r[i], runs);
    cc_add_addresses(c, s, addresses, block, n, final);
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

/* In local memory, a segment leaves offsets of 32 bits instead of addresses. */
static int is_narrow(const struct sub_site *s) { return (s->flags & (SITE_LOCAL | SITE_DYNAMIC)) == SITE_LOCAL; }

/* Those work-items take part that are in the set. */
static void add_offsets(struct context *c, struct sub_site *s, const u32 *offsets, u32 block, u32 n, u64 set, int final) {
  const row8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  u32 keys[LANES];
  if (n < LANES) set &= ((u64)1 << n) - 1;
  for (u32 i = 0; i < LANES; i += AT_ONCE) {
    row8 eight, absent = (row8)((((row8){0} + (u32)(set >> i)) >> places & 1) == 0);
    memcpy(&eight, offsets + i, sizeof eight);
    eight = eight >> s->shift | (row8)(eight == NONE) | absent;
    memcpy(keys + i, &eight, sizeof eight);
  }
  cc_add_keys(c, s, keys, block, n, final);
}

/* A block's part of what a segment left of one access. Where work-items run the segment but once, the k-th execution
 * there is the k-th of all: it is final. */
static void add_recorded(struct context *c, const struct recorded *e, u64 first, u64 n, u64 set, int in_turn, int final) {
  struct sub_site *s = site_of(c, e->site);
  u32 block = first / LANES;
  cc_set_time(c, e->order, e->site);
  if (e->mode == ONCE && is_narrow(s)) {
    add_offsets(c, s, (u32 *)(c->addresses + MAX_ITEMS * e->place) + first, block, n, set, final);
    return;
  }
  if (e->mode == ONCE) {
    u64 addresses[LANES];
    const u64 *given = c->addresses + MAX_ITEMS * e->place + first;
    if (in_turn) {
      for (u32 k = 0; k < n; k++) addresses[k] = set >> k & 1 ? given[k] : ~(u64)0;
      given = addresses;
    }
    if (is_any(given, n)) cc_add_addresses(c, s, given, block, n, final);
    return;
  }
  const u64 *ends = c->ends + MAX_ITEMS * e->place + first, room = c->job->stream_words, *words = c->words + room * e->place;
  u64 start = first && !in_turn ? ends[-1] : 0;
  if (c->positions[e->place] - start > room) {
    if (c->positions[e->place] > c->inexact) c->inexact = c->positions[e->place];
    s->lost++;
    return;
  }
  s->kept++;
  int together = e->mode == RUNS && !in_turn && (final || !is_waiting(s, block)) && !(s->flags & SITE_DYNAMIC);
  if (together && is_single(room - 1, start, ends, n)) {
    const u64 *runs = words + (start & (room - 1));
    if (is_again(c, s, block, runs, n)) return;
    if (is_plain(runs, n)) {
      keep_plain(c, s, block, runs, n);
      return;
    }
  }
  struct reader readers[LANES];
  for (u32 k = 0; k < n; k++) {
    u64 end = set >> k & 1 ? ends[k] : start;
    readers[k] = (struct reader){words, room - 1, start, end, 0, 0};
    start = end;
  }
  add_streams(c, s, readers, block, n, e->mode == RUNS, final);
}

/* Put together what a group left at a site, up to some event, as that of so many groups. */
static void replay(struct context *c, struct sub_site *s, u64 end, u64 times) {
  struct repeat *r = s->repeat;
  s->weight = times;
  for (u64 at = 0, items; at < end; at += 1 + (items + 1) / 2) {
    items = r->words[at] & (2 * MAX_ITEMS - 1);
    const u32 *offsets = (u32 *)(r->words + at + 1);
    for (u64 first = 0; first < items; first += LANES)
      add_offsets(c, s, offsets + first, first / LANES, least(items - first, LANES), ~(u64)0, 0);
  }
  s->weight = 1;
}

/* The groups that left the same, and then what the group that runs has left so far. */
static void settle(struct context *c, struct sub_site *s) {
  struct repeat *r = s->repeat;
  if (r->times) {
    replay(c, s, r->used, r->times);
    s->weight = r->times;
    for (u64 b = 0; s->waiting && b < BLOCKS; b++) cc_flush_waiting(c, s, &s->waiting[b]);
    s->weight = 1;
  }
  replay(c, s, r->times ? r->at : r->used, 1);
  r->times = r->used = r->at = 0;
}

/* From here on events are put together as they come. */
void cc_stop_repeat(struct context *c, struct sub_site *s) {
  struct repeat *r = s->repeat;
  if (!r || r->differs == GIVEN_UP) return;
  if (!r->differs) settle(c, s);
  r->differs = GIVEN_UP;
}

/* Whether an event need not be put together yet. */
static int is_repeated(struct context *c, struct sub_site *s, u64 place, const void *offsets, u64 items) {
  struct repeat *r = s->repeat;
  u64 head = place * 2 * MAX_ITEMS + items, words = 1 + (items + 1) / 2;
  if (!is_narrow(s)) return 0;
  if (!r) r = s->repeat = cc_map(c, sizeof *r);
  if (r->differs) return 0;
  if (r->times) {
    u64 *known = r->words + r->at;
    if (r->at < r->used && *known == head && !memcmp(known + 1, offsets, 4 * items)) {
      r->at += words;
      return 1;
    }
    settle(c, s), r->differs = ++r->other > r->alike + TRIALS ? GIVEN_UP : DIFFERS;
    return 0;
  }
  if (r->used + words > MOST_REPEATED) {
    cc_stop_repeat(c, s);
    return 0;
  }
  if (r->used + words + LANES > r->room) { /* blocks are read as a whole */
    u64 room = r->room ? 4 * r->room : 4 * MAX_ITEMS;
    r->words = cc_remap(c, r->words, 8 * r->room, 8 * room), r->room = room;
  }
  r->words[r->used] = head;
  memcpy(r->words + r->used + 1, offsets, 4 * items);
  r->used += words;
  return 1;
}

/* The group has ended. */
void cc_end_repeat(struct context *c, struct sub_site *s) {
  struct repeat *r = s->repeat;
  if (!r || r->differs == GIVEN_UP || is_done_before(c, s)) return;
  if (!r->differs && r->times && r->at < r->used) settle(c, s), r->differs = DIFFERS, r->other++;
  if (!r->differs && r->used) r->alike += r->times > 0, r->times++;
  r->at = r->differs = 0;
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
    struct sub_site *s = site_of(c, e->site);
    if (is_done_before(c, s)) {
      if (e->mode != ONCE) c->positions[e->place] = 0;
      continue;
    }
    if (e->mode == ONCE && !final && is_repeated(c, s, e->place, c->addresses + MAX_ITEMS * e->place, items)) continue;
    if (e->mode != ONCE || final) cc_stop_repeat(c, s);
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

void cc_prepare_sub_groups(struct context *c, struct job *j) {
  if (!c->number) cc_prepare_shapes();
  const u64 *sites = (u64 *)j->sites;
  c->span = (j->data_high - j->data_low + PAGE) & -(u64)PAGE; /* variables follow the buffers, as keys have it */
  c->beyond = (j->variables_low & -(u64)PAGE) - j->data_low - c->span;
  u64 span = c->span + j->variables_high - j->variables_low + 2 * PAGE;
  c->sub_sites = cc_map(c, j->n_sites * sizeof(struct sub_site));
  for (u64 i = 0; i < j->n_sites; i++, sites += 4) {
    struct sub_site *s = site_of(c, i);
    s->flags = sites[0], s->nbytes = sites[1], s->shift = sites[2], s->origin = j->data_low + sites[3];
    while (s->shift < 5 && span >> s->shift >= NONE - (1u << 10)) s->shift++;
    s->place_mask = ((s->flags & SITE_LOCAL ? 4 : LINE) - 1) >> s->shift, s->weight = 1;
  }
  c->parts = cc_map(c, (MOST_PARTS + 1) * sizeof *c->parts);
  c->addresses = cc_map(c, 8 * MAX_ITEMS * j->n_once);
  c->ends = cc_map(c, 8 * MAX_ITEMS * j->n_streams), c->positions = cc_map(c, 8 * j->n_streams);
  c->words = cc_map(c, 8 * j->stream_words * j->n_streams);
  c->columns = cc_map(c, 8 * MAX_ITEMS * j->n_columns);
  c->runs = cc_map(c, 8 * j->segments), c->entries = cc_map(c, 16 * j->segments);
  c->form_sums = cc_map(c, 32 * j->n_forms) /* of all groups, and of the last one */, c->longest = cc_map(c, 8 * (2 + j->segments + j->n_columns));
}
