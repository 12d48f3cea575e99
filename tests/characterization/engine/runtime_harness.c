/* Lets Python call the runtime as instrumented code would. */
#include "runtime.h"
#include <stdlib.h>
#define CALL __attribute__((visibility("default")))

static u64 weight = 1;
static u64 status[64];
static u64 in_memory[1];
static struct region region = {.granule = 4, .counted = 1};
static struct job job = {.status = (u64)status, .regions = (u64)&region, .threads = 1, .n_regions = 1,
                         .in_memory = (u64)in_memory, .n_in_memory = 1, .weights = (u64)&weight, .counters = 1};

void cc_group(struct context *c) { (void)c; }
const struct slice cc_launch_slices[1];

CALL u64 history_bytes(void) { return sizeof(struct history); }
CALL u64 job_bytes(void) { return sizeof(struct job); }
CALL u64 region_bytes(void) { return sizeof(struct region); }
CALL u64 strided_offset(void) { return __builtin_offsetof(struct context, strided); }

CALL struct context *new_context(u64 data, u64 nbytes, u64 counters) {
  struct context *c = cc_self = aligned_alloc(128, sizeof *c);
  *c = (struct context){.job = &job, .shift_buffer = counters - data, .local = (u8 *)1};
  region.start = data, region.size = nbytes, status[S_OVERFLOW] = 0;
  c->histories = calloc(1, sizeof *c->histories);
  c->histories->table = calloc(TABLE, 8), c->histories->past = 1;
  c->spreads = calloc(2, sizeof *c->spreads);
  c->counts = calloc(1, 8), c->dynamic = calloc(16, 8);
  return c;
}

CALL u64 *table_of(struct context *c) { cc_end_history(c->histories); return c->histories->table; }
CALL void lead(struct context *c, const u8 *bits, u64 n) { for (u64 i = 0; i < n; i++) cc_lead_outcome(c, 0, bits[i]); }
CALL void fold_lead(struct context *c, u64 items) { cc_fold_lead(c, items); }
CALL void fold_row(struct context *c, const u8 *row, u64 n) { cc_fold_row(c->histories, row, n); }
CALL void leave_loop(struct context *c, u64 n, u64 stay) {
  struct history *h = c->histories;
  if (h->steady && h->last == n) h->repeats++;
  else cc_leave_loop(h, n, stay);
}

CALL void count_dynamic(struct context *c, u8 *p, u32 flags) { cc_count_dynamic(c, p, flags, 4); }
CALL u64 guard(struct context *c, u64 accesses) {
  c->counts[0] += accesses;
  cc_guard_counters(c);
  return status[S_OVERFLOW];
}

static u64 found(struct log *l, u64 key) {
  if (key < FEW) return l->few ? few_of(l, key) : 0;
  u64 *k = l->capacity ? cc_log_find(l, key) : 0;
  return k && *k ? l->values[k - l->keys] : 0;
}

CALL u64 reduced(struct context *c, u64 level, u64 count) {
  struct levels v = {0};
  struct pages pages;
  cc_open_pages(&pages), job.next_share = 0;
  cc_reduce(c, &job, &v, &pages);
  cc_close_pages(&pages);
  return count < SMALL ? small_of(&v, level, count) : found(&v.large[level], count);
}

CALL u64 logged(struct context *c, const u64 *values, u64 n, u64 key) {
  struct log log = {0};
  (void)c;
  cc_fold64(&log, values, n);
  return found(&log, key);
}

/* Rows of 64 keys, a line each, at one time after the other, where so many touches have room; returns how many are kept. */
CALL u64 touch_rows(struct context *c, const u32 (*lines)[64], u64 rows, u64 most) {
  c->touches = 0, c->n_touches = c->unsampled = 0, c->most_touches = most;
  for (u64 k = 0; k < rows; k++) {
    u32 keys[64];
    for (u64 i = 0; i < 64; i++) keys[i] = lines[k][i] << LINE_LOG;
    cc_touch_row(c, 0, 1, keys, k << SITE_LOG, 0);
  }
  return c->n_touches;
}
CALL u64 unsampled(struct context *c) { return c->unsampled; }
