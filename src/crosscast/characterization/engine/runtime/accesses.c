/* Accesses whose memory is known only while running: found, counted, checked, copied. */
#include "runtime.h"
#include <string.h>

struct region *cc_region_at(struct context *c, u64 address) {
  struct region *r = regions_of(c->job);
  u64 low = 0, high = c->job->n_regions;
  while (low < high) {
    u64 mid = (low + high) / 2;
    if (r[mid].start > address) high = mid;
    else low = mid + 1;
  }
  return low && address - r[low - 1].start < r[low - 1].size ? &r[low - 1] : 0;
}

/* The region of an address of this thread: local regions stand at their offset in the table. */
__attribute__((noinline)) static struct region *find_region(struct context *c, u64 address) {
  u64 offset = address - (u64)c->local;
  if (offset < c->job->local_bytes) return cc_region_at(c, offset);
  return address < c->job->local_bytes ? 0 : cc_region_at(c, address);
}

/* Note how far beside a buffer a kernel read; what writes there, or reads elsewhere, is refused. */
void cc_read_beside(struct context *c, u64 address, u64 writes) {
  struct region *regions = regions_of(c->job), *r = 0;
  u64 far = PAD + PAGE, before = 0, behind = 0;
  for (u64 i = 0; i < c->job->n_regions && !writes; i++) {
    if (regions[i].kind != BUFFER) continue;
    u64 end = regions[i].start + regions[i].size, last = address + regions[i].granule, above = last - end, below = regions[i].start - address;
    if (address < regions[i].start && below < far) far = before = below, behind = 0, r = &regions[i];
    else if (address >= regions[i].start && last > end && above < far) far = behind = above, before = 0, r = &regions[i];
  }
  if (!r) cc_fail(c, OUTSIDE, 0, address, 0, 0, address, address - (u64)c->local);
  for (u64 n = r->before; before > n && !__atomic_compare_exchange_n(&r->before, &n, before, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) {}
  for (u64 n = r->behind; behind > n && !__atomic_compare_exchange_n(&r->behind, &n, behind, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) {}
}

static void bump(struct context *c, u8 *counter, u64 granule, u64 read, u64 write) {
  u64 word = load_counter(counter, granule), most = most_of(granule);
  /* Code that knows the memory adds to counters of 4 bytes without a look at their value. */
  u64 room_above = granule == 4 ? MOST_LEFT_BY_SWEEP : most;
  if ((word & most) + 2 > room_above) word = cc_spill(c, counter, granule);
  word += read + write;
  word |= (read | write << 1) << (8 * granule - 2);
  store_counter(counter, granule, word);
}

void cc_count_dynamic(struct context *c, u8 *p, u32 flags, u32 granule) {
  (void)granule;
  u64 read = flags & 1, write = flags >> 1 & 1, plain = flags >> 2 & 1;
  struct region *r = find_region(c, (u64)p);
  if (!r) { /* private memory, or a wild pointer that is about to fault or beside a buffer */
    if ((u64)p - (c->job->data_low - PAD) < c->job->data_high - c->job->data_low + 2 * PAD) cc_read_beside(c, (u64)p, write);
    c->dynamic[9] += plain;
    return;
  }
  u64 shift = r->kind == LOCAL ? c->shift_local : shift_of(c, r);
  u64 *space = c->dynamic + 3 * (r->kind == LOCAL ? 2 : r->constant ? 1 : 0);
  space[0] += read, space[1] += write, space[2] += plain;
  bump(c, (u8 *)(((u64)p & ~(r->granule - 1)) + shift), r->granule, read, write);
}

static void access_texel(const void *p, u64 nbytes, u32 flags) {
  struct context *c = cc_self;
  u64 room = c->job->stream_words;
  c->words[room * c->texels + (c->positions[c->texels]++ & (room - 1))] = (u64)p;
  cc_count_dynamic(c, (u8 *)p, flags, 0);
  c->dynamic[10] += nbytes;
}

void cc_texel_read(const void *p, u64 nbytes) { access_texel(p, nbytes, 1); }
void cc_texel_write(const void *p, u64 nbytes) { access_texel(p, nbytes, 2); }

void cc_check(struct context *c, u8 *p, u64 n, u32 site, u32 write, u64 item) {
  u64 address = (u64)p;
  struct region *r = find_region(c, address);
  if (r) {
    u64 start = r->start + (r->kind == LOCAL ? (u64)c->local : 0), forbidden = write && r->read_only;
    if (n <= r->size - (address - start) && !forbidden) return;
    cc_fail(c, BOUNDS, forbidden, address, site, item, n, write);
  }
  if (address - (u64)c->stack < c->stack_size) return;
  if (address - (u64)c->private < c->job->private_bytes * MAX_ITEMS) return;
  cc_fail(c, BOUNDS, 0, address, site, item, n, write);
}

void *cc_to_space(struct context *c, void *p, u32 space) {
  struct region *r = find_region(c, (u64)p);
  u32 found = !r ? 0 : r->kind == LOCAL ? 3 : 1;
  return found == space ? p : 0;
}

u32 cc_fence_of(struct context *c, void *p) {
  struct region *r = find_region(c, (u64)p);
  return !r ? 0 : r->kind == LOCAL ? 1 : 2;
}

void cc_async_copy(struct context *c, u8 *to, u8 *from, u64 n, u64 stride, u64 bytes, u64 item, u32 to_local,
                   u32 sites, u32 read, u32 written) {
  if (item) return; /* the group copies once, when its first work-item asks */
  u64 to_step = to_local ? bytes : bytes * stride, from_step = to_local ? bytes * stride : bytes;
  if (!c->is_native) {
    cc_sub_groups_of_copy(c, read, (u64)from, from_step, n);
    cc_sub_groups_of_copy(c, written, (u64)to, to_step, n);
  }
  for (u64 i = 0; i < n; i++, to += to_step, from += from_step) {
    if (sites) cc_check(c, from, bytes, sites - 1, 0, item), cc_check(c, to, bytes, sites, 1, item);
    if (!c->is_native) cc_count_dynamic(c, from, 1, 0), cc_count_dynamic(c, to, 2, 0);
    memcpy(to, from, bytes);
  }
}

/* Counters that become too large for their bytes: put aside, by address. */
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
