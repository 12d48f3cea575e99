/* What goes to the parent; and which pages of memory were ever touched: most of the counters' address space never is. */
#define _GNU_SOURCE
#include "runtime.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DYNAMIC_COUNTERS = 11 };

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

static void emit_pairs(struct context *c, struct out *o, const struct log *l) {
  for (u64 i = 0; l->few && i < FEW; i++)
    if (few_of(l, i)) emit(c, o, i), emit(c, o, few_of(l, i));
  for (u64 i = 0; i < l->capacity; i++)
    if (l->keys[i]) emit(c, o, l->keys[i] - 1), emit(c, o, l->values[i]);
}

static void emit_log(struct context *c, struct out *o, u64 tag, const struct log *l) {
  u64 start = open_record(c, o, tag);
  emit_pairs(c, o, l);
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

/* Add up a page of a history's tables; 0 if no thread has touched it. */
enum { AT_ONCE = PAGE / 8 };
static int add_tables(struct context *c, struct job *j, struct pages *p, u64 number, u64 page, u64 *sums) {
  int any = 0;
  for (u64 t = 0; t < j->threads; t++) {
    const u64 *table = c[t].tables + TABLE * number + page, times = c[t].histories[number].repeated ? *groups_done(&c[t]) : 1;
    if (!cc_touched(p, t, (u64)table) && !cc_touched(p, t, (u64)table + PAGE - 1)) continue;
    if (!any++) memset(sums, 0, PAGE);
    for (u64 i = 0; i < AT_ONCE; i++) sums[i] += times * table[i];
  }
  return any;
}

/* The record of a history: its number, then how often each sequence occurred, above the sequence's 18 bits. */
static void emit_history(struct context *c, struct job *j, struct out *o, struct pages *p, u64 number) {
  u64 start = open_record(c, o, HISTORIES), sums[AT_ONCE];
  emit(c, o, number);
  for (u64 page = 0; page < TABLE; page += AT_ONCE)
    for (u64 i = 0; i < AT_ONCE * !!add_tables(c, j, p, number, page, sums); i++)
      if (sums[i]) emit(c, o, sums[i] * TABLE + page + i);
  close_record(o, start);
}

/* What the entropies of a branch need: its number; of the outcomes behind 16 others, how often the rarer one of the
 * two came, and how many there were; and how many patterns of 16 outcomes have each count. */
static void emit_patterns(struct context *c, struct job *j, struct out *o, struct pages *p, struct log *counted, u64 number) {
  enum { ALL = 1 << 16 };
  u64 sums[AT_ONCE], rarer = 0, followed = 0;
  for (u64 page = 0; page < ALL; page += AT_ONCE) {
    u64 patterns[AT_ONCE] = {0}, any = 0;
    /* Exactly 16 outcomes behind the leading 1, or 17, of which the last 16 count. */
    for (u64 k = 1; k < 4; k++) {
      if (!add_tables(c, j, p, number, k * ALL + page, sums)) continue;
      any = 1;
      for (u64 i = 0; i < AT_ONCE; i++) patterns[i] += sums[i];
      for (u64 i = 0; k > 1 && i < AT_ONCE; i += 2)
        rarer += sums[i] < sums[i + 1] ? sums[i] : sums[i + 1], followed += sums[i] + sums[i + 1];
    }
    for (u64 i = 0; any && i < AT_ONCE; i++)
      if (patterns[i]) cc_log_add(c, counted, patterns[i], 1);
  }
  u64 start = open_record(c, o, PATTERNS);
  emit(c, o, number), emit(c, o, rarer), emit(c, o, followed);
  emit_pairs(c, o, counted);
  close_record(o, start);
  cc_log_empty(counted);
}

/* What a thread has added to a region beside it. */
static void add_sums(struct context *c, const struct region *r, struct pages *p) {
  for (u64 at = 0, n = r->commutes; c->shift_sums && n > 1 && at + n <= r->size; at += n) {
    u8 *to = (u8 *)r->start + at, *from = to + c->shift_sums;
    if (cc_touched(p, c->number, (u64)from)) store_counter(to, n, load_counter(to, n) + load_counter(from, n));
  }
}

/* What one thread does of the reduction: regions and histories as long as there are any. */
void cc_reduce_share(struct context *c) {
  struct job *j = c->job;
  struct context *all = c - c->number;
  struct log counted = {0};
  struct pages pages;
  cc_open_pages(&pages);
  if (!c->number) cc_refuse_outside(all, j, &pages);
  for (u64 t = 0; t < j->threads && !c->number; t++)
    for (u64 i = 0; i < j->n_regions; i++) add_sums(&all[t], regions_of(j) + i, &pages);
  for (u64 i = cc_reduce(all, j, &c->levels, &pages) - j->n_regions; i < j->histories; i = take_share(j) - j->n_regions) {
    emit_patterns(all, j, &c->out, &pages, &counted, i);
    if (j->published) emit_history(all, j, &c->out, &pages, i);
  }
  emit_levels(c, &c->out, &c->levels);
  cc_close_pages(&pages);
}

static void write_all(struct context *c, const struct out *o) {
  const u8 *at = (u8 *)o->words;
  for (u64 left = 8 * o->used; left;) {
    ssize_t done = write(c->job->result_file, at, left);
    if (done <= 0) cc_fail(c, NO_MEMORY, 0, left, 0, 0, 0, 0);
    at += done, left -= done;
  }
}

static void emit_sub_groups(struct context *c, struct out *o, struct job *j) {
  u64 words[32], reuse[REUSE_WORDS] = {0}, instructions = 0;
  for (u64 t = 0; t < j->threads; t++) {
    for (u64 i = 0; i < j->n_sites; i++) emit_words(c, o, SITE, words, cc_sub_group_words(&c[t], i, words));
    emit_words(c, o, ENTRIES, c[t].entries, 2 * j->segments);
    emit_words(c, o, FORMS, c[t].form_sums, 2 * j->n_forms);
    emit_words(c, o, LONGEST, c[t].longest, 2 + j->segments + j->n_columns);
    if (c[t].inexact) emit_words(c, o, INEXACT, &c[t].inexact, 1);
    for (u64 i = 0; i < j->counters; i++) instructions += c[t].counts[i] * ((u64 *)j->instructions)[i];
  }
  cc_reuse(c, j->threads, instructions, reuse);
  emit_words(c, o, REUSE, reuse, REUSE_WORDS);
}

void cc_write_results(struct context *c, struct job *j) {
  struct out o = {0};
  u64 unique[3] = {0}, in_channel[CHANNELS] = {0};
  for (u64 t = 0; t < j->threads; t++) {
    emit_words(c, &o, COUNTERS, c[t].counts, j->counters);
    emit_words(c, &o, DYNAMIC, c[t].dynamic, DYNAMIC_COUNTERS);
    emit_log(c, &o, TOTALS, &c[t].totals);
    emit_log(c, &o, PIECES, &c[t].pieces);
    unique[0] += c[t].levels.reads, unique[1] += c[t].levels.writes, unique[2] |= c[t].levels.conflict;
    for (u64 k = 0; k < CHANNELS; k++) in_channel[k] += c[t].levels.in_channel[k];
  }
  emit_words(c, &o, UNIQUE, unique, 3);
  emit_words(c, &o, IN_CHANNEL, in_channel, CHANNELS);
  emit_sub_groups(c, &o, j);
  for (u64 i = 0; i < j->n_regions; i++) {
    const struct region *r = regions_of(j) + i;
    u64 where = r->kind == VARIABLE ? r->start - j->variables_low : r->start;
    u64 distinct[] = {r->kind, r->read_bytes, r->write_bytes, where, r->size, r->lines_64, r->lines_128, r->largest};
    if (r->read_bytes | r->write_bytes) emit_words(c, &o, DISTINCT, distinct, 8);
    u64 beyond[] = {r->start, r->before, r->behind};
    if (r->before | r->behind) emit_words(c, &o, BEYOND, beyond, 3);
  }
  write_all(c, &o);
  for (u64 t = 0; t < j->threads; t++) write_all(c, &c[t].out);
}

enum { CLOSED = -2 }; /* it is not opened until it is asked for */
void cc_open_pages(struct pages *p) {
  p->file = CLOSED;
  for (u64 i = 0; i < WINDOWS; i++) p->windows[i].first = p->windows[i].known = 0;
}

int cc_touched(struct pages *p, u64 number, u64 address) {
  struct window *w = &p->windows[number % WINDOWS];
  u64 *entries = p->entries[number % WINDOWS];
  u64 page = address / PAGE;
  if (p->file == CLOSED) p->file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (p->file < 0) return 1;
  if (page - w->first >= w->known) {
    ssize_t bytes = pread(p->file, entries, sizeof *p->entries, 8 * page);
    w->first = page, w->known = bytes > 0 ? bytes / 8 : 0;
    if (!w->known) return 1;
  }
  return entries[page - w->first] >> 62 != 0; /* present or swapped out */
}

void cc_close_pages(struct pages *p) {
  if (p->file >= 0) close(p->file);
}
