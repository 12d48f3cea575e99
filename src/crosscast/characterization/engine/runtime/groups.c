/* Work-groups, which a thread takes in turn, from the first to the last. */
#include "runtime.h"
#include <string.h>

static void place_group(struct context *c, u64 g) {
  for (int d = 0; d < 3; d++) c->group[d] = g % c->job->groups[d], g /= c->job->groups[d];
}

static void next_group(struct context *c) {
  for (int d = 0; d < 3 && ++c->group[d] == c->job->groups[d]; d++) c->group[d] = 0;
}

static void begin_group(struct context *c) {
  struct job *j = c->job;
  c->items = 1;
  for (int d = 0; d < 3; d++) {
    u64 first = c->group[d] * j->local[d], left = j->global[d] - first;
    c->base[d] = j->offset[d] + first;
    c->size[d] = left < j->local[d] ? left : j->local[d];
    c->items *= c->size[d];
  }
  if (j->several) memset(c->total, 0, 8 * c->items);
  if (j->published) memset(c->order, 0, 16 * c->items);
  const u64 *in_memory = (u64 *)j->in_memory;
  for (u64 i = 0; i < j->n_in_memory; i++) {
    struct history *h = &c->histories[in_memory[i]];
    cc_settle(h);
    h->past = 1;
  }
}

void cc_run_groups(struct context *c) {
  struct job *j = c->job;
  u64 total = j->groups[0] * j->groups[1] * j->groups[2];
  u64 chunk = j->threads == 1 ? total : total / (16 * j->threads);
  if (!chunk) chunk = 1;
  u64 guarded = 0;
  for (u64 i = 0; i < j->counters; i++) guarded |= ((u64 *)j->weights)[i];
  u64 *done = status_of(c) + S_DONE + 8 * c->number;
  for (;;) {
    u64 g = __atomic_fetch_add(&j->next_group, chunk, __ATOMIC_RELAXED);
    if (g >= total) break;
    u64 end = g + chunk < total ? g + chunk : total;
    cc_record_launch(c, g, end);
    place_group(c, g);
    for (; g < end; g++, next_group(c)) {
      begin_group(c);
      cc_group(c);
      if (guarded) cc_guard_counters(c);
      __atomic_store_n(done, *done + 1, __ATOMIC_RELAXED);
    }
  }
  for (u64 b = 0; b < j->histories; b++) cc_end_history(&c->histories[b]);
}
