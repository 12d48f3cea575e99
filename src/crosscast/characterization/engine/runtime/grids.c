/* Accesses of which slices tell the addresses: `strided.c` has found in which boxes they are even. */
#include "sub_groups.h"
#include <string.h>

static u64 address_in(const struct part *p, u64 n, u64 x, u64 y) {
  return p->origin[n] + (x - p->box.x) * p->dx[n] + (y - p->box.y) * p->dy[n];
}

static int is_in(const struct part *p, u64 x, u64 y, u64 z) {
  return x - p->box.x < p->box.nx && y - p->box.y < p->box.ny && z == p->z;
}

/* A block of a group: runs of work-items in one row and one box each; none if there are more boxes than are kept. */
struct block {
  u64 items, runs;
  struct run {
    const struct part *p;
    u64 x, y, n;
  } run[LANES];
};

static void find_runs(struct context *c, const u64 *origin, const u64 *size, u64 first, struct block *b) {
  const struct part *p = c->parts;
  b->items = least(size[0] * size[1] * size[2] - first, LANES), b->runs = 0;
  for (u64 k = 0, run; k < b->items && c->n_parts <= MOST_PARTS; k += run) {
    u64 item = first + k, x = origin[0] + item % size[0], y = origin[1] + item / size[0] % size[1];
    u64 z = origin[2] + item / size[0] / size[1];
    if (!is_in(p, x, y, z))
      for (p = c->parts; !is_in(p, x, y, z); p++) {}
    run = least(least(size[0] - item % size[0], p->box.x + p->box.nx - x), b->items - k);
    b->run[b->runs++] = (struct run){p, x, y, run};
  }
}

/* The addresses of all accesses of a block. */
static void find_addresses(struct context *c, const struct slice *slice, const u64 *origin, const u64 *size, u64 first,
                           const struct block *b, u64 (*addresses)[LANES]) {
  u64 results[MOST_RESULTS], k = 0;
  for (const struct run *r = b->run; r < b->run + b->runs; k += r++->n)
    for (u64 i = 0; i < slice->addresses; i++) {
      u64 base = r->p->reached ? address_in(r->p, i, r->x, r->y) : ~(u64)0, step = r->p->reached ? r->p->dx[i] : 0;
      for (u64 n = 0; n < r->n; n++) addresses[i][k + n] = base + n * step;
    }
  for (; k < b->items; k++) {
    u64 item = first + k;
    slice->at(c, origin[0] + item % size[0], origin[1] + item / size[0] % size[1], origin[2] + item / size[0] / size[1], results);
    for (u64 i = 0; i < slice->addresses; i++) addresses[i][k] = results[0] ? results[2 + i] : ~(u64)0;
  }
}

/* A block of a group of which no box has all. */
static void add_block(struct context *c, const struct slice *slice, const u64 *origin, const u64 *size, u32 block, int final) {
  u64 addresses[MOST_PARTS_OF_SLICE][LANES];
  struct block b;
  find_runs(c, origin, size, LANES * block, &b);
  find_addresses(c, slice, origin, size, LANES * block, &b, addresses);
  for (u64 i = 0; i < slice->addresses; i++) {
    c->time = time_of(c->sequence, slice->order, slice->sites[i]);
    cc_add_addresses(c, site_of(c, slice->sites[i]), addresses[i], block, b.items, final);
  }
}

/* What a grid of rows touches, of groups that stand in columns and rows too. */
static void touch_grid(struct context *c, struct sub_site *s, struct shape *f, const u32 *keys, u32 across, u64 columns, u32 up, u64 rows,
                       u32 once) {
  int is_close = columns >= AT_ONCE && across <= (u32)LINE >> s->shift, by_rows = rows > columns && !is_close;
  u64 line = c->job->groups[0];
  u32 own[LANES][2], start = f ? *keys : 0;
  if (!is_touched(c, s)) return;
  u32 n = f ? s->plane.n : cc_intervals(keys, s->shift, s->nbytes, own);
  for (u64 i = 0; i < (by_rows ? columns : rows); i++, start += by_rows ? across : up)
    cc_touch(c, s->shift, f ? s->plane.intervals : own, n, start, by_rows ? up : across, by_rows ? rows : columns, c->time, 0,
             c->toucher + (by_rows ? i : i * line), by_rows ? line : 1, once);
}

/* Work-items of a group that are all in one layer and in an even box. */
static void add_group(struct context *c, const struct slice *slice, const struct part *p, const u64 *size) {
  u64 addresses[LANES], items = size[0] * size[1];
  u32 keys[LANES];
  for (u64 n = 0; n < slice->addresses && p->reached; n++) {
    struct sub_site *s = site_of(c, slice->sites[n]);
    c->time = time_of(c->sequence, slice->order, slice->sites[n]);
    for (u64 first = 0; first < items; first += LANES) {
      u64 there = least(items - first, LANES);
      struct shape *f = there == LANES ? cc_shape_of_plane(c, s, p->dx[n], p->dy[n], size[0]) : 0;
      for (u64 k = 0; k < (f ? 1 : there); k++) addresses[k] = address_in(p, n, (first + k) % size[0], (first + k) / size[0]);
      if (f) *keys = cc_key_of(c, &s, *addresses);
      else cc_keys_of(c, s, addresses, there, keys);
      cc_add_grid(c, s, f, keys, 0, 1, 0, 1);
      touch_grid(c, s, f, keys, 0, 1, 0, 1, 0);
    }
  }
}

/* By how many groups a block may move along x and y, back and on, so that its runs stay in their boxes, and all
 * addresses move evenly. */
static void find_moves(const struct slice *slice, const u64 *local, const struct block *b, u64 *back, u64 *on) {
  const struct part *first = 0;
  for (int d = 0; d < 2; d++) back[d] = on[d] = b->runs ? ~(u64)0 : 0;
  for (const struct run *r = b->run; r < b->run + b->runs; r++) {
    const struct box *x = &r->p->box;
    back[0] = least(back[0], (r->x - x->x) / local[0]), on[0] = least(on[0], (x->x + x->nx - r->x - r->n) / local[0]);
    back[1] = least(back[1], (r->y - x->y) / local[1]), on[1] = least(on[1], (x->y + x->ny - r->y - 1) / local[1]);
    if (!r->p->reached) continue;
    if (!first) first = r->p;
    for (u64 i = 0; i < slice->addresses; i++) {
      if (r->p->dx[i] != first->dx[i]) back[0] = on[0] = 0;
      if (r->p->dy[i] != first->dy[i]) back[1] = on[1] = 0;
    }
  }
}

/* A block, and the same of groups that stand in columns and rows. */
static void add_blocks(struct context *c, const struct slice *slice, const u64 *origin, const u64 *size, u64 first,
                       const struct block *b, u64 columns, u64 rows) {
  u64 addresses[MOST_PARTS_OF_SLICE][LANES];
  const struct part *p = 0;
  u32 is_parted = !b->runs;
  for (u64 k = 0; k < b->runs; k++) {
    if (!p || !p->reached) p = b->run[k].p;
    is_parted |= b->run[k].p != b->run->p;
  }
  find_addresses(c, slice, origin, size, first, b, addresses);
  for (u64 i = 0; i < slice->addresses; i++) {
    struct sub_site *s = site_of(c, slice->sites[i]);
    u32 keys[LANES], across = p ? (int64_t)(size[0] * p->dx[i]) >> s->shift : 0, up = p ? (int64_t)(size[1] * p->dy[i]) >> s->shift : 0;
    c->time = time_of(c->sequence, slice->order, slice->sites[i]);
    cc_keys_of(c, s, addresses[i], b->items, keys);
    cc_add_grid(c, s, 0, keys, across, columns, up, rows);
    touch_grid(c, s, 0, keys, across, columns, up, rows, is_parted);
  }
}

/* One block of all groups from `from` to before `to`, in a layer of work-items. Groups in which it lies in the same
 * boxes are a rectangle of them, of which the first one has all. */
static void add_everywhere(struct context *c, const struct slice *slice, const u64 *from, const u64 *to, u64 first, u64 z, u64 layers) {
  struct job *j = c->job;
  struct block b;
  for (u64 y = from[1], down; y < to[1]; y += down) {
    down = to[1] - y;
    for (u64 x = from[0], right; x < to[0]; x += right) {
      u64 at[] = {x, y}, origin[] = {x * j->local[0], y * j->local[1], z}, size[3] = {0, 0, layers}, back[2], on[2];
      for (int d = 0; d < 2; d++) size[d] = least(j->local[d], j->global[d] - origin[d]);
      right = 1;
      if (first >= size[0] * size[1] * layers) {
        down = 1;
        continue;
      }
      find_runs(c, origin, size, first, &b);
      find_moves(slice, j->local, &b, back, on);
      for (int d = 0; d < 2; d++) { /* the last group of a row may be smaller */
        u64 full = least(to[d], j->global[d] / j->local[d]);
        back[d] = at[d] < full ? least(back[d], at[d] - from[d]) : 0, on[d] = at[d] < full ? least(on[d], full - at[d] - 1) : 0;
      }
      right = on[0] + 1, down = least(down, on[1] + 1);
      c->toucher = number_of(j, x, y, from[2]);
      if (!back[0] && !back[1]) add_blocks(c, slice, origin, size, first, &b, on[0] + 1, on[1] + 1);
    }
  }
}

/* Groups from `from` to before `to` of a launch, in one layer of groups. */
void cc_sub_groups_of_launch(struct context *c, const struct slice *slice, const u64 *from, const u64 *to) {
  struct job *j = c->job;
  u64 plane = j->local[0] * j->local[1], layers = least(j->local[2], j->global[2] - from[2] * j->local[2]);
  u64 together = plane % LANES ? layers : 1; /* blocks reach across layers */
  c->sequence = 0;
  for (u64 k = 0; k < layers; k += together)
    for (u64 first = 0; first < plane * together; first += LANES)
      add_everywhere(c, slice, from, to, first, from[2] * j->local[2] + k, together);
}

/* The work-group that runs. */
void cc_sub_groups_of_group(struct context *c, const struct slice *slice, u64 nx, u64 ny, u64 nz, u32 final) {
  const u64 origin[3] = {0}, size[] = {nx, ny, nz}, items = nx * ny * nz;
  cc_set_time(c, slice->order, 0);
  for (u64 n = 0; n < slice->addresses; n++) cc_stop_repeat(c, site_of(c, slice->sites[n]));
  int whole = c->n_parts == nz && (nz == 1 || nx * ny % LANES == 0);
  for (u64 z = 0; z < nz && whole && !final; z++) whole = c->parts[z].reached == c->parts[0].reached;
  for (u64 n = 0; n < slice->addresses && whole && !final; n++)
    for (u32 b = 0; LANES * b < items; b++) whole &= !is_waiting(site_of(c, slice->sites[n]), b);
  for (u64 z = 0; z < nz && whole; z++) add_group(c, slice, &c->parts[z], size);
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
  cc_keys_of(c, s, addresses, LANES, keys);
  cc_stop_repeat(c, s);
  cc_set_time(c, 0, site);
  if (n >= LANES) cc_add_rows(c, s, keys, (int64_t)(LANES * step) >> s->shift, n / LANES, 1);
  if (n >= LANES && is_touched(c, s)) {
    u32 intervals[LANES][2], found = cc_intervals(keys, s->shift, s->nbytes, intervals);
    cc_touch(c, s->shift, intervals, found, 0, (int64_t)(LANES * step) >> s->shift, n / LANES, c->time, 0, c->toucher, 0, 0);
  }
  if (n % LANES) {
    for (u64 k = 0; k < LANES; k++) addresses[k] = k < n % LANES ? address + (n - n % LANES + k) * step : ~(u64)0;
    cc_keys_of(c, s, addresses, LANES, keys);
    cc_add_keys(c, s, keys, 0, LANES, 1);
  }
}
