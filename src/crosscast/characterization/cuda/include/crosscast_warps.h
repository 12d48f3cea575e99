/* Warp operations, which the engine does: each counts as one instruction. */
#ifndef CROSSCAST_WARPS_H
#define CROSSCAST_WARPS_H

#if CROSSCAST_WARP_SIZE == 64
typedef unsigned long long cc_lanes;
#else
typedef unsigned cc_lanes;
#endif

CC_CONVERGENT void __syncwarp(cc_lanes mask = (cc_lanes)-1);
CC_CONVERGENT cc_lanes __activemask();
CC_CONVERGENT int __all_sync(cc_lanes, int);
CC_CONVERGENT int __any_sync(cc_lanes, int);
CC_CONVERGENT cc_lanes __ballot_sync(cc_lanes, int);
CC_CONVERGENT int __all(int);
CC_CONVERGENT int __any(int);
CC_CONVERGENT cc_lanes __ballot(int);

#define CC_SHUFFLES(T)                                                                    \
  CC_CONVERGENT T __shfl_sync(cc_lanes, T, int lane, int width = CROSSCAST_WARP_SIZE);               \
  CC_CONVERGENT T __shfl_up_sync(cc_lanes, T, unsigned delta, int width = CROSSCAST_WARP_SIZE);      \
  CC_CONVERGENT T __shfl_down_sync(cc_lanes, T, unsigned delta, int width = CROSSCAST_WARP_SIZE);    \
  CC_CONVERGENT T __shfl_xor_sync(cc_lanes, T, int mask, int width = CROSSCAST_WARP_SIZE);           \
  CC_CONVERGENT T __shfl(T, int lane, int width = CROSSCAST_WARP_SIZE);                              \
  CC_CONVERGENT T __shfl_up(T, unsigned delta, int width = CROSSCAST_WARP_SIZE);                     \
  CC_CONVERGENT T __shfl_down(T, unsigned delta, int width = CROSSCAST_WARP_SIZE);                   \
  CC_CONVERGENT T __shfl_xor(T, int mask, int width = CROSSCAST_WARP_SIZE);                          \
  CC_CONVERGENT T cc_tile_shfl(T, int lane, int width);                                   \
  CC_CONVERGENT T cc_tile_shfl_up(T, unsigned delta, int width);                          \
  CC_CONVERGENT T cc_tile_shfl_down(T, unsigned delta, int width);                        \
  CC_CONVERGENT T cc_tile_shfl_xor(T, unsigned mask, int width);
CC_SHUFFLES(int) CC_SHUFFLES(unsigned) CC_SHUFFLES(long) CC_SHUFFLES(unsigned long)
CC_SHUFFLES(long long) CC_SHUFFLES(unsigned long long) CC_SHUFFLES(float) CC_SHUFFLES(double)
#undef CC_SHUFFLES
#define CC_SHUFFLES(NAME, ARGUMENT)                                                                       \
  CC_DEVICE __half NAME(cc_lanes mask, __half x, ARGUMENT n, int width = CROSSCAST_WARP_SIZE) {                      \
    return __ushort_as_half((unsigned short)NAME(mask, (unsigned)__half_as_ushort(x), n, width));         \
  }
CC_SHUFFLES(__shfl_sync, int) CC_SHUFFLES(__shfl_up_sync, unsigned)
CC_SHUFFLES(__shfl_down_sync, unsigned) CC_SHUFFLES(__shfl_xor_sync, int)
#undef CC_SHUFFLES

#define CC_MATCH(T)                                                              \
  CC_CONVERGENT cc_lanes __match_any_sync(cc_lanes, T);                          \
  CC_CONVERGENT cc_lanes cc_match_all(cc_lanes, T);                              \
  CC_DEVICE cc_lanes __match_all_sync(cc_lanes mask, T value, int *all) {        \
    cc_lanes found = cc_match_all(mask, value);                                  \
    *all = found != 0;                                                           \
    return found;                                                                \
  }
CC_MATCH(int) CC_MATCH(unsigned) CC_MATCH(long) CC_MATCH(unsigned long)
CC_MATCH(long long) CC_MATCH(unsigned long long) CC_MATCH(float) CC_MATCH(double)
#undef CC_MATCH

#define CC_REDUCE(NAME, T) CC_CONVERGENT T __reduce_##NAME##_sync(cc_lanes, T);
CC_REDUCE(add, int) CC_REDUCE(min, int) CC_REDUCE(max, int)
CC_REDUCE(add, unsigned) CC_REDUCE(min, unsigned) CC_REDUCE(max, unsigned)
CC_REDUCE(and, unsigned) CC_REDUCE(or, unsigned) CC_REDUCE(xor, unsigned)
#undef CC_REDUCE

CC_CONVERGENT void cc_tile_sync(int width);
CC_CONVERGENT int cc_tile_all(int, int width);
CC_CONVERGENT int cc_tile_any(int, int width);
CC_CONVERGENT cc_lanes cc_tile_ballot(int, int width);
#define CC_TILES(T)                                       \
  CC_CONVERGENT cc_lanes cc_tile_match_any(T, int width); \
  CC_CONVERGENT T cc_tile_add(T, int width);              \
  CC_CONVERGENT T cc_tile_min(T, int width);              \
  CC_CONVERGENT T cc_tile_max(T, int width);              \
  CC_CONVERGENT T cc_tile_scan_add(T, int width);         \
  CC_CONVERGENT T cc_tile_scan_exclusive_add(T, int width);
CC_TILES(int) CC_TILES(unsigned) CC_TILES(long) CC_TILES(unsigned long)
CC_TILES(long long) CC_TILES(unsigned long long) CC_TILES(float) CC_TILES(double)
#undef CC_TILES
#define CC_TILES(T)                          \
  CC_CONVERGENT T cc_tile_and(T, int width); \
  CC_CONVERGENT T cc_tile_or(T, int width);  \
  CC_CONVERGENT T cc_tile_bitxor(T, int width);
CC_TILES(int) CC_TILES(unsigned) CC_TILES(long) CC_TILES(unsigned long) CC_TILES(long long) CC_TILES(unsigned long long)
#undef CC_TILES

CC_DEVICE unsigned cc_thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
CC_DEVICE unsigned __lane_id() { return cc_thread_rank() % CROSSCAST_WARP_SIZE; }

#endif
