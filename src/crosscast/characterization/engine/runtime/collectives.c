/* Work-group collectives: 16 bytes a work-item, the value and for a broadcast whose it is. */
#include "runtime.h"
#include <string.h>

enum { ALL, ANY, BROADCAST, REDUCE, SCAN_EXCLUSIVE, SCAN_INCLUSIVE };
enum { ADD, MIN, MAX };

/* Sums are formed in U, in which integers wrap around. */
#define COLLECTIVE(NAME, T, U, LOWEST, HIGHEST)                                          \
  static void NAME(u64 *x, u32 what, u32 o, u64 n) {                                     \
    T sum = o == ADD ? (T)0 : o == MIN ? (T)(HIGHEST) : (T)(LOWEST), v;                  \
    for (u64 i = 0; i < n; i++) {                                                        \
      memcpy(&v, &x[2 * i], sizeof v);                                                   \
      if (what == SCAN_EXCLUSIVE) memcpy(&x[2 * i], &sum, sizeof v);                     \
      if (o == ADD) sum = (T)((U)sum + (U)v);                                            \
      else if (o == MIN ? v < sum : v > sum) sum = v;                                    \
      if (what == SCAN_INCLUSIVE) memcpy(&x[2 * i], &sum, sizeof v);                     \
    }                                                                                    \
    for (u64 i = 0; what == REDUCE && i < n; i++) memcpy(&x[2 * i], &sum, sizeof v);     \
  }
COLLECTIVE(collect_i32, int32_t, u32, INT32_MIN, INT32_MAX)
COLLECTIVE(collect_u32, u32, u32, 0, UINT32_MAX)
COLLECTIVE(collect_i64, int64_t, u64, INT64_MIN, INT64_MAX)
COLLECTIVE(collect_u64, u64, u64, 0, UINT64_MAX)
COLLECTIVE(collect_f32, float, float, -__builtin_inff(), __builtin_inff())
COLLECTIVE(collect_f64, double, double, -__builtin_inf(), __builtin_inf())

void cc_collective(struct context *c, u32 operation, u32 type, u64 n) {
  static void (*const collect[])(u64 *, u32, u32, u64) = {
      collect_i32, collect_u32, collect_i64, collect_u64, collect_f32, collect_f64,
  };
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
    collect[type](x, what, o, n);
  }
}
