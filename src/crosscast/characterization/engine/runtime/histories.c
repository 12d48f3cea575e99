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

enum { MEMOS = 64, SHORTEST_MEMO = 32, TRIALS = 256 };

/* A row that came `times` times; all but the first are not yet in the table. */
struct memo {
  u64 hash, past, after, n, times;
  u8 *row;
};

struct memos {
  u64 tried, found; /* whether it is worth while to look for a row */
  u64 longest;
  struct memo at[MEMOS];
};

static struct memos *open_memos(struct history *h, u64 longest) {
  struct memos *made = h->memos = cc_map(cc_self, sizeof *made + MEMOS * longest);
  made->longest = longest;
  for (u64 i = 0; i < MEMOS; i++) made->at[i].row = (u8 *)(made + 1) + i * longest;
  return made;
}

static void forget(struct history *h, struct memo *m) {
  if (m->times > 1) fold(h->table, m->past, m->row, m->n, m->times - 1);
  m->times = 0;
}

static u64 hash_of(u64 past, const u8 *row, u64 n) {
  u64 hash[4] = {past, n}, words[4];
  for (u64 i = 0; i + 32 <= n; i += 32) {
    memcpy(words, row + i, 32);
    for (u64 k = 0; k < 4; k++) hash[k] = (hash[k] ^ words[k]) * 0x9E3779B97F4A7C15u, hash[k] ^= hash[k] >> 29;
  }
  return hash[0] ^ hash[1] * 3 ^ hash[2] * 5 ^ hash[3] * 7;
}

void cc_fold_row(struct history *h, const u8 *row, u64 n) {
  cc_settle(h);
  struct memos *known = h->memos;
  int seldom = known && known->tried > TRIALS && known->found < known->tried / 4;
  if (n < SHORTEST_MEMO || seldom || (known && n > known->longest) || !memcmp(row, row + 1, n - 1)) {
    h->past = fold(h->table, h->past, row, n, 1);
    return;
  }
  if (!known) known = open_memos(h, n);
  u64 hash = hash_of(h->past, row, n);
  struct memo *m = &known->at[hash % MEMOS];
  known->tried++;
  if (m->times && m->hash == hash && m->past == h->past && m->n == n && !memcmp(m->row, row, n)) {
    m->times++, h->past = m->after, known->found++;
    return;
  }
  forget(h, m);
  m->hash = hash, m->past = h->past, m->n = n, m->times = 1;
  memcpy(m->row, row, n);
  m->after = h->past = fold(h->table, h->past, row, n, 1);
}

void cc_end_history(struct history *h) {
  cc_settle(h);
  for (u64 i = 0; h->memos && i < MEMOS; i++) forget(h, &h->memos->at[i]);
}

void cc_fold_cell(struct history *h, const u8 *cell, u64 n) {
  cc_settle(h);
  if (*cell < 2) h->past = run(h->table, h->past, *cell, n, 1);
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
