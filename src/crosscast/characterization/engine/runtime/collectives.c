/* Work-group collectives: 16 bytes a work-item, the value and for a broadcast whose it is. */
#include "runtime.h"
#include <string.h>

enum { ALL, ANY, BROADCAST, REDUCE };

/* Sums are formed in U, in which integers wrap around. */
#define COMBINE(NAME, T, U, LOWEST, HIGHEST)                                                       \
  static void NAME(u64 *x, u64 stride, u64 n, u64 members, u32 how, u32 what) {                    \
    T sum = what == 0 ? (T)0 : what == 1 ? (T)(HIGHEST) : (T)(LOWEST), v;                          \
    for (u64 i = 0; i < n; i++) {                                                                  \
      if (!(members >> i % 64 & 1)) continue;                                                      \
      memcpy(&v, &x[stride * i], sizeof v);                                                        \
      if (how == SCANNED_BEFORE) memcpy(&x[stride * i], &sum, sizeof v);                           \
      if (what == 0) sum = (T)((U)sum + (U)v);                                                     \
      else if (what == 1 ? v < sum : v > sum) sum = v;                                             \
      if (how == SCANNED) memcpy(&x[stride * i], &sum, sizeof v);                                  \
    }                                                                                              \
    for (u64 i = 0; how == FOR_ALL && i < n; i++)                                                  \
      if (members >> i % 64 & 1) memcpy(&x[stride * i], &sum, sizeof v);                           \
  }
COMBINE(combine_i32, int32_t, u32, INT32_MIN, INT32_MAX)
COMBINE(combine_u32, u32, u32, 0, UINT32_MAX)
COMBINE(combine_i64, int64_t, u64, INT64_MIN, INT64_MAX)
COMBINE(combine_u64, u64, u64, 0, UINT64_MAX)
COMBINE(combine_f32, float, float, -__builtin_inff(), __builtin_inff())
COMBINE(combine_f64, double, double, -__builtin_inf(), __builtin_inf())

void cc_combine(u64 *x, u64 stride, u64 n, u64 members, u32 type, u32 how, u32 what) {
  static void (*const combine[])(u64 *, u64, u64, u64, u32, u32) = {
      combine_i32, combine_u32, combine_i64, combine_u64, combine_f32, combine_f64,
  };
  combine[type](x, stride, n, members, how, what);
}

void cc_collective(struct context *c, u32 operation, u32 type, u64 n) {
  u64 *x = c->exchange;
  u32 what = operation & 15, o = operation >> 4;
  if (what == BROADCAST) {
    u64 who = x[1] < n ? x[1] : 0, value = x[2 * who];
    for (u64 i = 0; i < n; i++) x[2 * i] = value;
  } else if (what <= ANY) {
    u64 count = 0;
    for (u64 i = 0; i < n; i++) count += (int32_t)x[2 * i] != 0;
    for (u64 i = 0; i < n; i++) x[2 * i] = what == ALL ? count == n : count > 0;
  } else {
    cc_combine(x, 2, n, ~(u64)0, type, what - REDUCE, o);
  }
}
