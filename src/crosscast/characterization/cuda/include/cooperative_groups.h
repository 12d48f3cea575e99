/* Groups of threads: blocks, tiles of warps, and the lanes that are together. */
#ifndef CROSSCAST_COOPERATIVE_GROUPS_H
#define CROSSCAST_COOPERATIVE_GROUPS_H

CC_REFUSED void cc_refused_grid();

namespace cooperative_groups {

struct thread_block {
  CC_MEMBER static void sync() { __syncthreads(); }
  CC_MEMBER static unsigned thread_rank() { return cc_thread_rank(); }
  CC_MEMBER static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  CC_MEMBER static unsigned num_threads() { return size(); }
  CC_MEMBER static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  CC_MEMBER static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  CC_MEMBER static dim3 group_dim() { return blockDim; }
  CC_MEMBER static dim3 dim_threads() { return blockDim; }
};
CC_DEVICE thread_block this_thread_block() { return {}; }

/* A block or a tile, as its size says: that of a tile is a constant wherever it is made. */
struct thread_group {
  unsigned lanes;  // Of a tile; 0 is the block
  CC_MEMBER thread_group(thread_block) : lanes(0) {}
  CC_MEMBER explicit thread_group(unsigned n) : lanes(n) {}
  CC_LANE_MEMBER void sync() const { lanes ? cc_tile_sync((int)lanes) : __syncthreads(); }
  CC_MEMBER unsigned size() const { return lanes ? lanes : thread_block::size(); }
  CC_MEMBER unsigned num_threads() const { return size(); }
  CC_MEMBER unsigned thread_rank() const { return lanes ? cc_thread_rank() % lanes : cc_thread_rank(); }
};
CC_DEVICE thread_group tiled_partition(const thread_group &, unsigned n) { return thread_group(n); }

template <unsigned N, class Parent = thread_block> struct thread_block_tile {
  static_assert(N <= CROSSCAST_WARP_SIZE && (N & (N - 1)) == 0, "a tile is a part of a warp: a power of two");
  CC_MEMBER operator thread_group() const { return thread_group(N); }
  CC_MEMBER static unsigned thread_rank() { return cc_thread_rank() % N; }
  CC_MEMBER static constexpr unsigned size() { return N; }
  CC_MEMBER static constexpr unsigned num_threads() { return N; }
  CC_MEMBER static unsigned meta_group_rank() { return cc_thread_rank() / N; }
  CC_MEMBER static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
  CC_LANE_MEMBER static void sync() { cc_tile_sync(N); }
  CC_LANE_MEMBER static int all(int predicate) { return cc_tile_all(predicate, N); }
  CC_LANE_MEMBER static int any(int predicate) { return cc_tile_any(predicate, N); }
  CC_LANE_MEMBER static cc_lanes ballot(int predicate) { return cc_tile_ballot(predicate, N); }
  template <class T> CC_LANE_MEMBER static T shfl(T x, int lane) { return cc_words_shfl(x, lane, N); }
  template <class T> CC_LANE_MEMBER static T shfl_up(T x, unsigned n) { return cc_words_shfl_up(x, n, N); }
  template <class T> CC_LANE_MEMBER static T shfl_down(T x, unsigned n) { return cc_words_shfl_down(x, n, N); }
  template <class T> CC_LANE_MEMBER static T shfl_xor(T x, unsigned n) { return cc_words_shfl_xor(x, n, N); }
  template <class T> CC_LANE_MEMBER static cc_lanes match_any(T x) { return cc_tile_match_any(x, N); }
};
template <unsigned N, class Parent> CC_DEVICE thread_block_tile<N, Parent> tiled_partition(const Parent &) {
  return {};
}

/* The lanes that are active together. */
struct coalesced_group {
  cc_lanes mask;
  CC_MEMBER unsigned size() const { return (unsigned)popcount(mask); }
  CC_MEMBER unsigned num_threads() const { return size(); }
  CC_MEMBER unsigned thread_rank() const {
    return (unsigned)popcount(mask & (((cc_lanes)1 << cc_thread_rank() % CROSSCAST_WARP_SIZE) - 1));
  }
  CC_LANE_MEMBER void sync() const { __syncwarp(mask); }
  CC_LANE_MEMBER int all(int predicate) const { return __all_sync(mask, predicate); }
  CC_LANE_MEMBER int any(int predicate) const { return __any_sync(mask, predicate); }
  template <class T> CC_LANE_MEMBER T shfl(T x, unsigned rank) const {
    cc_lanes left = mask;
    for (; rank; rank--) left &= left - 1;
    return __shfl_sync(mask, x, __builtin_ctzll(left));
  }
  template <class T> CC_LANE_MEMBER T shfl_up(T x, unsigned n) const {
    return shfl(x, thread_rank() < n ? thread_rank() : thread_rank() - n);
  }
  template <class T> CC_LANE_MEMBER T shfl_down(T x, unsigned n) const {
    return shfl(x, thread_rank() + n < size() ? thread_rank() + n : thread_rank());
  }
};
CC_DEVICE coalesced_group coalesced_threads() { return {__activemask()}; }
template <unsigned N, class P, class T> CC_DEVICE coalesced_group labeled_partition(const thread_block_tile<N, P> &, T x) {
  return {cc_tile_match_any(x, N) << cc_thread_rank() % CROSSCAST_WARP_SIZE / N * N};
}
template <class T> CC_DEVICE coalesced_group labeled_partition(const coalesced_group &group, T x) {
  return {__match_any_sync(group.mask, x)};
}
template <class Group> CC_DEVICE coalesced_group binary_partition(const Group &group, bool x) {
  return labeled_partition(group, (int)x);
}

struct grid_group {
  CC_LANE_MEMBER static void sync() { cc_refused_grid(); }
  CC_MEMBER static bool is_valid() { return false; }
  CC_MEMBER static dim3 dim_blocks() { return gridDim; }
  CC_MEMBER static dim3 block_index() { return blockIdx; }
  CC_MEMBER static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  CC_MEMBER static unsigned long long block_rank() {
    return blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  CC_MEMBER static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + cc_thread_rank();
  }
  CC_MEMBER static unsigned long long size() {
    return num_blocks() * thread_block::size();
  }
};
CC_DEVICE grid_group this_grid() { return {}; }

template <class Group> CC_DEVICE void sync(const Group &group) { group.sync(); }

/* Copies by a group, element by element, done at once. */
template <class Group, class T> CC_DEVICE void memcpy_async(const Group &group, T *to, const T *from, size_t nbytes) {
  for (size_t k = group.thread_rank(); k < nbytes / sizeof(T); k += group.size()) to[k] = from[k];
}
template <class Group, class T>
CC_DEVICE void memcpy_async(const Group &group, T *to, size_t most, const T *from, size_t count) {
  memcpy_async(group, to, from, (count < most ? count : most) * sizeof(T));
}
template <class Group> CC_DEVICE void wait(const Group &group) { group.sync(); }
template <unsigned stages, class Group> CC_DEVICE void wait_prior(const Group &group) { group.sync(); }

#define CC_OPERATOR(NAME, EXPRESSION) \
  template <class T> struct NAME { CC_MEMBER T operator()(T x, T y) const { return EXPRESSION; } };
CC_OPERATOR(plus, x + y) CC_OPERATOR(less, y < x ? y : x) CC_OPERATOR(greater, x < y ? y : x)
CC_OPERATOR(bit_and, x & y) CC_OPERATOR(bit_or, x | y) CC_OPERATOR(bit_xor, x ^ y)
#undef CC_OPERATOR
#define CC_REDUCE(OPERATOR, NAME)                                                                                    \
  template <unsigned N, class P, class T>                                                                            \
  CC_DEVICE auto reduce(const thread_block_tile<N, P> &, T x, const OPERATOR<T> &)->decltype(cc_tile_##NAME(x, N)) { \
    return cc_tile_##NAME(x, N);                                                                                     \
  }
CC_REDUCE(plus, add) CC_REDUCE(less, min) CC_REDUCE(greater, max)
CC_REDUCE(bit_and, and) CC_REDUCE(bit_or, or) CC_REDUCE(bit_xor, bitxor)
#undef CC_REDUCE
template <unsigned N, class P, class T, class F> CC_DEVICE T reduce(const thread_block_tile<N, P> &tile, T x, F f) {
  for (unsigned n = N / 2; n; n /= 2) x = f(x, tile.shfl_xor(x, n));
  return x;
}
template <class T, class F> CC_DEVICE T reduce(const coalesced_group &group, T x, F f) {
  for (unsigned n = 1; n < group.size(); n *= 2) {
    T y = group.shfl_down(x, n);
    if (group.thread_rank() + n < group.size()) x = f(x, y);
  }
  return group.shfl(x, 0);
}
template <unsigned N, class P, class T> CC_DEVICE T inclusive_scan(const thread_block_tile<N, P> &, T x) {
  return cc_tile_scan_add(x, N);
}
template <unsigned N, class P, class T> CC_DEVICE T exclusive_scan(const thread_block_tile<N, P> &, T x) {
  return cc_tile_scan_exclusive_add(x, N);
}
template <unsigned N, class P, class T>
CC_DEVICE auto inclusive_scan(const thread_block_tile<N, P> &, T x, const plus<T> &)->decltype(cc_tile_scan_add(x, N)) {
  return cc_tile_scan_add(x, N);
}
template <unsigned N, class P, class T>
CC_DEVICE auto exclusive_scan(const thread_block_tile<N, P> &, T x, const plus<T> &)->decltype(cc_tile_scan_add(x, N)) {
  return cc_tile_scan_exclusive_add(x, N);
}
template <unsigned N, class P, class T, class F>
CC_DEVICE T inclusive_scan(const thread_block_tile<N, P> &tile, T x, F f) {
  for (unsigned n = 1; n < N; n *= 2) {
    T y = tile.shfl_up(x, n);
    if (tile.thread_rank() >= n) x = f(y, x);
  }
  return x;
}
template <unsigned N, class P, class T, class F>
CC_DEVICE T exclusive_scan(const thread_block_tile<N, P> &tile, T x, F f) {
  x = tile.shfl_up(inclusive_scan(tile, x, f), 1);
  return tile.thread_rank() ? x : T();
}

}

#endif
