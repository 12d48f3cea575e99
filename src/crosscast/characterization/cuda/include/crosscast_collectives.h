/* Collectives of a warp and of a block, as in cub/cub.cuh and hipcub/hipcub.hpp: sums, scans, loads and stores.
 *
 * All take the way over warps: whatever algorithm is asked for, values are shuffled within warps, and one value
 * a warp passes through shared memory.
 */
#ifndef CROSSCAST_COLLECTIVES_H
#define CROSSCAST_COLLECTIVES_H

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE
};

struct Sum { template <class T> CC_MEMBER T operator()(const T &a, const T &b) const { return a + b; } };
struct Max { template <class T> CC_MEMBER T operator()(const T &a, const T &b) const { return a < b ? b : a; } };
struct Min { template <class T> CC_MEMBER T operator()(const T &a, const T &b) const { return b < a ? b : a; } };
template <class Key, class Value> struct KeyValuePair {
  Key key;
  Value value;
  KeyValuePair() = default;
  CC_MEMBER KeyValuePair(const Key &k, const Value &v) : key(k), value(v) {}
};
struct ArgMax {
  template <class T> CC_MEMBER T operator()(const T &a, const T &b) const {
    return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T> CC_MEMBER T operator()(const T &a, const T &b) const {
    return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
CC_DEVICE unsigned LaneId() { return cc_thread_rank() % CROSSCAST_WARP_SIZE; }
CC_DEVICE unsigned WarpId() { return cc_thread_rank() / CROSSCAST_WARP_SIZE; }

struct cc_none {};
template <int X, int Y, int Z> struct cc_threads {
  CC_MEMBER static unsigned rank() {
    unsigned rank = threadIdx.x;
    if constexpr (Y > 1 || Z > 1) rank += X * (threadIdx.y + Y * threadIdx.z);
    return rank;
  }
};

/* Values of a thread, of lanes up to the first `valid`, and of lanes up to each. */
template <class T, int n, class F> CC_DEVICE T cc_combined(T (&x)[n], F f) {
  T total = x[0];
#pragma unroll
  for (int k = 1; k < n; k++) total = f(total, x[k]);
  return total;
}
template <class T, class F> CC_LANE_MEMBER inline T cc_reduced(T x, F f, unsigned lane, int width, int valid) {
#pragma unroll
  for (int apart = 1; apart < width; apart *= 2) {
    T other = cc_words_shfl_down(x, apart, width);
    if ((int)lane + apart < valid) x = f(x, other);
  }
  return x;
}
template <class T, class F> CC_LANE_MEMBER inline T cc_scanned(T x, F f, unsigned lane, int width) {
#pragma unroll
  for (unsigned apart = 1; apart < width; apart *= 2) {
    T other = cc_words_shfl_up(x, apart, width);
    if (lane >= apart) x = f(other, x);
  }
  return x;
}

template <class T, int width = CROSSCAST_WARP_SIZE, int = 0> struct WarpReduce {
  typedef cc_none TempStorage;
  CC_MEMBER WarpReduce(TempStorage &) {}
  template <class F> CC_LANE_MEMBER T Reduce(T x, F f) { return Reduce(x, f, width); }
  template <class F> CC_LANE_MEMBER T Reduce(T x, F f, int valid) {
    return cc_reduced(x, f, cc_thread_rank() % width, width, valid);
  }
  CC_LANE_MEMBER T Sum(T x) { return Reduce(x, cub::Sum()); }
  CC_LANE_MEMBER T Sum(T x, int valid) { return Reduce(x, cub::Sum(), valid); }
};

/* What scans of a warp and of a block share: each is an inclusive scan, and the value before. */
template <class T, class Scan> struct cc_scans {
  CC_LANE_MEMBER void InclusiveSum(T x, T &out) { InclusiveScan(x, out, Sum()); }
  CC_LANE_MEMBER void InclusiveSum(T x, T &out, T &total) { InclusiveScan(x, out, Sum(), total); }
  CC_LANE_MEMBER void ExclusiveSum(T x, T &out) { ExclusiveScan(x, out, T(), Sum()); }
  CC_LANE_MEMBER void ExclusiveSum(T x, T &out, T &total) { ExclusiveScan(x, out, T(), Sum(), total); }
  template <class F> CC_LANE_MEMBER void InclusiveScan(T x, T &out, F f) {
    T total;
    InclusiveScan(x, out, f, total);
  }
  template <class F> CC_LANE_MEMBER void InclusiveScan(T x, T &out, F f, T &total) {
    T before;
    self().scan(x, f, out, before, total);
  }
  template <class F> CC_LANE_MEMBER void ExclusiveScan(T x, T &out, F f) {
    T within, total;
    self().scan(x, f, within, out, total);
  }
  template <class F> CC_LANE_MEMBER void ExclusiveScan(T x, T &out, T first, F f) {
    T total;
    ExclusiveScan(x, out, first, f, total);
  }
  template <class F> CC_LANE_MEMBER void ExclusiveScan(T x, T &out, T first, F f, T &total) {
    T within, before;
    out = self().scan(x, f, within, before, total) ? f(first, before) : first;
  }
  CC_LANE_MEMBER Scan &self() { return *static_cast<Scan *>(this); }
};

template <class T, int width = CROSSCAST_WARP_SIZE, int = 0>
struct WarpScan : cc_scans<T, WarpScan<T, width, 0>> {
  typedef cc_none TempStorage;
  CC_MEMBER WarpScan(TempStorage &) {}
  CC_LANE_MEMBER T Broadcast(T x, unsigned lane) { return cc_words_shfl(x, lane, width); }
  template <class F> CC_LANE_MEMBER bool scan(T x, F f, T &within, T &before, T &total) {
    unsigned lane = cc_thread_rank() % width;
    within = cc_scanned(x, f, lane, width);
    before = cc_words_shfl_up(within, 1, width);
    total = cc_words_shfl(within, width - 1, width);
    return lane > 0;
  }
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
struct BlockReduce {
  typedef cc_threads<X, Y, Z> Threads;
  static const int count = X * Y * Z, width = CROSSCAST_WARP_SIZE, warps = (count + width - 1) / width;
  struct TempStorage { T of_warps[warps]; };
  TempStorage &shared;
  CC_MEMBER BlockReduce(TempStorage &shared) : shared(shared) {}
  template <class F> CC_LANE_MEMBER T Reduce(T x, F f, int valid) {
    unsigned rank = Threads::rank(), lane = rank % width;
    x = cc_reduced(x, f, lane, width, valid - (int)(rank - lane));
    if (lane == 0) shared.of_warps[rank / width] = x;
    __syncthreads();
    if (rank == 0) {
#pragma unroll
      for (int warp = 1; warp < warps; warp++)
        if (warp * width < valid) x = f(x, shared.of_warps[warp]);
    }
    return x;
  }
  template <class F> CC_LANE_MEMBER T Reduce(T x, F f) { return Reduce(x, f, count); }
  template <int n, class F> CC_LANE_MEMBER T Reduce(T (&x)[n], F f) { return Reduce(cc_combined(x, f), f); }
  CC_LANE_MEMBER T Sum(T x) { return Reduce(x, cub::Sum()); }
  CC_LANE_MEMBER T Sum(T x, int valid) { return Reduce(x, cub::Sum(), valid); }
  template <int n> CC_LANE_MEMBER T Sum(T (&x)[n]) { return Reduce(x, cub::Sum()); }
};

template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
struct BlockScan : cc_scans<T, BlockScan<T, X, A, Y, Z, 0>> {
  typedef cc_scans<T, BlockScan<T, X, A, Y, Z, 0>> Scans;
  typedef cc_threads<X, Y, Z> Threads;
  static const int count = X * Y * Z, width = CROSSCAST_WARP_SIZE, warps = (count + width - 1) / width;
  struct TempStorage { T of_warps[warps]; };
  TempStorage &shared;
  CC_MEMBER BlockScan(TempStorage &shared) : shared(shared) {}
  template <class F> CC_LANE_MEMBER bool scan(T x, F f, T &within, T &before, T &total) {
    unsigned rank = Threads::rank(), lane = rank % width, own = rank / width;
    within = cc_scanned(x, f, lane, width);
    before = cc_words_shfl_up(within, 1, width);
    if (lane == width - 1 || rank == count - 1) shared.of_warps[own] = within;
    __syncthreads();
    T ahead = shared.of_warps[0];
    total = ahead;
#pragma unroll
    for (unsigned warp = 1; warp < warps; warp++) {
      if (warp == own) ahead = total;
      total = f(total, shared.of_warps[warp]);
    }
    if (own > 0) {
      within = f(ahead, within);
      before = lane ? f(ahead, before) : ahead;
    }
    return rank > 0;
  }
  using Scans::InclusiveSum, Scans::ExclusiveSum, Scans::InclusiveScan, Scans::ExclusiveScan;
  template <int n> CC_LANE_MEMBER void InclusiveSum(T (&x)[n], T (&out)[n]) { InclusiveScan(x, out, Sum()); }
  template <int n> CC_LANE_MEMBER void InclusiveSum(T (&x)[n], T (&out)[n], T &total) {
    InclusiveScan(x, out, Sum(), total);
  }
  template <int n> CC_LANE_MEMBER void ExclusiveSum(T (&x)[n], T (&out)[n]) { ExclusiveScan(x, out, T(), Sum()); }
  template <int n> CC_LANE_MEMBER void ExclusiveSum(T (&x)[n], T (&out)[n], T &total) {
    ExclusiveScan(x, out, T(), Sum(), total);
  }
  template <int n, class F> CC_LANE_MEMBER void InclusiveScan(T (&x)[n], T (&out)[n], F f) {
    T total;
    InclusiveScan(x, out, f, total);
  }
  template <int n, class F> CC_LANE_MEMBER void InclusiveScan(T (&x)[n], T (&out)[n], F f, T &total) {
    T within, before;
    bool follows = scan(cc_combined(x, f), f, within, before, total);
#pragma unroll
    for (int k = 0; k < n; k++) {
      before = k || follows ? f(before, x[k]) : x[k];
      out[k] = before;
    }
  }
  template <int n, class F> CC_LANE_MEMBER void ExclusiveScan(T (&x)[n], T (&out)[n], T first, F f) {
    T total;
    ExclusiveScan(x, out, first, f, total);
  }
  template <int n, class F> CC_LANE_MEMBER void ExclusiveScan(T (&x)[n], T (&out)[n], T first, F f, T &total) {
    T within, before;
    before = scan(cc_combined(x, f), f, within, before, total) ? f(first, before) : first;
#pragma unroll
    for (int k = 0; k < n; k++) {
      T next = f(before, x[k]);
      out[k] = before;
      before = next;
    }
  }
};

/* Items of threads: consecutive ones of each, or striped, one of each thread in turn. */
template <class T, class Threads, int threads, int n> struct cc_items {
  struct TempStorage { T items[threads * n]; };
  template <bool striped> CC_LANE_MEMBER static int of(int k) {
    return striped ? k * threads + Threads::rank() : Threads::rank() * n + k;
  }
  template <bool striped> CC_LANE_MEMBER static void put(T *shared, T (&x)[n]) {
#pragma unroll
    for (int k = 0; k < n; k++) shared[of<striped>(k)] = x[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < n; k++) x[k] = shared[of<!striped>(k)];
  }
};

template <class T, int X, int n, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockLoad {
  static const bool moved = A >= BLOCK_LOAD_TRANSPOSE, striped = moved || A == BLOCK_LOAD_STRIPED;
  typedef cc_items<T, cc_threads<X, Y, Z>, X * Y * Z, n> Items;
  typedef typename Items::TempStorage TempStorage;
  TempStorage &shared;
  CC_MEMBER BlockLoad(TempStorage &shared) : shared(shared) {}
  template <class From> CC_LANE_MEMBER void Load(From from, T (&x)[n]) { Load(from, x, X * Y * Z * n); }
  template <class From> CC_LANE_MEMBER void Load(From from, T (&x)[n], int valid) {
#pragma unroll
    for (int k = 0; k < n; k++)
      if (int item = Items::template of<striped>(k); item < valid) x[k] = from[item];
    if constexpr (moved) Items::template put<true>(shared.items, x);
  }
  template <class From, class D> CC_LANE_MEMBER void Load(From from, T (&x)[n], int valid, D other) {
#pragma unroll
    for (int k = 0; k < n; k++) x[k] = other;
    Load(from, x, valid);
  }
};

template <class T, int X, int n, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockStore {
  static const bool moved = A >= BLOCK_STORE_TRANSPOSE, striped = moved || A == BLOCK_STORE_STRIPED;
  typedef cc_items<T, cc_threads<X, Y, Z>, X * Y * Z, n> Items;
  typedef typename Items::TempStorage TempStorage;
  TempStorage &shared;
  CC_MEMBER BlockStore(TempStorage &shared) : shared(shared) {}
  template <class To> CC_LANE_MEMBER void Store(To to, T (&x)[n]) { Store(to, x, X * Y * Z * n); }
  template <class To> CC_LANE_MEMBER void Store(To to, T (&x)[n], int valid) {
    if constexpr (moved) Items::template put<false>(shared.items, x);
#pragma unroll
    for (int k = 0; k < n; k++)
      if (int item = Items::template of<striped>(k); item < valid) to[item] = x[k];
  }
};

}
namespace hipcub = cub;

#endif
