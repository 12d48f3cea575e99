/* Strided accesses: ranges of addresses at equal distances (base, stride, number) instead of one by one.
 *
 * Ranges of one access that follow each other at equal distances are nested in another one, and so on, so that a
 * kernel which streams through its data leaves a handful of patterns. A nest ends after as many ranges as the one
 * before it had, even if the next would continue it: tiles that touch each other stay alike. When the run ends,
 * or when there are too many, patterns are spread over the memory that they touch: as differences between
 * neighbouring granules. */
#include "runtime.h"
#include <string.h>

enum { MOST_PATTERNS = 64 };
_Static_assert(sizeof(struct strided) == STRIDED_BYTES, "generated code knows the size");

static int same_shape(const struct pattern *a, const struct pattern *b) {
  if (a->dims != b->dims) return 0;
  for (u64 i = 0; i < a->dims; i++)
    if (a->dim[i].step != b->dim[i].step || a->dim[i].n != b->dim[i].n) return 0;
  return 1;
}

static void keep(struct context *c, struct strided *s, const struct pattern *p) {
  if (!s->patterns) s->patterns = cc_map(c, MOST_PATTERNS * sizeof *p);
  if (s->n_patterns == MOST_PATTERNS) cc_spread(c, s);
  s->patterns[s->n_patterns++] = *p;
}

static void push(struct context *c, struct strided *s, u64 level, struct pattern p);

/* What is open at a level is complete: it goes to the next level. */
static void complete(struct context *c, struct strided *s, u64 level) {
  struct open *o = &s->open[level];
  if (!o->count) return;
  struct pattern p = o->first;
  if (o->count > 1) p.dim[p.dims++] = (struct dim){o->delta, o->usual = o->count};
  o->count = 0;
  if (level + 1 == NESTED) keep(c, s, &p);
  else push(c, s, level + 1, p);
}

static void push(struct context *c, struct strided *s, u64 level, struct pattern p) {
  struct open *o = &s->open[level];
  if (o->count && o->count != o->usual && same_shape(&o->first, &p)) {
    int64_t delta = p.base - o->last;
    if (o->count == 1) o->delta = delta;
    if (delta == o->delta) {
      o->last = p.base, o->count++;
      return;
    }
  }
  complete(c, s, level);
  *o = (struct open){.first = p, .last = p.base, .count = 1, .usual = o->usual};
}

/* Generated code does itself what most ranges need: one more, where the last one but the distance is. */
void cc_add_strided(struct context *c, u32 site, u32 flags, u64 base, u64 stride, u64 n) {
  struct strided *s = &c->strided[site];
  if (!n) return;
  if (n == 1) stride = s->stride;
  if (stride == s->stride) {
    if (s->count == 1 && base == s->last + s->n * stride) { /* goes on where the last one ended */
      s->n += n;
      return;
    }
    if (n == s->n && s->count != s->usual) {
      int64_t delta = base - s->last;
      if (s->count == 1) s->delta = delta, s->first = s->last;
      if (delta == s->delta) {
        s->last = base, s->count++;
        return;
      }
    }
  }
  cc_end_strided(c, s);
  s->flags = flags, s->first = s->last = base, s->stride = stride, s->n = n, s->count = n != 0;
}

void cc_add_plane(struct context *c, u32 site, u32 flags, u64 base, u64 stride, u64 n, u64 pitch, u64 lines) {
  struct strided *s = &c->strided[site];
  s->flags = flags;
  struct pattern p = {.base = base};
  if (n > 1) p.dim[p.dims++] = (struct dim){stride, n};
  if (lines > 1) p.dim[p.dims++] = (struct dim){pitch, lines};
  push(c, s, 0, p);
}

/* Whether ranges go on with those at the first level, as mostly: tiles come one after the other. */
static int goes_on(struct strided *s, u64 base) {
  struct open *o = &s->open[0];
  const struct dim *d = o->first.dim;
  int alike = o->first.dims == 2 && d[0].step == (int64_t)s->stride && d[0].n == s->n && d[1].step == s->delta && d[1].n == s->count;
  if (!alike || o->count < 2 || o->count == o->usual || (int64_t)(base - o->last) != o->delta) return 0;
  s->usual = s->count, s->count = 0;
  o->last = base, o->count++;
  return 1;
}

/* Pass on the ranges that are kept apart for speed. */
void cc_end_strided(struct context *c, struct strided *s) {
  if (!s->count || goes_on(s, s->first)) return;
  struct pattern p = {.base = s->count > 1 ? s->first : s->last};
  if (s->n > 1) p.dim[p.dims++] = (struct dim){s->stride, s->n};
  if (s->count > 1) p.dim[p.dims++] = (struct dim){s->delta, s->usual = s->count};
  s->count = 0;
  push(c, s, 0, p);
}

void cc_finish_strided(struct context *c) {
  for (u64 i = 0; i < c->job->strided; i++) {
    struct strided *s = &c->strided[i];
    cc_end_strided(c, s);
    for (u64 level = 0; level < NESTED; level++) complete(c, s, level);
    cc_spread(c, s);
  }
}

/* Rising steps, joined where a range begins where the one before ends; returns how often each address counts. */
static u64 normalize(struct pattern *p) {
  u64 times = 1, n = 0;
  struct dim *d = p->dim;
  for (u64 i = 0; i < p->dims; i++) {
    struct dim x = d[i];
    if (x.step < 0) p->base += x.step * (int64_t)(x.n - 1), x.step = -x.step;
    if (!x.step) {
      times *= x.n;
      continue;
    }
    u64 at = n++;
    for (; at && d[at - 1].step > x.step; at--) d[at] = d[at - 1];
    d[at] = x;
  }
  u64 m = 0;
  for (u64 i = 0; i < n; i++)
    if (m && d[i].step == d[m - 1].step * (int64_t)d[m - 1].n) d[m - 1].n *= d[i].n;
    else d[m++] = d[i];
  p->dims = m;
  return times;
}

static u64 take(struct context *c, struct pool *p, u64 bytes, u64 n) {
  if (p->used + n > p->room) {
    u64 room = p->room ? 2 * p->room : 1024;
    p->items = cc_remap(c, p->items, bytes * p->room, bytes * room), p->room = room;
  }
  p->used += n;
  return p->used - n;
}

/* Add the changes of a chunk to an array of as many numbers as it has granules. */
void cc_add_changes(struct context *c, struct changes *of, u64 *differences, u64 shift) {
  if (of->count > MOST_LISTED) {
    const u64 *numbers = (u64 *)c->numbers.items + FEWEST_NUMBERS * of->first;
    for (u64 i = 0; i < CHUNK >> shift; i++) differences[i] += numbers[i];
    return;
  }
  const struct change *all = c->listed.items;
  for (u64 i = of->first; i; i = all[i - 1].next) differences[all[i - 1].at] += all[i - 1].by;
}

struct spreading {
  struct context *c;
  struct changes *chunks; /* of the region */
  u64 start, shift, times, place;
};

static void change(struct spreading *s, u64 granule, u64 by) {
  struct context *c = s->c;
  u64 chunk = granule << s->shift, at = (chunk % CHUNK) >> s->shift;
  struct changes *of = &s->chunks[chunk / CHUNK];
  if (of->count == MOST_LISTED) {
    u64 first = take(c, &c->numbers, 8 * FEWEST_NUMBERS, (CHUNK >> s->shift) / FEWEST_NUMBERS);
    u64 *numbers = (u64 *)c->numbers.items + FEWEST_NUMBERS * first;
    cc_add_changes(c, of, numbers, s->shift);
    of->first = first, of->count++;
  }
  if (of->count > MOST_LISTED) {
    ((u64 *)c->numbers.items)[FEWEST_NUMBERS * of->first + at] += by;
    return;
  }
  u64 next = take(c, &c->listed, sizeof(struct change), 1);
  ((struct change *)c->listed.items)[next] = (struct change){of->first, at, by};
  of->first = next + 1, of->count++;
}

static void add_all(struct spreading *s, struct pattern *p, u64 dims, u64 address, u64 length) {
  if (!dims) {
    u64 first = (address - s->start) >> s->shift;
    change(s, first, s->times), change(s, first + length, -s->times);
    return;
  }
  struct dim d = p->dim[dims - 1];
  for (u64 i = 0; i < d.n; i++) add_all(s, p, dims - 1, address + i * d.step, length);
}

static void spread(struct spreading *s, struct pattern *p, u64 write) {
  struct context *c = s->c;
  u64 last = p->base;
  for (u64 i = 0; i < p->dims; i++) last += p->dim[i].step * (p->dim[i].n - 1);
  u64 low = s->place == LOCAL ? p->base - (u64)c->local : p->base, extent = last - p->base;
  struct region *r = (s->place == LOCAL) == (low < c->job->local_bytes) ? cc_region_at(c, low) : 0;
  if (!r || extent >= r->size - (low - r->start)) {
    if (!p->dims) {
      if (s->place == LOCAL) cc_fail(c, OUTSIDE, 0, p->base, 0, 0, p->base, low);
      cc_read_beside(c, p->base, write);
      return;
    }
    struct pattern q = *p; /* half of the widest steps, and the other */
    struct dim *d = &q.dim[q.dims - 1];
    u64 half = d->n / 2, rest = d->n - half;
    if (d->n == 1) q.dims--, spread(s, &q, write);
    else d->n = half, spread(s, &q, write), q.base += half * d->step, d->n = rest, spread(s, &q, write);
    return;
  }
  struct changes **chunks = &c->spreads[2 * (r - regions_of(c->job)) + write];
  if (!*chunks) *chunks = cc_map(c, (r->size / CHUNK + 1) * sizeof **chunks);
  s->chunks = *chunks, s->start = r->start;
  s->shift = __builtin_ctzll(r->granule);
  int run = p->dims && p->dim[0].step == (int64_t)r->granule;
  struct pattern outer = *p;
  if (run) memmove(outer.dim, p->dim + 1, --outer.dims * sizeof *p->dim);
  add_all(s, &outer, outer.dims, low, run ? p->dim[0].n : 1);
}

void cc_spread(struct context *c, struct strided *s) {
  for (u64 i = 0; i < s->n_patterns; i++) {
    struct pattern *p = &s->patterns[i];
    struct spreading spreading = {.c = c, .place = s->flags & 4 ? LOCAL : BUFFER};
    spreading.times = normalize(p);
    spread(&spreading, p, s->flags >> 1 & 1);
  }
  s->n_patterns = 0;
}

/* Lines and planes of accesses, from slices of the kernel that compute single places of them.
 *
 * If addresses and what decides on the way to them change evenly, the corners of a plane tell all of it. What
 * is not even is divided: first its rim is peeled off, where kernels that look at neighbours take another way. */

enum { REACHED, ATOMS, ADDRESSES };

struct corners {
  u64 origin[MOST_RESULTS], right[MOST_RESULTS], top[MOST_RESULTS], far[MOST_RESULTS];
  u64 x1[MOST_RESULTS], y1[MOST_RESULTS]; /* the next to the origin in each dimension */
};

static void take_corners(struct context *c, const struct slice *s, struct box b, u64 z, struct corners *k) {
  u64 n = 8 * (ADDRESSES + s->addresses + s->checks), x = b.x + b.nx - 1, y = b.y + b.ny - 1;
  s->at(c, b.x, b.y, z, k->origin);
  if (b.nx > 1) s->at(c, x, b.y, z, k->right);
  else memcpy(k->right, k->origin, n);
  if (b.nx > 2) s->at(c, b.x + 1, b.y, z, k->x1);
  else memcpy(k->x1, k->right, n);
  if (b.ny == 1) {
    memcpy(k->top, k->origin, n), memcpy(k->y1, k->origin, n), memcpy(k->far, k->right, n);
    return;
  }
  s->at(c, b.x, y, z, k->top);
  s->at(c, x, y, z, k->far);
  if (b.ny > 2) s->at(c, b.x, b.y + 1, z, k->y1);
  else memcpy(k->y1, k->top, n);
}

static int in_range(u64 value, int positive) {
  const u64 far = (u64)1 << 62;
  return positive ? value < far : value + far < 2 * far;
}

static int is_near(u64 step) { return step + ((u64)1 << 40) < (u64)1 << 41; }

static int is_even(const struct slice *s, struct box b, const struct corners *k) {
  for (u64 i = REACHED; i <= ATOMS; i++) {
    u64 o = k->origin[i];
    if ((o ^ k->right[i]) | (o ^ k->top[i]) | (o ^ k->far[i]) | (o ^ k->x1[i]) | (o ^ k->y1[i])) return 0;
  }
  for (u64 n = 0; n < s->checks; n++) {
    u64 i = ADDRESSES + s->addresses + n, o = k->origin[i], dx = k->x1[i] - o, dy = k->y1[i] - o;
    u64 right = o + dx * (b.nx - 1), top = o + dy * (b.ny - 1);
    int positive = s->positive >> n & 1;
    if (right != k->right[i] || top != k->top[i] || right + top - o != k->far[i]) return 0;
    if (!is_near(dx) || !is_near(dy) || !in_range(o, positive) || !in_range(right, positive)) return 0;
    if (!in_range(top, positive) || !in_range(k->far[i], positive)) return 0;
  }
  return 1;
}

static void keep_part(struct context *c, const struct slice *s, struct box b, u64 z, const struct corners *k) {
  struct part *p = &c->parts[c->n_parts < MOST_PARTS ? c->n_parts : MOST_PARTS];
  c->n_parts++;
  p->box = b, p->z = z, p->reached = k->origin[REACHED];
  for (u64 n = 0; n < s->addresses; n++) {
    u64 i = ADDRESSES + n;
    p->origin[n] = k->origin[i], p->dx[n] = k->x1[i] - k->origin[i], p->dy[n] = k->y1[i] - k->origin[i];
  }
}

static void record_plane(struct context *c, const struct slice *s, struct box b, u64 z, const struct corners *k) {
  keep_part(c, s, b, z, k);
  if (!k->origin[REACHED]) return;
  for (u64 n = 0; n < s->addresses; n++) {
    u64 i = ADDRESSES + n, o = k->origin[i], site = s->site + 2 * n, flags = s->flags >> 3 * n & 7;
    if (b.ny == 1) cc_add_strided(c, site + 1, flags, o, k->x1[i] - o, b.nx);
    else cc_add_plane(c, site, flags, o, k->x1[i] - o, b.nx, k->y1[i] - o, b.ny);
  }
}

/* A box that is not even is so mostly without its first and last column, or without those of its rows as well. */
enum { WHOLE, NO_COLUMNS, NO_ROWS };
static void record_box(struct context *c, const struct slice *s, struct box b, u64 z, int peeled) {
  struct corners k;
  take_corners(c, s, b, z, &k);
  if (is_even(s, b, &k)) {
    record_plane(c, s, b, z, &k);
  } else if (peeled == WHOLE && b.nx > 2) {
    record_box(c, s, (struct box){b.x, 1, b.y, b.ny}, z, NO_COLUMNS);
    record_box(c, s, (struct box){b.x + b.nx - 1, 1, b.y, b.ny}, z, NO_COLUMNS);
    record_box(c, s, (struct box){b.x + 1, b.nx - 2, b.y, b.ny}, z, NO_COLUMNS);
  } else if (peeled != NO_ROWS && b.ny > 2) {
    record_box(c, s, (struct box){b.x, b.nx, b.y, 1}, z, NO_ROWS);
    record_box(c, s, (struct box){b.x, b.nx, b.y + b.ny - 1, 1}, z, NO_ROWS);
    record_box(c, s, (struct box){b.x, b.nx, b.y + 1, b.ny - 2}, z, NO_ROWS);
  } else {
    struct box rest = b;
    if (b.nx >= b.ny) b.nx /= 2, rest.x += b.nx, rest.nx -= b.nx;
    else b.ny /= 2, rest.y += b.ny, rest.ny -= b.ny;
    record_box(c, s, b, z, NO_ROWS), record_box(c, s, rest, z, NO_ROWS);
  }
}

/* The work-items of a work-group. */
void cc_record(struct context *c, const struct slice *s, u64 nx, u64 ny, u64 nz) {
  c->n_parts = 0;
  for (u64 z = 0; z < nz; z++) record_box(c, s, (struct box){0, nx, 0, ny}, z, WHOLE);
  cc_sub_groups_of_group(c, s, nx, ny, nz, !c->job->several);
}

/* Work-groups from `x` to before `end` of one row of them, or of several whole rows, in one layer. */
static void record_groups(struct context *c, u64 x, u64 end, u64 y, u64 end_y, u64 z) {
  struct job *j = c->job;
  u64 low[] = {x * j->local[0], y * j->local[1], z * j->local[2]};
  u64 high[] = {end * j->local[0], end_y * j->local[1], (z + 1) * j->local[2]};
  for (int d = 0; d < 3; d++)
    if (high[d] > j->global[d]) high[d] = j->global[d];
  struct box b = {low[0], high[0] - low[0], low[1], high[1] - low[1]};
  for (const struct slice *s = cc_launch_slices; s->addresses; s++) {
    c->n_parts = 0;
    for (u64 k = low[2]; k < high[2]; k++) record_box(c, s, b, k, WHOLE);
    cc_sub_groups_of_launch(c, s, (u64[]){x, y, z}, (u64[]){end, end_y, z + 1});
  }
}

/* Work-groups from `first` to before `end`, counted through all dimensions; as if all of them were the first. */
void cc_record_launch(struct context *c, u64 first, u64 end) {
  if (!cc_launch_slices->addresses) return;
  struct job *j = c->job;
  u64 columns = j->groups[0], rows = j->groups[1];
  for (int d = 0; d < 3; d++) c->group[d] = 0, c->base[d] = j->offset[d], c->size[d] = j->local[d];
  while (first < end) {
    u64 x = first % columns, y = first / columns % rows, z = first / columns / rows;
    u64 whole = (end - first) / columns, most = rows - y;
    if (x || !whole) {
      u64 n = end - first < columns - x ? end - first : columns - x;
      record_groups(c, x, x + n, y, y + 1, z);
      first += n;
    } else {
      u64 n = whole < most ? whole : most;
      record_groups(c, 0, columns, y, y + n, z);
      first += n * columns;
    }
  }
}
