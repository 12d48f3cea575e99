/* Counters that become too large for their bytes: put aside, by address. */
#include "runtime.h"

enum { SWEEP_AFTER = 1 << 29 };

u64 cc_spill(struct context *c, u8 *counter, u32 granule) {
  u64 word = load_counter(counter, granule), most = most_of(granule);
  cc_log_add(c, &c->spills, (u64)counter, word & most);
  c->spilled = 1;
  return word & ~most;
}

/* Counters of 4 bytes hold 30 bits. A thread that has made enough accesses to fill one puts the
 * large ones aside; the others then have room for as many accesses again. */
static void sweep(struct context *c) {
  struct region *r = regions_of(c->job);
  for (u64 i = 0; i < c->job->n_regions; i++) {
    if (r[i].granule != 4) continue;
    u32 *counter = (u32 *)(r[i].start + shift_of(c, &r[i]));
    for (u64 k = 0; k < (r[i].size + 3) / 4; k++)
      if ((counter[k] & most_of(4)) > MOST_LEFT_BY_SWEEP) counter[k] = cc_spill(c, (u8 *)&counter[k], 4);
  }
}

void cc_guard_counters(struct context *c) {
  const int64_t *weights = (int64_t *)c->job->weights;
  int64_t accesses = 0;
  for (u64 i = 0; i < c->job->counters; i++) accesses += weights[i] * (int64_t)c->counts[i];
  u64 since = accesses - c->swept;
  if (since < SWEEP_AFTER) return;
  if (since > most_of(4) - MOST_LEFT_BY_SWEEP) status_of(c)[S_OVERFLOW] = 1;
  sweep(c);
  c->swept = accesses;
}
