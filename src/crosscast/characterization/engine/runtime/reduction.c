/* From counters of accesses to how many addresses have each count, with 0 to 10 bits skipped. */
#include "runtime.h"

#include <string.h>

enum { CHUNK = 1024 };

static void tally(struct context *c, struct levels *v, u64 level, u64 count, u64 addresses) {
  if (count < SMALL) v->small[level * SMALL + count] += addresses;
  else cc_log_add(c, &v->large[level], count, addresses);
}

static u64 put_aside(struct context *c, u64 counter) {
  if (!c->spilled) return 0;
  u64 *k = cc_log_find(&c->spills, counter);
  return *k ? c->spills.values[k - c->spills.keys] : 0;
}

/* A chunk whose counters are all the same, as a kernel leaves it that streams through its data: what
 * holds for one counter holds for all. Returns 0 if the chunk is not of that kind. */
static int reduce_even_chunk(struct context *c, u64 threads, struct region *r, u64 at, struct levels *v) {
  u64 g = r->granule, bits = 8 * g, most = most_of(g), m = CHUNK / g, log_g = __builtin_ctzll(g);
  u64 sum = 0, flags = 0, writers = 0, users = 0;
  for (u64 t = 0; t < threads; t++) {
    const u8 *counter = (const u8 *)(at + shift_of(&c[t], r));
    if (c[t].spilled || memcmp(counter, counter + g, CHUNK - g)) return 0;
    u64 word = load_counter(counter, g);
    sum += word & most, flags |= word >> (bits - 2), users += word != 0, writers += word >> (bits - 1);
  }
  v->reads += m * (flags & 1), v->writes += m * (flags >> 1 & 1);
  if (users > 1 && writers && r->place != LOCAL && !r->commutes) v->conflict = 1;
  if (!sum) return 1;
  tally(c, v, LEVELS + log_g, sum, m);
  for (u64 n = log_g + 1; n < LEVELS; n++) tally(c, v, n, sum <<= 1, m /= 2);
  return 1;
}

/* One chunk of 1024 bytes of data: its counters of all threads become counts at every level. */
static void reduce_chunk(struct context *c, u64 threads, struct region *r, u64 at, struct levels *v) {
  u64 g = r->granule, bits = 8 * g, most = most_of(g), m = CHUNK / g, log_g = __builtin_ctzll(g);
  u64 counts[CHUNK], any = 0;
  for (u64 i = 0; i < m; i++) {
    u64 sum = 0, flags = 0, writers = 0, users = 0;
    for (u64 t = 0; t < threads; t++) {
      u64 counter = at + i * g + shift_of(&c[t], r), word = load_counter((void *)counter, g);
      if (!word) continue;
      sum += (word & most) + put_aside(&c[t], counter), flags |= word >> (bits - 2);
      users++, writers += word >> (bits - 1);
    }
    counts[i] = sum, any |= sum;
    v->reads += flags & 1, v->writes += flags >> 1 & 1;
    if (users > 1 && writers && r->place != LOCAL && !r->commutes) v->conflict = 1;
  }
  if (!any) return;
  for (u64 i = 0; i < m; i++)
    if (counts[i]) tally(c, v, LEVELS + log_g, counts[i], 1);
  for (u64 n = log_g + 1; n < LEVELS; n++) {
    m /= 2;
    for (u64 i = 0; i < m; i++) {
      counts[i] = counts[2 * i] + counts[2 * i + 1];
      if (counts[i]) tally(c, v, n, counts[i], 1);
    }
  }
}

static int counted_in(struct context *c, u64 threads, struct pages *p, struct region *r, u64 at, u64 span) {
  for (u64 t = 0; t < threads; t++) {
    u64 counters = at + shift_of(&c[t], r);
    if (cc_touched(p, counters) || cc_touched(p, counters + span - 1)) return 1;
  }
  return 0;
}

void cc_reduce(struct context *c, struct job *j, struct levels *v) {
  struct pages pages;
  cc_open_pages(&pages);
  v->small = cc_map(c, (LEVELS + 4) * SMALL * 8);
  for (struct region *r = regions_of(j), *last = r + j->n_regions; r < last; r++) {
    u64 end = r->start + r->size;
    /* A page of counters holds those of one page of data, up to the distance between the two. */
    for (u64 at = r->start, span; at < end; at += span) {
      span = PAGE - at % PAGE;
      if (!counted_in(c, j->threads, &pages, r, at, span)) continue;
      for (u64 k = at; k < at + span && k < end; k += CHUNK)
        if (!reduce_even_chunk(c, j->threads, r, k, v)) reduce_chunk(c, j->threads, r, k, v);
    }
  }
  cc_close_pages(&pages);
}
