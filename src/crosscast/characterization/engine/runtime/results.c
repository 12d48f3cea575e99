/* What goes to the parent; and which pages of memory were ever touched: most of the
 * counters' address space never is. */
#define _GNU_SOURCE
#include "runtime.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DYNAMIC_COUNTERS = 10 };

__attribute__((noinline)) static void grow(struct context *c, struct out *o) {
  u64 capacity = 2 * (o->capacity + PAGE);
  o->words = cc_remap(c, o->words, 8 * o->capacity, 8 * capacity), o->capacity = capacity;
}

static inline void emit(struct context *c, struct out *o, u64 word) {
  if (o->used == o->capacity) grow(c, o);
  o->words[o->used++] = word;
}

static u64 open_record(struct context *c, struct out *o, u64 tag) {
  emit(c, o, tag);
  emit(c, o, 0);
  return o->used;
}

static void close_record(struct out *o, u64 start) { o->words[start - 1] = o->used - start; }

static void emit_words(struct context *c, struct out *o, u64 tag, const u64 *words, u64 n) {
  u64 start = open_record(c, o, tag);
  for (u64 i = 0; i < n; i++) emit(c, o, words[i]);
  close_record(o, start);
}

static void emit_log(struct context *c, struct out *o, u64 tag, struct log *l) {
  u64 start = open_record(c, o, tag);
  for (u64 i = 0; l->few && i < FEW; i++)
    if (few_of(l, i)) emit(c, o, i), emit(c, o, few_of(l, i));
  for (u64 i = 0; i < l->capacity; i++)
    if (l->keys[i]) emit(c, o, l->keys[i] - 1), emit(c, o, l->values[i]);
  close_record(o, start);
}

static void emit_levels(struct context *c, struct out *o, struct levels *v) {
  u64 start = open_record(c, o, BY_LEVEL);
  for (u64 level = 0; level < LEVELS + 4; level++) {
    for (u64 n = 1; n <= v->most[level]; n++)
      if (small_of(v, level, n)) emit(c, o, level), emit(c, o, n), emit(c, o, small_of(v, level, n));
    struct log *l = &v->large[level];
    for (u64 i = 0; l->few && i < FEW; i++)
      if (few_of(l, i)) emit(c, o, level), emit(c, o, i), emit(c, o, few_of(l, i));
    for (u64 i = 0; i < l->capacity; i++)
      if (l->keys[i]) emit(c, o, level), emit(c, o, l->keys[i] - 1), emit(c, o, l->values[i]);
  }
  close_record(o, start);
}

/* The record of a history: its number, then how often each sequence occurred, above the sequence's 18 bits. */
static void emit_history(struct context *c, struct job *j, struct out *o, struct pages *p, u64 number) {
  u64 start = open_record(c, o, HISTORIES);
  emit(c, o, number);
  for (u64 page = 0; page < TABLE; page += PAGE / 8) {
    u64 sums[PAGE / 8] = {0}, any = 0;
    for (u64 t = 0; t < j->threads; t++) {
      const u64 *table = c[t].tables + TABLE * number + page;
      if (!cc_touched(p, t, (u64)table) && !cc_touched(p, t, (u64)table + PAGE - 1)) continue;
      for (u64 i = 0; i < PAGE / 8; i++) sums[i] += table[i];
      any = 1;
    }
    for (u64 i = 0; any && i < PAGE / 8; i++)
      if (sums[i]) emit(c, o, sums[i] * TABLE + page + i);
  }
  close_record(o, start);
}

/* What one thread does of the reduction: regions and histories as long as there are any. */
void cc_reduce_share(struct context *c) {
  struct job *j = c->job;
  struct context *all = c - c->number;
  struct pages pages;
  cc_open_pages(&pages);
  if (!c->number) cc_refuse_outside(all, j, &pages);
  for (u64 i = cc_reduce(all, j, &c->levels, &pages) - j->n_regions; i < j->histories; i = take_share(j) - j->n_regions)
    emit_history(all, j, &c->out, &pages, i);
  emit_levels(c, &c->out, &c->levels);
  cc_close_pages(&pages);
}

static void write_all(struct context *c, const struct out *o) {
  const u8 *at = (u8 *)o->words;
  for (u64 left = 8 * o->used; left;) {
    ssize_t done = write(c->job->result_fd, at, left);
    if (done <= 0) cc_fail(c, NO_MEMORY, 0, left, 0, 0, 0, 0);
    at += done, left -= done;
  }
}

void cc_write_results(struct context *c, struct job *j) {
  struct out o = {0};
  u64 unique[3] = {0};
  for (u64 t = 0; t < j->threads; t++) {
    emit_words(c, &o, COUNTERS, c[t].counts, j->counters);
    emit_words(c, &o, DYNAMIC, c[t].dynamic, DYNAMIC_COUNTERS);
    emit_log(c, &o, TOTALS, &c[t].totals);
    emit_log(c, &o, PIECES, &c[t].pieces);
    unique[0] += c[t].levels.reads, unique[1] += c[t].levels.writes, unique[2] |= c[t].levels.conflict;
  }
  emit_words(c, &o, UNIQUE, unique, 3);
  write_all(c, &o);
  for (u64 t = 0; t < j->threads; t++) write_all(c, &c[t].out);
}

void cc_open_pages(struct pages *p) {
  p->file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (u64 i = 0; i < WINDOWS; i++) p->windows[i].first = p->windows[i].known = 0;
}

int cc_touched(struct pages *p, u64 number, u64 address) {
  struct window *w = &p->windows[number % WINDOWS];
  u64 page = address / PAGE;
  if (p->file < 0) return 1;
  if (page - w->first >= w->known) {
    ssize_t bytes = pread(p->file, w->entries, sizeof w->entries, 8 * page);
    w->first = page, w->known = bytes > 0 ? bytes / 8 : 0;
    if (!w->known) return 1;
  }
  return w->entries[page - w->first] >> 62 != 0; /* present or swapped out */
}

void cc_close_pages(struct pages *p) {
  if (p->file >= 0) close(p->file);
}
