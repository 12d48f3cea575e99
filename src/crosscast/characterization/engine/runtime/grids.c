/* Accesses of which slices tell the addresses: `strided.c` has found in which boxes they are even. */
#include "sub_groups.h"
#include <string.h>

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
  for (u64 k = 0, run; k < n; k += run) {
    u64 item = LANES * block + k, x = origin[0] + item % size[0], y = origin[1] + item / size[0] % size[1];
    u64 z = origin[2] + item / size[0] / size[1];
    if (c->n_parts > MOST_PARTS) {
      slice->at(c, x, y, z, results);
      for (u64 i = 0; i < slice->addresses; i++) addresses[i][k] = results[0] ? results[2 + i] : ~(u64)0;
      run = 1;
      continue;
    }
    if (!is_in(p, x, y, z))
      for (p = c->parts; p < c->parts + c->n_parts && !is_in(p, x, y, z);) p++;
    run = least(least(size[0] - item % size[0], p->box.x + p->box.nx - x), n - k);
    for (u64 i = 0; i < slice->addresses; i++) {
      u64 first = address_in(p, i, x, y), step = p->reached ? p->dx[i] : 0;
      if (!p->reached) first = ~(u64)0;
      for (u64 r = 0; r < run; r++) addresses[i][k + r] = first + r * step;
    }
  }
  for (u64 i = 0; i < slice->addresses; i++) {
    c->time = time_of(c->sequence, slice->order, slice->sites[i]);
    cc_add_addresses(c, site_of(c, slice->sites[i]), addresses[i], block, n, final);
  }
}

/* What a grid of rows touches, of groups that stand in columns and rows too. */
static void touch_grid(struct context *c, struct sub_site *s, struct shape *f, const u32 *keys, u32 across, u64 columns, u32 up, u64 rows) {
  int is_close = columns >= AT_ONCE && across <= (u32)LINE >> s->shift, by_rows = rows > columns && !is_close;
  u64 line = c->job->groups[0];
  u32 own[LANES][2], start = f ? *keys : 0;
  if (!is_touched(c, s)) return;
  u32 n = f ? s->plane.n : cc_intervals(keys, s->shift, s->nbytes, own);
  for (u64 i = 0; i < (by_rows ? columns : rows); i++, start += by_rows ? across : up)
    cc_touch(c, s->shift, f ? s->plane.intervals : own, n, start, by_rows ? up : across, by_rows ? rows : columns, c->time, 0,
             c->toucher + (by_rows ? i : i * line), by_rows ? line : 1);
}

/* Work-items from `from` to before `to` of a group, all in one layer and in an even box; and the same of other groups, in
 * columns and rows of them. */
static void add_groups(struct context *c, const struct slice *slice, const struct part *p, const u64 *origin, const u64 *size, u64 from,
                       u64 to, u64 columns, u64 rows) {
  u64 addresses[LANES];
  u32 keys[LANES];
  for (u64 n = 0; n < slice->addresses && p->reached; n++) {
    struct sub_site *s = site_of(c, slice->sites[n]);
    c->time = time_of(c->sequence, slice->order, slice->sites[n]);
    u32 across = (int64_t)(size[0] * p->dx[n]) >> s->shift, up = (int64_t)(size[1] * p->dy[n]) >> s->shift;
    for (u64 first = from; first < to; first += LANES) {
      u64 there = least(to - first, LANES);
      struct shape *f = there == LANES ? cc_shape_of_plane(c, s, p->dx[n], p->dy[n], size[0]) : 0;
      for (u64 k = 0; k < (f ? 1 : there); k++)
        addresses[k] = address_in(p, n, origin[0] + (first + k) % size[0], origin[1] + (first + k) / size[0]);
      if (f) *keys = cc_key_of(c, &s, *addresses);
      else cc_keys_of(c, s, addresses, there, keys);
      cc_add_grid(c, s, f, keys, across, columns, up, rows);
      touch_grid(c, s, f, keys, across, columns, up, rows);
    }
  }
}

/* The box that has all of a rectangle of work-items; or a null pointer. */
static const struct part *part_of(const struct context *c, u64 x, u64 y, u64 to_x, u64 to_y, u64 z) {
  for (const struct part *p = c->parts; p < c->parts + c->n_parts; p++)
    if (is_in(p, x, y, z) && is_in(p, to_x, to_y, z)) return p;
  return 0;
}

/* A group that is in no box, a block at a time, some of which may be. */
static void add_blocks(struct context *c, const struct slice *slice, const u64 *origin, const u64 *size, int even) {
  u64 items = size[0] * size[1] * size[2];
  for (u64 from = 0; from < items; from += LANES) {
    u64 to = least(items, from + LANES), y = from / size[0], to_y = (to - 1) / size[0];
    u64 x = y == to_y ? from % size[0] : 0, to_x = y == to_y ? (to - 1) % size[0] : size[0] - 1;
    const struct part *p = even ? part_of(c, origin[0] + x, origin[1] + y, origin[0] + to_x, origin[1] + to_y, origin[2]) : 0;
    if (p) add_groups(c, slice, p, origin, size, from, to, 1, 1);
    else add_block(c, slice, origin, size, from / LANES, 1);
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
        const struct part *p = !whole ? 0 : part_of(c, origin[0], origin[1], origin[0] + j->local[0] - 1, origin[1] + j->local[1] - 1, z);
        if (p) {
          u64 columns = least(to[0], (p->box.x + p->box.nx) / j->local[0]) - x;
          u64 rows = least(to[1], (p->box.y + p->box.ny) / j->local[1]) - y;
          /* Rows of groups that begin the box in y take those above them along. */
          int begins = y == from[1] || origin[1] - j->local[1] < p->box.y || origin[1] < j->local[1];
          if (begins) add_groups(c, slice, p, origin, size, 0, size[0] * size[1], columns, rows);
          x += columns;
          continue;
        }
        if (layered || !k) add_blocks(c, slice, origin, size, whole);
        x++;
      }
    }
  }
}

/* The work-group that runs. */
void cc_sub_groups_of_group(struct context *c, const struct slice *slice, u64 nx, u64 ny, u64 nz, u32 final) {
  const u64 origin[3] = {0}, size[] = {nx, ny, nz}, layer[] = {nx, ny, 1}, items = nx * ny * nz;
  cc_set_time(c, slice->order, 0);
  for (u64 n = 0; n < slice->addresses; n++) cc_stop_repeat(c, site_of(c, slice->sites[n]));
  int whole = c->n_parts == nz && (nz == 1 || nx * ny % LANES == 0);
  for (u64 z = 0; z < nz && whole && !final; z++) whole = c->parts[z].reached == c->parts[0].reached;
  for (u64 n = 0; n < slice->addresses && whole && !final; n++)
    for (u32 b = 0; LANES * b < items; b++) whole &= !is_waiting(site_of(c, slice->sites[n]), b);
  for (u64 z = 0; z < nz && whole; z++) add_groups(c, slice, &c->parts[z], origin, layer, 0, nx * ny, 1, 1);
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
    cc_touch(c, s->shift, intervals, found, 0, (int64_t)(LANES * step) >> s->shift, n / LANES, c->time, 0, c->toucher, 0);
  }
  if (n % LANES) {
    for (u64 k = 0; k < LANES; k++) addresses[k] = k < n % LANES ? address + (n - n % LANES + k) * step : ~(u64)0;
    cc_keys_of(c, s, addresses, LANES, keys);
    cc_add_keys(c, s, keys, 0, LANES, 1);
  }
}
