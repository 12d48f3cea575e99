/* How often blocks ran: of each, the most times that any work-item of a sub-group ran it. */
#include "sub_groups.h"
#include <string.h>

struct term {
  u64 column;
  int64_t coefficient;
};

/* Of the work-items from `first` on, the one that a form is largest for, and how large. */
static int64_t find_most(const struct context *c, const struct form *f, u64 first, u64 n, u64 *who) {
  const struct term *t = (struct term *)c->job->terms + f->first, *end = t + f->n;
  int64_t sums[HALF] = {0}, most = INT64_MIN;
  for (; t < end; t++)
    for (u64 i = 0; i < n; i++) {
      u64 at = MAX_ITEMS * t->column + first + i;
      sums[i] += t->coefficient * (c->job->narrow ? ((int32_t *)c->columns)[at] : ((int64_t *)c->columns)[at]);
    }
  for (u64 i = 0; i < n; i++)
    if (sums[i] > most) most = sums[i], *who = first + i;
  return most;
}

/* How large it is, if that is all. */
static int64_t find_largest(const struct context *c, const struct form *f, u64 first, u64 n) {
  const struct term *t = (struct term *)c->job->terms + f->first, *end = t + f->n;
  if (n < HALF) return find_most(c, f, first, n, &n);
  if (c->job->narrow) { /* runs of a segment without loops: 32 bits hold what they count */
    int32_t sums[HALF] = {0}, largest = INT32_MIN;
    for (; t < end; t++) {
      const int32_t *from = (const int32_t *)c->columns + MAX_ITEMS * t->column + first;
      for (u64 i = 0; i < HALF; i++) sums[i] += (int32_t)t->coefficient * from[i];
    }
    for (u64 i = 0; i < HALF; i++) largest = sums[i] > largest ? sums[i] : largest;
    return largest;
  }
  int64_t sums[HALF] = {0}, largest = INT64_MIN;
  for (; t < end; t++) {
    const int64_t *from = (const int64_t *)c->columns + MAX_ITEMS * t->column + first;
    if (t->coefficient == 1)
      for (u64 i = 0; i < HALF; i++) sums[i] += from[i];
    else if (t->coefficient == -1)
      for (u64 i = 0; i < HALF; i++) sums[i] -= from[i];
    else
      for (u64 i = 0; i < HALF; i++) sums[i] += t->coefficient * from[i];
  }
  for (u64 i = 0; i < HALF; i++) largest = sums[i] > largest ? sums[i] : largest;
  return largest;
}

/* Whether the columns are those of the group before, as they mostly are where few work-items go another way. */
static int is_repeated(struct context *c) {
  u64 bytes = c->items * (c->job->narrow ? 4 : 8), pitch = MAX_ITEMS * (c->job->narrow ? 4 : 8), same = c->repeated == c->items;
  if (same && c->job->alike) return 1;
  if (!c->before) c->before = cc_map(c, pitch * c->job->n_columns);
  for (u64 k = 0; k < c->job->n_columns; k++) {
    u8 *now = (u8 *)c->columns + pitch * k, *then = (u8 *)c->before + pitch * k;
    if (same && !memcmp(now, then, bytes)) continue;
    same = 0;
    memcpy(then, now, bytes);
  }
  c->repeated = c->items;
  return same;
}

static void keep_longest(struct context *c, u64 item, u64 total) {
  struct job *j = c->job;
  u64 columns = j->n_columns, *kept = c->longest;
  u64 number = number_of(j, c->group[0], c->group[1], c->group[2]);
  if (total < kept[0] || (total == kept[0] && number >= kept[1])) return;
  kept[0] = total, kept[1] = number;
  memcpy(kept + 2, c->runs, 8 * j->segments);
  for (u64 k = 0; k < columns; k++)
    kept[2 + j->segments + k] = j->narrow ? ((u32 *)c->columns)[MAX_ITEMS * k + item] : ((u64 *)c->columns)[MAX_ITEMS * k + item];
}

static void measure(struct context *c) {
  struct job *j = c->job;
  const struct form *forms = (struct form *)j->forms;
  u64 all = 0, who = 0;
  int64_t longest = INT64_MIN;
  if (!j->n_forms) return;
  for (u64 k = 0; k < j->segments; k++) all += c->runs[k] * ((u64 *)j->segment_weights)[k];
  int64_t *last = (int64_t *)c->form_sums + 2 * j->n_forms;
  if (!is_repeated(c)) {
    memset(last, 0, 16 * j->n_forms);
    for (u64 f = 0; f < j->n_forms; f++)
      for (u64 first = 0; first < c->items; first += LANES) {
        u64 n = c->items - first;
        int64_t low = find_largest(c, &forms[f], first, least(n, HALF)), high = INT64_MIN;
        if (n > HALF) high = find_largest(c, &forms[f], first + HALF, least(n - HALF, HALF)), last[f] += high;
        last[f] += low, last[j->n_forms + f] += low > high ? low : high;
        if (!f && (low > longest || high > longest)) {
          u64 from = low >= high ? first : first + HALF;
          longest = find_most(c, forms, from, least(c->items - from, HALF), &who);
        }
      }
    keep_longest(c, who, all + longest);
    c->longest_of_group = longest, c->longest_item = who;
  } else keep_longest(c, c->longest_item, all + c->longest_of_group);
  for (u64 f = 0; f < 2 * j->n_forms; f++) c->form_sums[f] += last[f];
}

void cc_end_group(struct context *c) {
  struct job *j = c->job;
  u64 narrow = (c->items + HALF - 1) / HALF, wide = (c->items + LANES - 1) / LANES;
  measure(c);
  c->sequence = 0;
  for (u64 k = 0; k < j->segments; k++) {
    c->entries[k] += narrow * c->runs[k], c->entries[j->segments + k] += wide * c->runs[k];
    c->runs[k] = 0;
  }
  if (j->several)
    for (u64 k = 0; k < j->n_columns; k++) memset((u8 *)c->columns + MAX_ITEMS * k * (j->narrow ? 4 : 8), 0, c->items * (j->narrow ? 4 : 8));
  /* If there is but one segment, what its end has left is put together. */
  for (u64 i = 0; i < j->n_sites && j->several; i++) {
    struct sub_site *s = site_of(c, i);
    cc_end_repeat(c, s);
    for (u64 b = 0; s->waiting && LANES * b < c->items; b++) cc_flush_waiting(c, s, &s->waiting[b]);
  }
}
