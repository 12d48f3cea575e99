/* Branch histories: how often each sequence of up to 17 outcomes of a branch occurred. */
#include "runtime.h"
#include <string.h>
#include <sys/mman.h>

enum { FULL = 1 << 16 };

static u64 shifted(u64 outcomes) { return outcomes >= 2 * FULL ? (outcomes & (FULL - 1)) | FULL : outcomes; }

static u64 saturated(u64 bit) { return bit ? 2 * FULL - 1 : FULL; }

/* Count `n` outcomes alike, `times` times over. */
static inline u64 run_here(u64 *table, u64 past, u64 bit, u64 n, u64 times) {
  for (u64 i = 0; i < n; i++) {
    u64 outcomes = past << 1 | bit;
    if (past == saturated(bit)) {
      table[outcomes] += times * (n - i);
      return past;
    }
    table[outcomes] += times;
    past = shifted(outcomes);
  }
  return past;
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

/* Count outcomes one by one, without branches, since nothing foretells them. */
static u64 fold_mixed(u64 *table, u64 past, const u8 *bits, u64 n, u64 times) {
  u64 i = 0;
  for (; i < n && past < FULL; i++) {
    table[past << 1 | bits[i]] += times;
    past = shifted(past << 1 | bits[i]);
  }
  uint16_t last = past;
  for (; i < n; i++) {
    u64 outcomes = (u64)last << 1 | bits[i];
    table[2 * FULL + outcomes] += times;
    last = outcomes;
  }
  return past < FULL ? past : FULL | last;
}

/* A row has a byte a work-item; one of 2 or more stands for a branch that was not executed. Runs of eight alike and
 * more are counted at once, the rest one by one. Returns the past that is left. */
static u64 fold(u64 *table, u64 past, const u8 *row, u64 n, u64 times) {
  u8 mixed[MAX_ITEMS + 8];
  u64 waiting = 0;
  for (u64 i = 0, j; i < n; i = j) {
    u64 eight = row[i] * 0x0101010101010101u, word = ~eight;
    for (j = i; j + 8 <= n && (memcpy(&word, row + j, 8), word == eight); j += 8) {}
    if (j == i) {
      for (; j < i + 8 && j < n; j++) mixed[waiting] = row[j], waiting += row[j] < 2;
      continue;
    }
    while (j < n && row[j] == row[i]) j++;
    if (row[i] > 1) continue;
    past = fold_mixed(table, past, mixed, waiting, times), waiting = 0;
    past = run_here(table, past, row[i], j - i, times);
  }
  return fold_mixed(table, past, mixed, waiting, times);
}

enum { MEMOS = 64, SHORTEST_MEMO = 32, TRIALS = 256 };

/* A row that came `times` times; all but the first are not yet in the table. */
struct memo {
  u64 hash, past, after, n, times;
  u8 row[MAX_ITEMS];
};

struct memos {
  u64 tried, found; /* whether it is worth while to look for a row */
  struct memo at[MEMOS];
};

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
  if (n < SHORTEST_MEMO || seldom || !memcmp(row, row + 1, n - 1)) {
    h->past = fold(h->table, h->past, row, n, 1);
    return;
  }
  if (!known) known = h->memos = cc_map(cc_self, sizeof *known);
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
    u64 room = h->room ? 2 * h->room : PAGE / 8, *more = cc_map(c, 8 * room);
    if (h->room) memcpy(more, h->lead, 8 * h->led), munmap(h->lead, 8 * h->room);
    h->lead = more, h->room = room;
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
