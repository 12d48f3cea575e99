/* How far apart accesses to the same line are: bytes that reach memory behind caches of several sizes, which are fully
 * associative and replace the line that was not used for longest (Mattson et al. 1970). A line is fetched when it is
 * read, and written back once for each stay in which it was written.
 *
 * Lines are sampled by a hash of their number (SHARDS: Waldspurger et al. 2015), all in a small launch. Of a sampled
 * line each access by a block of 64 work-items is kept, with the place that it has in the life of its group: when
 * groups run together, what stands at the same place happens at the same time. Compilers issue the accesses of straight
 * code together: a group makes these, of one line after another, before it is another's turn. */
#include "sub_groups.h"
#include <string.h>

enum { MOST_TOUCHES = 1 << 15, WORTH = 1 << 14, LEAST_TOUCHES = 1 << 10, EXACT_TOUCHES = 1 << 11, USED = 32 };
enum { FIRST_SIZE = 14, SIZES = 13, CACHES = 1 + SIZES };
struct touch {
  u64 time;
  u32 group, line; /* `line`: behind its number, whether it is read and written, and which halves of it */
};
enum { FIRST_HALF = 1, SECOND_HALF = 2, WRITES = 4, READS = 8, NUMBER = 4 };

static const u32 TOGETHER[] = {0, 4, 8}; /* logarithm of how many groups run together */

/* Multiples of the golden ratio: of any lines that follow each other, as many are sampled as of others. None is zero,
 * so that no line is sampled however few are. */
static const u32 HASH = 0x9E3779B1u;
static inline row8 hash8(row8 line) { return (line + 1) * HASH; }
static u32 hash_of(u32 line) { return (line + 1) * HASH; }
static u64 halved(u64 unsampled) { return unsampled >> 1 | 1u << 31; }
static int is_sampled(const struct touch *t, u64 unsampled) { return !(hash_of(t->line >> NUMBER) & unsampled); }

/* Keep the touches of sampled lines; returns how many they are. */
static u64 keep_sampled(struct touch *to, const struct touch *from, u64 n, u64 unsampled) {
  u64 kept = 0;
  for (u64 i = 0; i < n; i++) to[kept] = from[i], kept += is_sampled(&from[i], unsampled); /* no branch, as half are */
  return kept;
}

/* As many touches as a kernel is worth: more where it runs long. */
static u64 worth(u64 instructions) {
  u64 most = instructions / WORTH;
  return most < LEAST_TOUCHES ? LEAST_TOUCHES : most > MOST_TOUCHES ? MOST_TOUCHES : most;
}

/* Not all lines of large buffers are worth a look, of which one in `USED` may be used. */
void cc_prepare_reuse(struct context *c, struct job *j) {
  u64 lines = 0;
  for (u64 i = 0; i < j->n_regions; i++)
    if (regions_of(j)[i].kind != LOCAL) lines += regions_of(j)[i].size >> LINE_LOG;
  for (; lines > USED * EXACT_TOUCHES; lines /= 2) c->unsampled = halved(c->unsampled);
  c->most_touches = worth(j->most_instructions ? j->most_instructions : ~(u64)0);
  if (c->most_touches < EXACT_TOUCHES) c->most_touches = EXACT_TOUCHES;
}

/* Sample half as many lines; or keep more touches than they are worth, rather than none. */
static void make_room(struct context *c) {
  u64 unsampled = halved(c->unsampled), some = 0;
  for (u64 i = 0; i < c->n_touches && !some; i++) some = is_sampled(&c->touches[i], unsampled);
  if (!some && c->most_touches < MOST_TOUCHES) {
    c->touches = cc_remap(c, c->touches, (c->most_touches + 1) * sizeof *c->touches, (MOST_TOUCHES + 1) * sizeof *c->touches);
    c->most_touches = MOST_TOUCHES;
    return;
  }
  u64 before = keep_sampled(c->touches, c->touches, c->touched_before, c->unsampled = unsampled);
  c->n_touches = before + keep_sampled(c->touches + before, c->touches + c->touched_before, c->n_touches - c->touched_before, unsampled);
  c->touched_before = before;
}

/* Keep a touch; not inlined, as what looks for them would lack registers. */
__attribute__((noinline)) static void emit(struct context *c, u32 line, u32 halves, u64 time, u64 group) {
  if (!c->touches) c->touches = cc_map_filled(c, (c->most_touches + 1) * sizeof *c->touches);
  while (c->n_touches == c->most_touches && !(hash_of(line) & c->unsampled)) make_room(c);
  if (hash_of(line) & c->unsampled) return; /* since it was found, perhaps */
  c->touches[c->n_touches++] = (struct touch){time, group, line << NUMBER | c->how | halves};
}

/* Rising intervals that cover some keys without a gap of half a line; in units of keys. */
u32 cc_intervals(const u32 *keys, u32 shift, u64 nbytes, u32 (*found)[2]) {
  u32 n = 0, extent = (nbytes - 1) >> shift;
  for (u32 i = 0; i < LANES; i++) {
    if (keys[i] == ~0u) continue;
    u32 from = keys[i], to = keys[i] + extent, at = n;
    if (n && from >= found[n - 1][0] && from <= found[n - 1][1] + (64u >> shift)) { /* mostly they rise */
      if (to > found[n - 1][1]) found[n - 1][1] = to;
      continue;
    }
    while (at && found[at - 1][0] > from) at--;
    if (at && from <= found[at - 1][1]) {
      if (to > found[at - 1][1]) found[at - 1][1] = to;
      continue;
    }
    memmove(found[at + 1], found[at], (n - at) * sizeof *found);
    found[at][0] = from, found[at][1] = to, n++;
  }
  return n;
}

/* Of eight lines from one on, those that are sampled, up to the last one. */
static inline u32 sampled_from(struct context *c, u32 line, u32 last) {
  row8 lines = (row8){0, 1, 2, 3, 4, 5, 6, 7} + line;
  return bits_of((row8)((hash8(lines) & (u32)c->unsampled) == 0) & (row8)(lines <= last));
}

static void add_halves(struct context *c, u32 line, u32 halves, u64 time, u64 group) {
  for (u64 i = c->n_touches; i-- > 0;)
    if (c->touches[i].line >> NUMBER == line && c->touches[i].time == time && c->touches[i].group == group) {
      c->touches[i].line |= halves;
      return;
    }
}

/* Whether an interval that ends at `before`, if there is one, comes to a line as well when it is moved. */
static inline int is_known(u64 before, u32 moved, u32 bits, u32 line) { return before <= NONE && ((u32)before + moved) >> bits == line; }

/* Rows that lie so far apart that none comes to a line of the one before. `before`: see `cc_touch`. */
static void touch_apart(struct context *c, u32 bits, u64 before, u32 from, u32 to, u32 step, u64 times, u64 time, u64 later, u64 group, u64 apart) {
  const row8 places = {0, 1, 2, 3, 4, 5, 6, 7};
  u32 extent = (to - from) >> bits;
  for (u64 k = 0; k < times; k += AT_ONCE) {
    row8 moved = (places + (u32)k) * step, first = (moved + from) >> bits, last = (moved + to) >> bits, hash = hash8(first);
    u32 there = times - k < AT_ONCE ? (1u << (times - k)) - 1 : 255, further = bits_of((row8)(first < last - extent)) & there;
    for (u32 l = 0; l <= extent + (further != 0); l++) {
      u32 hit = bits_of((row8)(((hash + l * HASH) & (u32)c->unsampled) == 0)) & (l > extent ? further : there);
      for (; hit; hit &= hit - 1) {
        u64 row = k + __builtin_ctz(hit);
        u32 moved = row * step, line = ((from + moved) >> bits) + l, middle = (2 * line + 1) << (bits - 1);
        u32 halves = (from + moved < middle) | (to + moved >= middle) << 1;
        if (is_known(before, moved, bits, line)) add_halves(c, line, halves, time + row * later, group + row * apart);
        else emit(c, line, halves, time + row * later, group + row * apart);
      }
    }
  }
}

/* Rows of keys, given by intervals from `start` on, each `step` behind the one before, and so much later, or of another
 * group. `once`: of each row and line there is one touch, as `cc_touch_row` has it. */
void cc_touch(struct context *c, u32 shift, const u32 (*intervals)[2], u32 n, u32 start, u32 step, u64 times, u64 time, u64 later, u64 group,
              u64 apart, u32 once) {
  u32 bits = LINE_LOG - shift;
  for (u32 i = 0; i < n; i++) {
    u32 from = intervals[i][0] + start, to = intervals[i][1] + start;
    u64 before = once && i ? intervals[i - 1][1] + start : ~(u64)0;
    if (times > 1 && step > 1u << bits) {
      touch_apart(c, bits, before, from, to, step, times, time, later, group, apart);
      continue;
    }
    for (u32 line = from >> bits, last = (to + (u32)(times - 1) * step) >> bits; line <= last; line += AT_ONCE)
      for (u32 hit = sampled_from(c, line, last); hit; hit &= hit - 1) {
        u32 found = line + __builtin_ctz(hit), low = found << bits, middle = low + (1u << (bits - 1)), high = middle + (middle - low);
        for (u64 k = low > to ? (low - to + step - 1) / step : 0; k < times && from + (u32)k * step < high; k++) {
          u32 moved = k * step, halves = (from + moved < middle) | (to + moved >= middle) << 1;
          if (is_known(before, moved, bits, found)) add_halves(c, found, halves, time + k * later, group + k * apart);
          else emit(c, found, halves, time + k * later, group + k * apart);
        }
      }
  }
}

/* Keep a touch, unless one of the same line has been kept of the rows that are looked at. */
static void emit_once(struct context *c, u32 line, u32 halves, u64 time, u64 group) {
  for (u64 i = c->touched_before; i < c->n_touches; i++)
    if (c->touches[i].line >> NUMBER == line && c->touches[i].time == time) {
      c->touches[i].line |= halves;
      return;
    }
  emit(c, line, halves, time, group);
}

/* Whether a work-item before one comes to the same line at the same time, of keys that rise from one to the next. */
static int is_repeated(const u32 *keys, const u64 *times, u32 i, u64 k, u32 moved, u32 bits) {
  u32 line = (keys[i] + moved) >> bits;
  for (u32 j = i; j-- > 0 && keys[i] - keys[j] < 1u << bits;)
    if (k < times[j] && (keys[j] + moved) >> bits == line) return 1;
  return 0;
}

struct runs {
  const u32 *keys;
  const u64 *times;
  u32 step, n, bits, once; /* `once`: of each line and time, one */
  u64 time, later, group;
};

/* The accesses of work-items from one on to a sampled line. */
static void touch_line(struct context *c, const struct runs *r, u32 i, u32 line) {
  u32 step_log = __builtin_ctz(r->step), low = line << r->bits, middle = low + (1u << (r->bits - 1)), high = middle + (middle - low);
  for (; i < r->n && r->keys[i] < high; i++) {
    u64 k = r->keys[i] < low ? (low - r->keys[i] + r->step - 1) >> step_log : 0;
    for (u32 key = r->keys[i] + k * r->step; k < r->times[i] && key < high; k++, key += r->step) {
      u64 time = r->time + k * r->later;
      if (r->once && is_repeated(r->keys, r->times, i, k, k * r->step, r->bits)) add_halves(c, line, 1 + (key >= middle), time, r->group);
      else emit(c, line, 1 + (key >= middle), time, r->group);
    }
  }
}

static void touch_lines(struct context *c, const struct runs *r, u32 i, u32 line, u32 last) {
  for (; line <= last; line += AT_ONCE)
    for (u32 hit = sampled_from(c, line, last); hit; hit &= hit - 1) touch_line(c, r, i, line + __builtin_ctz(hit));
}

/* Runs of work-items, of keys a power of two apart that lie close to each other and rise from one to the next. */
void cc_touch_runs(struct context *c, u32 shift, const u32 *keys, u32 step, const u64 *times, u32 n, u64 time, u64 later, u64 group, u32 once) {
  struct runs r = {keys, times, step, n, LINE_LOG - shift, once, time, later, group};
  u32 first = 0, line = 0, last = 0, any = 0; /* lines that are still to be looked at, and who comes there first */
  for (u32 i = 0; i < n; i++) {
    if (!times[i]) continue;
    u32 from = keys[i] >> r.bits, to = (keys[i] + (times[i] - 1) * step) >> r.bits;
    if (any && from <= last + AT_ONCE) {
      last = to > last ? to : last;
      continue;
    }
    if (any) touch_lines(c, &r, first, line, last);
    any = 1, first = i, line = from, last = to;
  }
  if (any) touch_lines(c, &r, first, line, last);
}

/* One row, as it comes. */
void cc_touch_row(struct context *c, u32 shift, u64 nbytes, const u32 *keys, u64 time, u64 group) {
  u32 bits = LINE_LOG - shift, extent = (nbytes - 1) >> shift;
  c->touched_before = c->n_touches;
  for (u32 i = 0; i < LANES; i += AT_ONCE)
    for (u32 l = 0; l <= (extent >> bits) + (extent > 0); l++) {
      row8 key, line;
      memcpy(&key, keys + i, sizeof key);
      line = (key >> bits) + l;
      row8 hit = (row8)((hash8(line) & (u32)c->unsampled) == 0) & (row8)(line <= (key + extent) >> bits) & (row8)(key != ~0u);
      for (u32 left = bits_of(hit); left; left &= left - 1) {
        u32 at = keys[i + __builtin_ctz(left)], sampled = (at >> bits) + l, middle = (2 * sampled + 1) << (bits - 1);
        emit_once(c, sampled, (at < middle) | (at + extent >= middle) << 1, time, group);
      }
    }
}

/* Eight rows at once, each in a column; of both halves, which have room for so many keys, the first `n`. */
void cc_touch_columns(struct context *c, u32 shift, u64 nbytes, const void *columns, u32 room, const u32 *n, u64 time, u64 later, u64 group) {
  const row8 *v = columns;
  u32 bits = LINE_LOG - shift, extent = (nbytes - 1) >> shift, further = (extent >> bits) + (extent > 0);
  c->touched_before = c->n_touches;
  for (u32 half = 0; half < 2; half++, v += room)
    for (u32 i = 0; i < n[half]; i++)
      for (u32 l = 0; l <= further; l++) {
        row8 line = (v[i] >> bits) + l, unsampled = hash8(line) & (u32)c->unsampled;
        if (!bits_of((row8)(unsampled == 0))) continue; /* as mostly */
        row8 hit = (row8)(unsampled == 0) & (row8)(line <= (v[i] + extent) >> bits) & (row8)(v[i] != ~0u);
        for (u32 left = bits_of(hit); left; left &= left - 1) {
          u32 r = __builtin_ctz(left), at = v[i][r], sampled = (at >> bits) + l, middle = (2 * sampled + 1) << (bits - 1);
          emit_once(c, sampled, (at < middle) | (at + extent >= middle) << 1, time + r * later, group);
        }
      }
}

/* Words of touches, and bits of them: what is done, site, line, group and turn, by which they are sorted, the last first. */
static const u8 KEYS[][3] = {{1, 32, 32 + NUMBER}, {0, 0, SITE_LOG}, {1, 32 + NUMBER, 64}, {1, 0, 32}, {0, SITE_LOG, 64}};
static u64 word_of(const struct touch *t, u32 word) { return word ? t->group | (u64)t->line << 32 : t->time; }

/* Sort by the bits of a word from `low` to before `end`, and leave what is alike in its order; returns where it stands. */
static struct touch *sort_by(struct touch *all, struct touch **rooms, u64 n, u32 word, u32 low, u32 end) {
  u64 differ = 0;
  for (u64 i = 0; i < n; i++) differ |= word_of(&all[i], word) ^ word_of(all, word);
  for (differ = end < 64 ? differ & (((u64)1 << end) - 1) : differ; low < end && differ >> low; low += 11) {
    u32 starts[1 << 11] = {0}, sum = 0;
    u64 mask = (1u << (end - low < 11 ? end - low : 11)) - 1;
    if (!(differ >> low & mask)) continue;
    for (u64 i = 0; i < n; i++) starts[word_of(&all[i], word) >> low & mask]++;
    for (u64 i = 0; i <= mask; i++) sum += starts[i], starts[i] = sum - starts[i];
    struct touch *to = rooms[all == rooms[0]];
    for (u64 i = 0; i < n; i++) to[starts[word_of(&all[i], word) >> low & mask]++] = all[i];
    all = to;
  }
  return all;
}

/* Drop accesses to what the one before has touched in its turn: all caches have it. Returns how many are left. */
static u64 drop_repeated(struct touch *all, u64 n) {
  u64 kept = 0;
  for (u64 i = 0; i < n; i++) {
    struct touch t = all[i], *last = &all[kept ? kept - 1 : 0];
    u64 differ = (t.time ^ last->time) >> SITE_LOG | (t.group ^ last->group) | ((t.line ^ last->line) & ~(READS | WRITES));
    if (differ || !kept) all[kept++] = t;
    else last->line |= t.line & WRITES;
  }
  return kept;
}

/* What is known of each line, by its number: when it was last used, and in which caches it has been written since it
 * came, a bit each. Times at which a line was last used are marks, a bit each; of complete words of them there are sums
 * over ranges (Fenwick 1994). */
struct stack {
  u64 lines, times, *marks;
  u32 *last, *sums;
  u16 *dirty;
};

static u32 count_to(const struct stack *s, u32 time) {
  u32 word = time / 64, sum = __builtin_popcountll(s->marks[word] & (((u64)2 << time % 64) - 1));
  for (; word; word &= word - 1) sum += s->sums[word];
  return sum;
}

static void add_to_sums(struct stack *s, u32 word, u32 by) {
  for (word++; word <= s->times / 64; word += word & -word) s->sums[word] += by;
}

static void move_mark(struct stack *s, u32 from, u32 to) {
  if (from) s->marks[from / 64] &= ~((u64)1 << from % 64);
  if (from && from / 64 != to / 64) add_to_sums(s, from / 64, -1);
  s->marks[to / 64] |= (u64)1 << to % 64;
}

/* Lines that there are, and for each cache, the first one without end, how many reach memory. */
static void count_traffic(struct stack *s, const struct touch *all, u64 n, u32 half, u64 rate, u64 *found) {
  u64 fetched[CACHES + 1] = {0}, *traffic = found + 1, live = 0; /* `fetched`: reads that the first so many caches miss */
  u32 now = 0, smallest = FIRST_SIZE - (half ? 6 : 7);
  memset(s->last, 0, 4 * s->lines), memset(s->dirty, 0, 2 * s->lines);
  memset(s->marks, 0, s->times / 8 + 8), memset(s->sums, 0, s->times / 16 + 8);
  for (u64 i = 0; i < n; i++)
    for (u32 part = 0; part < (half ? 2 : 1); part++) {
      if (half && !(all[i].line >> part & 1)) continue;
      u32 line = all[i].line >> NUMBER << 1 | part, last = s->last[line], missed = CACHES;
      if (++now % 64 == 0) add_to_sums(s, now / 64 - 1, __builtin_popcountll(s->marks[now / 64 - 1]));
      if (!last) live++;
      else {
        u64 others = live - count_to(s, last), sibling = half && s->last[line ^ 1] > last;
        u64 between = (rate * (others - sibling) + sibling) >> smallest; /* it is sampled too, and stands for itself */
        missed = between ? 64 - __builtin_clzll(between) : 0;
        if (missed > SIZES) missed = SIZES;
        u32 gone = ((1u << missed) - 1) << 1, written = s->dirty[line] & gone;
        for (; written; written &= written - 1) traffic[__builtin_ctz(written)]++;
        s->dirty[line] &= ~gone;
      }
      if (all[i].line & READS) fetched[missed]++;
      if (all[i].line & WRITES) s->dirty[line] = (1u << CACHES) - 1;
      s->last[line] = now;
      move_mark(s, last, now);
    }
  found[0] += live;
  for (u64 line = 0; line < s->lines; line++)
    for (u32 written = s->dirty[line]; written; written &= written - 1) traffic[__builtin_ctz(written)]++;
  traffic[0] += fetched[CACHES];
  u64 sum = fetched[CACHES];
  for (u32 size = SIZES; size > 0; size--) sum += fetched[size], traffic[size] += sum;
}

/* Number the lines as they come; returns how many there are. */
static u64 number_lines(struct context *c, struct touch *all, u64 n) {
  u64 capacity = 64, found = 0;
  while (capacity < 2 * n) capacity *= 2;
  u32 shift = 64 - __builtin_ctzll(capacity), (*known)[2] = cc_map_filled(c, capacity * sizeof *known);
  for (u64 i = 0; i < n; i++) {
    u32 line = all[i].line >> NUMBER;
    u64 at = (line ^ line >> 7) * 0x9E3779B97F4A7C15u >> shift; /* no hash that sampled lines share */
    while (known[at][0] && known[at][0] != line + 1) at = (at + 1) % capacity;
    if (!known[at][0]) known[at][0] = line + 1, known[at][1] = found++;
    all[i].line = known[at][1] << NUMBER | (all[i].line & ((1 << NUMBER) - 1));
  }
  return found;
}

/* Touches of all threads, of as many lines as they are worth. */
static u64 gather(struct context *c, u64 threads, u64 instructions, struct touch **all, u64 *rate) {
  u64 unsampled = 0, n = 0, most = worth(instructions), by_mask[34] = {0};
  for (u64 t = 0; t < threads; t++) unsampled |= c[t].unsampled, n += c[t].n_touches;
  struct touch *kept = *all = threads == 1 && n ? c->touches : cc_map(c, (n + 1) * sizeof *kept);
  n = 0;
  for (u64 t = 0; t < threads; t++) n += keep_sampled(kept + n, c[t].touches, c[t].n_touches, unsampled);
  if (n <= EXACT_TOUCHES && !unsampled) most = n;
  for (u64 i = 0; i < n; i++) by_mask[__builtin_clz(hash_of(kept[i].line >> NUMBER))]++;
  for (u32 bits = 32; bits-- > 0;) by_mask[bits] += by_mask[bits + 1]; /* with at least so many bits that are zero */
  u64 left = n;
  while (left > most) {
    u64 next = by_mask[__builtin_popcountll(halved(unsampled))];
    if (!next && left <= MOST_TOUCHES) break; /* rather too many touches of a line than none */
    unsampled = halved(unsampled), left = next;
  }
  *rate = (u64)1 << __builtin_popcountll(unsampled);
  return keep_sampled(kept, kept, n, unsampled);
}

/* One in how many lines was sampled; then by size of line and groups together: lines, and how many reach memory. */
void cc_reuse(struct context *c, u64 threads, u64 instructions, u64 *words) {
  struct touch *all;
  u64 n = gather(c, threads, instructions, &all, words++);
  struct touch *rooms[] = {cc_map_filled(c, (n + 1) * sizeof *all), cc_map_filled(c, (n + 1) * sizeof *all)}, *given = all;
  for (u32 k = 0; k < sizeof KEYS / sizeof *KEYS; k++) all = sort_by(all, rooms, n, KEYS[k][0], KEYS[k][1], KEYS[k][2]);
  if (all != given) rooms[all == rooms[1]] = given;
  n = drop_repeated(all, n);
  struct stack s = {.lines = 2 * number_lines(c, all, n), .times = 2 * n + 1};
  s.last = cc_map(c, 4 * s.lines), s.dirty = cc_map(c, 2 * s.lines);
  s.marks = cc_map(c, s.times / 8 + 8), s.sums = cc_map(c, s.times / 16 + 8);
  for (u32 k = 0; k < 3; k++) {
    const struct touch *sorted = sort_by(all, rooms, n, 1, TOGETHER[k], 32);
    for (u32 half = 0; half < 2; half++) count_traffic(&s, sorted, n, half, words[-1], words + (2 * k + half) * (1 + CACHES));
  }
}
