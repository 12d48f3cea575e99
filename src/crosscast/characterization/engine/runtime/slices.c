/* Rows and planes of accesses, from slices of the kernel that compute single places of them.
 *
 * If addresses and what decides on the way to them change evenly, the corners of a plane tell all of it. What
 * is not even is divided: first its rim is peeled off, where kernels that look at neighbours take another way. */
#include "runtime.h"
#include <string.h>

enum { REACHED, ATOMS, ADDRESSES };

struct box {
  u64 x, nx, y, ny;
};

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

static void record_plane(struct context *c, const struct slice *s, struct box b, const struct corners *k) {
  if (!k->origin[REACHED]) return;
  for (u64 n = 0; n < s->addresses; n++) {
    u64 i = ADDRESSES + n, o = k->origin[i], site = s->site + 2 * n, flags = s->flags >> 3 * n & 7;
    if (b.ny == 1) cc_row(c, site + 1, flags, o, k->x1[i] - o, b.nx);
    else cc_plane(c, site, flags, o, k->x1[i] - o, b.nx, k->y1[i] - o, b.ny);
  }
}

static void record_box(struct context *c, const struct slice *s, struct box b, u64 z, int peeled);

static void record_halves(struct context *c, const struct slice *s, struct box b, u64 z) {
  struct box rest = b;
  if (b.nx >= b.ny) b.nx /= 2, rest.x += b.nx, rest.nx -= b.nx;
  else b.ny /= 2, rest.y += b.ny, rest.ny -= b.ny;
  record_box(c, s, b, z, 1), record_box(c, s, rest, z, 1);
}

static void peel(struct context *c, const struct slice *s, struct box b, u64 z) {
  if (b.nx > 2) {
    record_box(c, s, (struct box){b.x, 1, b.y, b.ny}, z, b.ny < 3);
    record_box(c, s, (struct box){b.x + b.nx - 1, 1, b.y, b.ny}, z, b.ny < 3);
    b.x++, b.nx -= 2;
  }
  if (b.ny > 2) {
    record_box(c, s, (struct box){b.x, b.nx, b.y, 1}, z, 1);
    record_box(c, s, (struct box){b.x, b.nx, b.y + b.ny - 1, 1}, z, 1);
    b.y++, b.ny -= 2;
  }
  record_box(c, s, b, z, 1);
}

static void record_box(struct context *c, const struct slice *s, struct box b, u64 z, int peeled) {
  if (!b.nx || !b.ny) return;
  struct corners k;
  take_corners(c, s, b, z, &k);
  if (is_even(s, b, &k)) record_plane(c, s, b, &k);
  else if (!peeled && (b.nx > 2 || b.ny > 2)) peel(c, s, b, z);
  else record_halves(c, s, b, z);
}

/* The work-items of a work-group. */
void cc_record(struct context *c, const struct slice *s, u64 nx, u64 ny, u64 nz) {
  for (u64 z = 0; z < nz; z++) record_box(c, s, (struct box){0, nx, 0, ny}, z, 0);
}

/* Work-groups from `x` to before `end` of one row of them, or of several whole rows, in one layer. */
static void record_groups(struct context *c, u64 x, u64 end, u64 y, u64 end_y, u64 z) {
  struct job *j = c->job;
  u64 low[] = {x * j->local[0], y * j->local[1], z * j->local[2]};
  u64 high[] = {end * j->local[0], end_y * j->local[1], (z + 1) * j->local[2]};
  for (int d = 0; d < 3; d++)
    if (high[d] > j->global[d]) high[d] = j->global[d];
  struct box b = {low[0], high[0] - low[0], low[1], high[1] - low[1]};
  for (const struct slice *s = cc_launch_slices; s->addresses; s++)
    for (u64 k = low[2]; k < high[2]; k++) record_box(c, s, b, k, 0);
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
