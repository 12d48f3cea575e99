/* Branch histories: how often each sequence of up to 17 outcomes of a branch occurred. */
#include "runtime.h"
#include <string.h>

enum { FULL = 1 << 16 };

static u64 shifted(u64 outcomes) { return outcomes >= 2 * FULL ? (outcomes & (FULL - 1)) | FULL : outcomes; }

static u64 saturated(u64 bit) { return bit ? 2 * FULL - 1 : FULL; }

/* Count the last `n` outcomes of a stream, behind which stand 16 others. Where one is counted does not depend on
 * what was counted before, so that the processor need not wait. */
static inline void count(u64 *table, u64 stream, u64 n, u64 times) {
  while (n--) table[2 * FULL + (stream >> n & (2 * FULL - 1))] += times;
}

/* Count `n` outcomes alike, `times` times over. */
static inline u64 run_here(u64 *table, u64 past, u64 bit, u64 n, u64 times) {
  for (; n && past < FULL; n--) past = past << 1 | bit, table[past] += times;
  if (!n) return past;
  u64 some = past == saturated(bit) ? 0 : n < 16 ? n : 16, stream = past << some | (-bit & (((u64)1 << some) - 1));
  count(table, stream, some, times);
  table[saturated(bit) << 1 | bit] += times * (n - some);
  return FULL | (stream & (FULL - 1));
}

/* Not inlined everywhere: all kernels wait for this file to be compiled. */
__attribute__((noinline)) static u64 run(u64 *table, u64 past, u64 bit, u64 n, u64 times) {
  return run_here(table, past, bit, n, times);
}

void cc_settle(struct history *h) {
  if (h->repeats) {
    u64 past = run(h->table, h->past, h->stay, h->last, h->repeats);
    h->table[past << 1 | !h->stay] += h->repeats;
    h->repeats = 0;
  }
  h->steady = 0;
}

void cc_leave_loop(struct history *h, u64 n, u64 stay) {
  cc_settle(h);
  if (n >= 16 && h->past == shifted(saturated(stay) << 1 | !stay)) { /* and so it is afterwards */
    h->longs[stay]++, h->more[stay] += n - 16, h->last = n, h->stay = stay, h->steady = 1;
    return;
  }
  u64 past = run(h->table, h->past, stay, n, 1), outcomes = past << 1 | !stay;
  h->table[outcomes]++;
  past = shifted(outcomes);
  h->steady = past == h->past;
  h->past = past, h->last = n, h->stay = stay;
}

void cc_end_run(struct history *h, u64 n, u64 stay) {
  cc_settle(h);
  h->past = run(h->table, h->past, stay, n, 1);
}

enum { AT_ONCE = 32 };

/* Outcomes, the oldest in the highest bit: `n` that are still to be counted, behind at least 16 others. */
struct stream {
  u64 bits, n;
};

static inline struct stream append(u64 *table, struct stream s, u64 bits, u64 n, u64 times) {
  s.bits = s.bits << n | bits, s.n += n;
  if (s.n < AT_ONCE) return s;
  s.n -= AT_ONCE;
  u64 oldest = s.bits >> s.n;
  for (u64 i = AT_ONCE; i--;) table[2 * FULL + (oldest >> i & (2 * FULL - 1))] += times;
  return s;
}

/* The lowest bits of those bytes of a word that `of` marks with a 1, the first byte's in the highest place. */
static inline u64 gather(u64 word, u64 of) {
#ifdef __BMI2__
  return __builtin_ia32_pext_di(__builtin_bswap64(word), __builtin_bswap64(of));
#else
  u64 bits = 0;
  for (; of; of &= of - 1) bits = bits << 1 | (word >> __builtin_ctzll(of) & 1);
  return bits;
#endif
}

/* A row has a byte a work-item; one of 2 or more stands for a branch that was not executed. Runs of eight alike and
 * more are counted at once. Returns the past that is left. */
static u64 fold(u64 *table, u64 past, const u8 *row, u64 n, u64 times) {
  const u64 each = 0x0101010101010101u;
  u64 i = 0;
  for (; i < n && past < FULL; i++)
    if (row[i] < 2) past = past << 1 | row[i], table[past] += times;
  struct stream s = {past, 0};
  while (i + 8 <= n) {
    u64 word, j = i + 8;
    memcpy(&word, row + i, 8);
    u64 skipped = ((word >> 1 & 0x7F * each) + 0x7F * each) >> 7 & each;
    if (word != each * row[i]) {
      s = append(table, s, gather(word, skipped ^ each), 8 - __builtin_popcountll(skipped), times);
      i = j;
      continue;
    }
    for (u64 next; j + 8 <= n && (memcpy(&next, row + j, 8), next == word); j += 8) {}
    if (!skipped) {
      count(table, s.bits, s.n, times);
      s = (struct stream){run_here(table, FULL | (s.bits & (FULL - 1)), row[i], j - i, times), 0};
    }
    i = j;
  }
  for (; i < n; i++)
    if (row[i] < 2) s = append(table, s, row[i], 1, times);
  count(table, s.bits, s.n, times);
  return past < FULL ? past : FULL | (s.bits & (FULL - 1));
}

static void forget_long(struct history *h, u64 stay) {
  u64 times = h->longs[stay], past = saturated(stay);
  if (!times) return;
  run(h->table, shifted(past << 1 | !stay), stay, 16, times);
  h->table[past << 1 | stay] += h->more[stay], h->table[past << 1 | !stay] += times;
  h->longs[stay] = h->more[stay] = 0;
}

static void forget_alike(struct history *h, u64 bit) {
  if (h->alike_times[bit] > 1) run(h->table, h->alike_past[bit], bit, h->alike_n[bit], h->alike_times[bit] - 1);
  h->alike_times[bit] = 0;
}

/* A row of the same outcome, as most are: so many behind the same history are counted once for all of them. */
static void fold_alike(struct history *h, u64 bit, u64 n) {
  if (bit > 1) return; /* the branch was not executed */
  if (h->alike_times[bit] && h->alike_past[bit] == h->past && h->alike_n[bit] == n) {
    h->alike_times[bit]++, h->past = h->alike_after[bit];
    return;
  }
  forget_alike(h, bit);
  h->alike_past[bit] = h->past, h->alike_n[bit] = n, h->alike_times[bit] = 1;
  h->alike_after[bit] = h->past = run(h->table, h->past, bit, n, 1);
}

void cc_fold_row(struct history *h, const u8 *row, u64 n) {
  if (h->known) return;
  cc_settle(h);
  if (!memcmp(row, row + 1, n - 1)) fold_alike(h, *row, n);
  else h->past = fold(h->table, h->past, row, n, 1);
}

void cc_end_history(struct history *h) {
  cc_settle(h);
  for (u64 bit = 0; bit < 2; bit++) forget_alike(h, bit), forget_long(h, bit);
}

void cc_fold_cell(struct history *h, const u8 *cell, u64 n) {
  cc_settle(h);
  if (*cell < 2 && !h->known) h->past = run(h->table, h->past, *cell, n, 1);
}

/* The outcomes of a branch while a segment ran once, which every work-item would have had. Each word
 * of `lead` is twice the length of a run of the same outcome, plus that outcome. */
void cc_lead_outcome(struct context *c, u32 branch, u32 bit) {
  struct history *h = &c->histories[branch];
  if (h->led && (h->lead[h->led - 1] & 1) == bit) {
    h->lead[h->led - 1] += 2;
    return;
  }
  if (h->led == h->room) {
    u64 room = h->room ? 2 * h->room : PAGE / 8;
    h->lead = cc_remap(c, h->lead, 8 * h->room, 8 * room), h->room = room;
  }
  h->lead[h->led++] = 2 + bit;
}

static void follow_lead(struct history *h, u64 times) {
  for (u64 k = 0; k < h->led; k++) h->past = run(h->table, h->past, h->lead[k] & 1, h->lead[k] >> 1, times);
}

static void repeat_lead(struct history *h, u64 n) {
  cc_settle(h);
  if (h->known) h->led = n = 0;
  if (h->led == 1) {
    fold_alike(h, h->lead[0] & 1, n * (h->lead[0] >> 1)), h->led = 0;
    return;
  }
  for (u64 i = 1; i <= n; i++) {
    u64 before = h->past;
    follow_lead(h, 1);
    if (h->past != before) continue;
    /* From here on every work-item finds and leaves the same history. */
    follow_lead(h, n - i);
    break;
  }
  h->led = 0;
}

void cc_fold_lead(struct context *c, u64 n) {
  const u64 *in_memory = (u64 *)c->job->in_memory;
  for (u64 i = 0; i < c->job->n_in_memory; i++)
    if (c->histories[in_memory[i]].led) repeat_lead(&c->histories[in_memory[i]], n);
}

/* Counts by value, and folding the instruction counts of work-items into them. */

u64 *cc_log_find(struct log *l, u64 key) {
  u64 mask = l->capacity - 1, i = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
  while (l->keys[i] && l->keys[i] != key + 1) i = (i + 1) & mask;
  return &l->keys[i];
}

static void grow(struct context *c, struct log *l) {
  struct log old = *l;
  l->capacity = old.capacity ? 4 * old.capacity : 1024;
  l->keys = cc_map(c, 16 * l->capacity);
  l->values = l->keys + l->capacity;
  for (u64 i = 0; i < old.capacity; i++)
    if (old.keys[i]) {
      u64 *k = cc_log_find(l, old.keys[i] - 1);
      *k = old.keys[i];
      l->values[k - l->keys] = old.values[i];
    }
  if (old.capacity) cc_unmap(old.keys, 16 * old.capacity);
}

static u64 (*open_few(struct context *c, struct log *l))[4] {
  if (!l->few) l->few = cc_map(c, FEW * sizeof *l->few);
  return l->few;
}

void cc_log_add(struct context *c, struct log *l, u64 key, u64 n) {
  if (key < FEW) {
    open_few(c, l)[key][0] += n;
    return;
  }
  if (2 * l->used >= l->capacity) grow(c, l);
  u64 *k = cc_log_find(l, key);
  if (!*k) *k = key + 1, l->used++;
  l->values[k - l->keys] += n;
}

void cc_log_empty(struct log *l) {
  if (l->few) memset(l->few, 0, FEW * sizeof *l->few);
  if (l->used) memset(l->keys, 0, 16 * l->capacity), l->used = 0;
}

/* FOLD logs one value a work-item. If all are among the few that some of them have, these are counted one after the
 * other. Or else runs are, and what is left one by one, in different parts of the counts in turn, so that equal ones
 * need not wait for each other. FOLD_PIECE logs a piece between barriers and adds it, with the barrier's own call, to
 * the work-item's total. */
enum { SOME = 8, MOST_KNOWN = 4 };
#define FOLD(NAME, T)                                                      \
  void NAME(struct log *l, const T *values, u64 n) {                       \
    struct context *c = cc_self;                                           \
    T known[MOST_KNOWN], times[MOST_KNOWN];                                \
    u64 seen = 0, k = 0;                                                   \
    for (u64 at = 0; at < SOME && seen < n && k < MOST_KNOWN; at++) {      \
      T value = values[at * (n - 1) / (SOME - 1)], same = 0;               \
      for (u64 i = 0; i < k; i++) same |= known[i] == value;               \
      if (same) continue;                                                  \
      for (u64 i = 0; i < n; i++) same += values[i] == value;              \
      known[k] = value, times[k++] = same, seen += same;                   \
    }                                                                      \
    if (seen == n) {                                                       \
      for (u64 i = 0; i < k; i++) cc_log_add(c, l, known[i], times[i]);    \
      return;                                                              \
    }                                                                      \
    u64(*few)[4] = open_few(c, l);                                         \
    for (u64 i = 0, j; i < n; i = j) {                                     \
      T value = values[i], bits = 0;                                       \
      for (j = i; j + 16 <= n; j += 16) {                                  \
        T differ = 0;                                                      \
        for (u64 m = 0; m < 16; m++) differ |= values[j + m] ^ value;      \
        if (differ) break;                                                 \
      }                                                                    \
      if (j > i) {                                                         \
        cc_log_add(c, l, value, j - i);                                    \
        continue;                                                          \
      }                                                                    \
      j = i + 16 < n ? i + 16 : n;                                         \
      for (u64 m = i; m < j; m++) bits |= values[m];                       \
      for (u64 m = i; m < j; m++)                                          \
        if (bits < FEW) few[values[m]][m % 4]++;                           \
        else cc_log_add(c, l, values[m], 1);                               \
    }                                                                      \
  }
FOLD(cc_fold32, u32)
FOLD(cc_fold64, u64)

/* What the work-items of a group did between barriers, piece by piece: a header, and an instruction count each. Groups
 * that do the same as the one before, as far as that is known, are one, so many times. */
struct piece {
  u64 items, barrier, wide; /* `barrier`: the barrier's own call; `wide`: counts have 64 bits */
};
enum { MOST_REPEATED = 1 << 18, MOST_OTHER = 16 };

static u64 bytes_of(const struct piece *p) { return (p->items << (p->wide ? 3 : 2)) + 7 & -8; }

/* Log a piece and add it, with the barrier, to the work-items' totals. */
static void fold_piece(struct context *c, const struct piece *p, const void *counts, struct log *log) {
  u64 *restrict total = c->total; /* barriers in a loop can make it long */
  for (u64 i = 0; !p->wide && i < p->items; i++) total[i] += ((const u32 *)counts)[i] + p->barrier;
  for (u64 i = 0; p->wide && i < p->items; i++) total[i] += ((const u64 *)counts)[i] + p->barrier;
  if (p->wide) cc_fold64(log, counts, p->items);
  else cc_fold32(log, counts, p->items);
}

static u64 fold_pieces(struct context *c, u64 end, struct log *log) {
  u64 items = 0;
  for (u64 at = 0; at < end;) {
    const struct piece *p = (struct piece *)(c->repeats.rows + at);
    fold_piece(c, p, p + 1, log);
    at += sizeof *p + bytes_of(p), items = p->items;
  }
  return items;
}

static void add_times(struct context *c, struct log *to, struct log *from, u64 times) {
  for (u64 i = 0; from->few && i < FEW; i++)
    if (few_of(from, i)) cc_log_add(c, to, i, times * few_of(from, i));
  for (u64 i = 0; i < from->capacity; i++)
    if (from->keys[i]) cc_log_add(c, to, from->keys[i] - 1, times * from->values[i]);
  cc_log_empty(from);
}

/* Log the groups that were alike, and what the group that runs has done so far. */
static void settle_pieces(struct context *c) {
  struct repeats *r = &c->repeats;
  u64 times = r->times, done = times ? r->at : r->used;
  if (times) {
    u64 items = fold_pieces(c, r->used, &r->log);
    add_times(c, c->pieces_log, &r->log, times);
    cc_fold64(&r->log, c->total, items);
    add_times(c, c->totals_log, &r->log, times);
    memset(c->total, 0, 8 * items);
  }
  fold_pieces(c, done, c->pieces_log);
  r->times = r->used = r->at = 0;
}

static int is_repeated(struct context *c, const struct piece *p) {
  struct repeats *r = &c->repeats;
  u64 bytes = bytes_of(p);
  if (r->differs) return 0;
  if (r->times && c->job->alike) {
    r->at = r->used;
    return 1;
  }
  if (r->times) {
    const struct piece *known = (struct piece *)(r->rows + r->at);
    if (r->at < r->used && !memcmp(known, p, sizeof *p) && !memcmp(known + 1, c->piece, bytes)) {
      r->at += sizeof *p + bytes;
      return 1;
    }
    r->differs = 1, r->other++;
    settle_pieces(c);
    return 0;
  }
  if (!r->rows) r->rows = cc_map(c, MOST_REPEATED);
  if (r->used + sizeof *p + bytes > MOST_REPEATED) {
    r->differs = 1, r->other = MOST_OTHER + r->alike + 1;
    settle_pieces(c);
    return 0;
  }
  memcpy(r->rows + r->used, p, sizeof *p), memcpy(r->rows + r->used + sizeof *p, c->piece, bytes);
  r->used += sizeof *p + bytes;
  return 1;
}

void cc_fold_piece32(struct context *c, u64 n, u32 barrier) {
  struct piece p = {n, barrier, 0};
  if (!is_repeated(c, &p)) fold_piece(c, &p, c->piece, c->pieces_log);
}

void cc_fold_piece64(struct context *c, u64 n, u64 barrier) {
  struct piece p = {n, barrier, 1};
  if (!is_repeated(c, &p)) fold_piece(c, &p, c->piece, c->pieces_log);
}

/* The work-items of a group have ended. */
void cc_fold_totals(struct context *c, u64 n) {
  struct repeats *r = &c->repeats;
  if (!r->differs && r->times && r->at < r->used) r->differs = 1, r->other++, settle_pieces(c);
  if (r->differs || !r->used) cc_fold64(c->totals_log, c->total, n);
  else r->alike += r->times > 0, r->times++;
  r->at = 0, r->differs = r->other > r->alike + MOST_OTHER;
}

void cc_end_pieces(struct context *c) {
  c->repeats.at = 0;
  settle_pieces(c);
}
