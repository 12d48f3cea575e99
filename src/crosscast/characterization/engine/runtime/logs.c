/* Counts by value, and folding the instruction counts of work-items into them. */
#include "runtime.h"
#include <sys/mman.h>

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
  if (old.capacity) munmap(old.keys, 16 * old.capacity);
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
#define FOLD_PIECE(NAME, FOLDED, T)                                           \
  void NAME(struct context *c, u64 n, T barrier) {                            \
    const T *piece = c->piece;                                                \
    u64 *restrict total = c->total; /* barriers in a loop can make it long */ \
    for (u64 i = 0; i < n; i++) total[i] += (u64)piece[i] + barrier;          \
    FOLDED(c->pieces_log, piece, n);                                          \
  }
FOLD(cc_fold32, u32)
FOLD(cc_fold64, u64)
FOLD_PIECE(cc_fold_piece32, cc_fold32, u32)
FOLD_PIECE(cc_fold_piece64, cc_fold64, u64)
