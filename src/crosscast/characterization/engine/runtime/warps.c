/* Kernels that run warp by warp: warps, whose lanes do things together, and work-items that end early.
 *
 * A work-item's state is twice the number of a segment: as it is, the segment is to run next; plus 1, the
 * work-item waits at the cut before it. Waiting before segment 0 is having ended. */
#include "runtime.h"
#include <string.h>

enum { BARRIER = 1, COLLECTIVE, WARP };
enum { SYNC, ACTIVE, ALL, ANY, BALLOT, SHUFFLE, UP, DOWN, XOR, MATCH_ANY, MATCH_ALL, ADD, MIN, MAX, AND, OR, BITXOR };
enum { SCAN_ADD = BITXOR + 1, SCAN_EXCLUSIVE_ADD = SCAN_ADD + 3, BY_LANES = 32, ENDED = 1, LANES = 64 };

typedef void turn(struct context *, u32 segment, u64 from, u64 to);
struct cut {
  u32 kind, operation, type, turn; /* beside the k-th: the segment that is the k-th as the program runs */
};
struct words {
  u64 value, mask, lane, width;
};
struct memory {
  struct words words[MAX_ITEMS];
  u64 states[MAX_ITEMS], past[];
};
struct warp {
  u64 first, lanes; /* its first work-item, and how many it has */
  u64 *states;
  struct words *words;
};

/* For each lane of a set, from the lowest on. */
#define FOR_LANES(i, set) for (u64 left_##i = (set), i; left_##i && (i = __builtin_ctzll(left_##i), 1); left_##i &= left_##i - 1)

/* Lanes that have not ended. */
static u64 alive(struct warp *w) {
  u64 mask = 0;
  for (u64 i = 0; i < w->lanes; i++) mask |= (u64)(w->states[i] != ENDED) << i;
  return mask;
}

/* Lanes that wait before a segment. */
static u64 at(struct warp *w, u64 segment) {
  u64 mask = 0;
  for (u64 i = 0; i < w->lanes; i++) mask |= (u64)(w->states[i] == 2 * segment + 1) << i;
  return mask;
}

static u64 tile_of(u64 lane, u64 width) {
  return width >= LANES ? ~(u64)0 : (((u64)1 << width) - 1) << (lane - lane % width);
}

/* Lanes that an operation waits for, those that have ended aside. */
static u64 partners(struct words *x, u64 lane) {
  return x->mask ? x->mask : x->width ? tile_of(lane, x->width) : ~(u64)0;
}

/* Lane that one takes its value from: its own where the other is in another part of the warp. */
static u64 source_of(struct words *x, u64 lane, u32 o, u64 warp) {
  u64 width = x->width && x->width < warp ? x->width : warp, first = lane - lane % width, n = (u32)x->lane;
  if (o == SHUFFLE) return first + n % width;
  if (o == UP) return lane - first < n ? lane : lane - n;
  if (o == DOWN) return n >= width || lane + n >= first + width ? lane : lane + n;
  return (lane ^ n) >= first + width ? lane : lane ^ n;
}

static void together(struct words *x, u64 members, u32 o, u32 type, u64 warp) {
  u64 old[LANES], yes = 0, same = 0, lowest = __builtin_ctzll(members), result = 0;
  FOR_LANES(i, members) {
    old[i] = x[i].value;
    yes |= (u64)(type < 2 ? (u32)old[i] != 0 : old[i] != 0) << i;
    same |= (u64)(old[i] == old[lowest]) << i;
  }
  if (o == SYNC) return;
  if (o == AND || o == OR || o == BITXOR) {
    result = o == AND ? ~(u64)0 : 0;
    FOR_LANES(i, members) result = o == AND ? result & old[i] : o == OR ? result | old[i] : result ^ old[i];
  } else if (o >= ADD) {
    u32 how = o >= SCAN_EXCLUSIVE_ADD ? SCANNED_BEFORE : o >= SCAN_ADD ? SCANNED : FOR_ALL;
    u32 what = how == SCANNED_BEFORE ? o - SCAN_EXCLUSIVE_ADD : how == SCANNED ? o - SCAN_ADD : o - ADD;
    cc_combine(&x->value, sizeof *x / sizeof(u64), LANES, members, type, how, what);
    return;
  }
  FOR_LANES(i, members) {
    u64 width = x[i].mask ? 0 : x[i].width, first = width ? i - i % width : 0;
    if (o == ACTIVE) x[i].value = members;
    else if (o == ALL) x[i].value = yes == members;
    else if (o == ANY) x[i].value = yes != 0;
    else if (o == BALLOT) x[i].value = yes >> first;
    else if (o == MATCH_ALL) x[i].value = same == members ? members : 0;
    else if (o == MATCH_ANY) {
      u64 alike = 0;
      FOR_LANES(j, members) alike |= (u64)(old[j] == old[i]) << j;
      x[i].value = alike >> first;
    } else if (o >= AND) x[i].value = result;
    else {
      u64 from = source_of(&x[i], i, o, warp);
      x[i].value = old[members >> from & 1 ? from : i];
    }
  }
}

static void go_on(struct warp *w, u64 members, u64 segment) {
  FOR_LANES(i, members) w->states[i] = 2 * segment;
}

/* Do the operations that lanes of a warp wait for and that all who take part have come to. Those that all lanes
 * do which happen to be there come last, the first one in the program first. */
static int meet(struct warp *w, const struct cut *cuts, u64 segments, u64 warp) {
  u64 living = alive(w);
  int met = 0;
  for (u64 s = 1; s < segments; s++) {
    u64 here = cuts[s].kind == WARP && !(cuts[s].operation & BY_LANES) ? at(w, s) : 0;
    for (u64 i = 0; i < w->lanes; i++) {
      if (!(here >> i & 1)) continue;
      u64 wanted = partners(&w->words[i], i) & living, members = 0;
      FOR_LANES(j, here & wanted) members |= (u64)((partners(&w->words[j], j) & living) == wanted) << j;
      if (!members || members != wanted) continue;
      together(w->words, members, cuts[s].operation, cuts[s].type, warp);
      go_on(w, members, s);
      here &= ~members;
      met = 1;
    }
  }
  for (u64 k = 0; k < segments && !met; k++) {
    u64 s = cuts[k].turn;
    u64 here = cuts[s].kind == WARP && cuts[s].operation & BY_LANES ? at(w, s) : 0;
    if (!here) continue;
    together(w->words, here, cuts[s].operation & ~BY_LANES, cuts[s].type, warp);
    go_on(w, here, s);
    met = 1;
  }
  return met;
}

/* What a work-item did since the last barrier is a piece; operations of warps and collectives do not end one. */
static void end_piece(struct context *c, u64 item, u64 barrier) {
  u64 piece = ((u64 *)c->piece)[item], *total = (u64 *)c->total + item;
  *total += piece + barrier;
  cc_log_add(c, c->pieces_log, piece, 1);
  if (!barrier) cc_log_add(c, c->totals_log, *total, 1);
}

/* Run a warp until all of its lanes have ended or wait for other warps. */
static void run_warp(struct context *c, struct warp *w, turn *run, const struct cut *cuts, u64 segments, u64 warp) {
  do {
    for (;;) {
      u64 next = ~(u64)0, ran = 0;
      for (u64 i = 0; i < w->lanes; i++)
        if (!(w->states[i] & 1) && w->states[i] < next) next = w->states[i];
      if (next == ~(u64)0) break;
      for (u64 i = 0; i < w->lanes; i++)
        ran |= (u64)(w->states[i] == next) << i;
      run(c, next / 2, w->first, w->first + w->lanes);
      cc_sub_groups_of(c, next / 2, w->first, ran);
      c->counts[next / 2] += __builtin_popcountll(ran);
      FOR_LANES(i, ran) {
        u64 s = w->states[i] / 2;
        if (!s || cuts[s].kind == BARRIER) end_piece(c, w->first + i, s > 0);
      }
    }
  } while (meet(w, cuts, segments, warp));
}

/* A collective of the work-items that have not ended, whose words stand together for it. */
static void collect(struct context *c, u64 *states, struct cut cut) {
  u64 *x = c->exchange, who[MAX_ITEMS], n = 0;
  for (u64 i = 0; i < c->items; i++)
    if (states[i] != ENDED) who[n] = i, x[2 * n] = x[2 * i], x[2 * n + 1] = x[2 * i + 1], n++;
  cc_collective(c, cut.operation, cut.type, n);
  for (u64 k = n; k-- > 0;) x[2 * who[k]] = x[2 * k];
}

void cc_run_warps(struct context *c, turn *run, const struct cut *cuts, u64 warp, u64 histories) {
  if (!c->warps) c->warps = cc_map(c, sizeof(struct memory) + 8 * histories);
  struct memory *m = (struct memory *)c->warps;
  u64 segments;
  for (u64 i = 0; i < histories; i++) m->past[i] = 1;
  memset(m->states, 0, 8 * c->items);
  for (segments = 1; cuts[segments].kind; segments++) {}
  for (;;) {
    u64 before = 0, living = 0;
    for (u64 first = 0; first < c->items; first += warp) {
      u64 lanes = c->items - first < warp ? c->items - first : warp;
      struct warp w = {first, lanes, m->states + first, m->words + first};
      run_warp(c, &w, run, cuts, segments, warp);
    }
    for (u64 i = 0; i < c->items; i++) {
      u64 state = m->states[i];
      if (state == ENDED) continue;
      if (cuts[state / 2].kind == WARP) cc_fail(c, LANES_MISSING, 0, 0, 0, i, state / 2, 0);
      if (living++ && state != before) cc_fail(c, DIVERGED, 0, 0, 0, i, state / 2, before / 2);
      before = state;
    }
    if (!living) return;
    if (cuts[before / 2].kind == COLLECTIVE) collect(c, m->states, cuts[before / 2]);
    for (u64 i = 0; i < c->items; i++)
      if (m->states[i] != ENDED) m->states[i] = before - 1;
  }
}

/* Work-group collectives: 16 bytes a work-item, the value and for a broadcast whose it is. */

enum { OF_ALL, OF_ANY, BROADCAST, REDUCE };

/* Sums are formed in U, in which integers wrap around. */
#define COMBINE(NAME, T, U, LOWEST, HIGHEST)                                                       \
  static void NAME(u64 *x, u64 stride, u64 n, u64 members, u32 how, u32 what) {                    \
    T sum = what == 0 ? (T)0 : what == 1 ? (T)(HIGHEST) : (T)(LOWEST), v;                          \
    for (u64 i = 0; i < n; i++) {                                                                  \
      if (!(members >> i % 64 & 1)) continue;                                                      \
      memcpy(&v, &x[stride * i], sizeof v);                                                        \
      if (how == SCANNED_BEFORE) memcpy(&x[stride * i], &sum, sizeof v);                           \
      if (what == 0) sum = (T)((U)sum + (U)v);                                                     \
      else if (what == 1 ? v < sum : v > sum) sum = v;                                             \
      if (how == SCANNED) memcpy(&x[stride * i], &sum, sizeof v);                                  \
    }                                                                                              \
    for (u64 i = 0; how == FOR_ALL && i < n; i++)                                                  \
      if (members >> i % 64 & 1) memcpy(&x[stride * i], &sum, sizeof v);                           \
  }
COMBINE(combine_i32, int32_t, u32, INT32_MIN, INT32_MAX)
COMBINE(combine_u32, u32, u32, 0, UINT32_MAX)
COMBINE(combine_i64, int64_t, u64, INT64_MIN, INT64_MAX)
COMBINE(combine_u64, u64, u64, 0, UINT64_MAX)
COMBINE(combine_f32, float, float, -__builtin_inff(), __builtin_inff())
COMBINE(combine_f64, double, double, -__builtin_inf(), __builtin_inf())

void cc_combine(u64 *x, u64 stride, u64 n, u64 members, u32 type, u32 how, u32 what) {
  static void (*const combine[])(u64 *, u64, u64, u64, u32, u32) = {
      combine_i32, combine_u32, combine_i64, combine_u64, combine_f32, combine_f64,
  };
  combine[type](x, stride, n, members, how, what);
}

void cc_collective(struct context *c, u32 operation, u32 type, u64 n) {
  u64 *x = c->exchange;
  u32 what = operation & 15, o = operation >> 4;
  if (what == BROADCAST) {
    u64 who = x[1] < n ? x[1] : 0, value = x[2 * who];
    for (u64 i = 0; i < n; i++) x[2 * i] = value;
  } else if (what <= OF_ANY) {
    u64 count = 0;
    for (u64 i = 0; i < n; i++) count += (int32_t)x[2 * i] != 0;
    for (u64 i = 0; i < n; i++) x[2 * i] = what == OF_ALL ? count == n : count > 0;
  } else {
    cc_combine(x, 2, n, ~(u64)0, type, what - REDUCE, o);
  }
}
