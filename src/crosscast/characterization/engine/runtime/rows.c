/* Accesses at equal distances: recorded as rows (base, stride, number) instead of one by one.
 *
 * Rows of one access that follow each other at equal distances are a row of rows, and so on, so that a
 * kernel which streams through its data leaves a handful of patterns. When the run ends, or when there are too
 * many, patterns are spread over the memory that they touch: as differences between neighbouring granules. */
#include "runtime.h"
#include <string.h>

enum { MOST_PATTERNS = 256 };

static int same_shape(const struct pattern *a, const struct pattern *b) {
  if (a->dims != b->dims) return 0;
  for (u64 i = 0; i < a->dims; i++)
    if (a->dim[i].step != b->dim[i].step || a->dim[i].n != b->dim[i].n) return 0;
  return 1;
}

static void keep(struct context *c, struct rows *s, const struct pattern *p) {
  if (!s->patterns) s->patterns = cc_map(c, MOST_PATTERNS * sizeof *p);
  if (s->n_patterns == MOST_PATTERNS) cc_spread(c, s);
  s->patterns[s->n_patterns++] = *p;
}

static void push(struct context *c, struct rows *s, u64 level, struct pattern p);

/* What is open at a level is complete: it goes to the next level. */
static void complete(struct context *c, struct rows *s, u64 level) {
  struct open *o = &s->open[level];
  if (!o->count) return;
  struct pattern p = o->first;
  if (o->count > 1) p.dim[p.dims++] = (struct dim){o->delta, o->count};
  o->count = 0;
  if (level + 1 == NESTED) keep(c, s, &p);
  else push(c, s, level + 1, p);
}

static void push(struct context *c, struct rows *s, u64 level, struct pattern p) {
  struct open *o = &s->open[level];
  if (o->count && same_shape(&o->first, &p)) {
    int64_t delta = p.base - o->last;
    if (o->count == 1) o->delta = delta;
    if (delta == o->delta) {
      o->last = p.base, o->count++;
      return;
    }
  }
  complete(c, s, level);
  *o = (struct open){.first = p, .last = p.base, .count = 1};
}

void cc_row(struct context *c, u32 site, u32 flags, u64 base, u64 stride, u64 n) {
  struct rows *s = &c->rows[site];
  if (!n) return;
  if (n == 1) stride = s->stride;
  if (stride == s->stride) {
    if (s->count == 1 && base == s->last + s->n * stride) { /* goes on where the last one ended */
      s->n += n;
      return;
    }
    if (n == s->n) {
      int64_t delta = base - s->last;
      if (s->count == 1) s->delta = delta, s->first = s->last;
      if (delta == s->delta) {
        s->last = base, s->count++;
        return;
      }
    }
  }
  cc_end_rows(c, s);
  s->flags = flags, s->first = s->last = base, s->stride = stride, s->n = n, s->count = n != 0;
}

void cc_plane(struct context *c, u32 site, u32 flags, u64 base, u64 stride, u64 n, u64 pitch, u64 rows) {
  struct rows *s = &c->rows[site];
  s->flags = flags;
  struct pattern p = {.base = base};
  if (n > 1) p.dim[p.dims++] = (struct dim){stride, n};
  if (rows > 1) p.dim[p.dims++] = (struct dim){pitch, rows};
  push(c, s, 0, p);
}

/* Pass on the rows that are kept apart for speed. */
void cc_end_rows(struct context *c, struct rows *s) {
  if (!s->count) return;
  struct pattern p = {.base = s->count > 1 ? s->first : s->last};
  if (s->n > 1) p.dim[p.dims++] = (struct dim){s->stride, s->n};
  if (s->count > 1) p.dim[p.dims++] = (struct dim){s->delta, s->count};
  s->count = 0;
  push(c, s, 0, p);
}

void cc_finish_rows(struct context *c) {
  for (u64 i = 0; i < c->job->rows; i++) {
    struct rows *s = &c->rows[i];
    cc_end_rows(c, s);
    for (u64 level = 0; level < NESTED; level++) complete(c, s, level);
    cc_spread(c, s);
  }
}

/* Rising steps, joined where a row begins where the one before ends; returns how often each address counts. */
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

static u64 take(struct context *c, struct pool *p, u64 bytes) {
  if (p->used == p->room) {
    u64 room = p->room ? 2 * p->room : 1024;
    p->items = cc_remap(c, p->items, bytes * p->room, bytes * room), p->room = room;
  }
  return p->used++;
}

/* Add the changes of a chunk to an array of as many numbers as it has granules. */
void cc_add_changes(struct context *c, struct changes *of, u64 *differences) {
  if (of->count > MOST_LISTED) {
    const u64 *numbers = (u64 *)c->numbers.items + CHUNK * of->first;
    for (u64 i = 0; i < CHUNK; i++) differences[i] += numbers[i];
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
    u64 first = take(c, &c->numbers, 8 * CHUNK), *numbers = (u64 *)c->numbers.items + CHUNK * first;
    cc_add_changes(c, of, numbers);
    of->first = first, of->count++;
  }
  if (of->count > MOST_LISTED) {
    ((u64 *)c->numbers.items)[CHUNK * of->first + at] += by;
    return;
  }
  u64 next = take(c, &c->listed, sizeof(struct change));
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
    if (!p->dims) cc_fail(c, OUTSIDE, 0, p->base, 0, 0, p->base, low);
    struct pattern q = *p; /* one at a time, of the widest steps */
    struct dim d = q.dim[--q.dims];
    for (u64 i = 0; i < d.n; i++, q.base += d.step) spread(s, &q, write);
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

void cc_spread(struct context *c, struct rows *s) {
  for (u64 i = 0; i < s->n_patterns; i++) {
    struct pattern *p = &s->patterns[i];
    struct spreading spreading = {.c = c, .place = s->flags & 4 ? LOCAL : BUFFER};
    spreading.times = normalize(p);
    spread(&spreading, p, s->flags >> 1 & 1);
  }
  s->n_patterns = 0;
}
