/* Of libcu++: atomics, and asynchronous copies, which are done at once. */
#ifndef CROSSCAST_LIBCU_H
#define CROSSCAST_LIBCU_H
#include "cooperative_groups.h"

namespace std {
enum memory_order {
  memory_order_relaxed, memory_order_consume, memory_order_acquire,
  memory_order_release, memory_order_acq_rel, memory_order_seq_cst
};
}
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
using ::std::memory_order;
using ::std::memory_order_relaxed; using ::std::memory_order_consume; using ::std::memory_order_acquire;
using ::std::memory_order_release; using ::std::memory_order_acq_rel; using ::std::memory_order_seq_cst;
CC_DEVICE void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) { __threadfence(); }

/* Operations on what at() points to; orders and scopes are all the same here. */
#define CC_ANY memory_order = memory_order_seq_cst
#define CC_FETCH(NAME, FUNCTION) CC_MEMBER T NAME(T x, CC_ANY) const { return FUNCTION(at(), x); }
#define CC_OPERATIONS                                                                                        \
  typedef T value_type;                                                                                      \
  CC_FETCH(fetch_add, atomicAdd) CC_FETCH(fetch_sub, atomicSub) CC_FETCH(fetch_and, atomicAnd)               \
  CC_FETCH(fetch_or, atomicOr) CC_FETCH(fetch_xor, atomicXor) CC_FETCH(fetch_min, atomicMin)                 \
  CC_FETCH(fetch_max, atomicMax) CC_FETCH(exchange, atomicExch)                                              \
  CC_MEMBER T load(CC_ANY) const { return *(volatile T *)at(); }                                             \
  CC_MEMBER void store(T x, CC_ANY) const { *(volatile T *)at() = x; }                                       \
  CC_MEMBER bool compare_exchange_strong(T &expected, T x, CC_ANY, CC_ANY) const {                           \
    T old = atomicCAS(at(), expected, x);                                                                    \
    bool is_done = old == expected;                                                                          \
    expected = old;                                                                                          \
    return is_done;                                                                                          \
  }                                                                                                          \
  CC_MEMBER bool compare_exchange_weak(T &expected, T x, CC_ANY, CC_ANY) const {                             \
    return compare_exchange_strong(expected, x);                                                             \
  }                                                                                                          \
  CC_MEMBER operator T() const { return load(); }                                                            \
  CC_MEMBER T operator+=(T x) const { return fetch_add(x) + x; }                                             \
  CC_MEMBER T operator-=(T x) const { return fetch_sub(x) - x; }                                             \
  CC_MEMBER T operator++() const { return fetch_add(1) + 1; }                                                \
  CC_MEMBER T operator++(int) const { return fetch_add(1); }                                                 \
  CC_MEMBER T operator--() const { return fetch_sub(1) - 1; }                                                \
  CC_MEMBER T operator--(int) const { return fetch_sub(1); }
template <class T, thread_scope scope = thread_scope_system> class atomic_ref {
  T *p;
  CC_MEMBER T *at() const { return p; }

 public:
  CC_MEMBER explicit atomic_ref(T &x) : p(&x) {}
  CC_MEMBER T operator=(T x) const { return store(x), x; }
  CC_OPERATIONS
};
template <class T, thread_scope scope = thread_scope_system> class atomic {
  mutable T value;
  CC_MEMBER T *at() const { return &value; }

 public:
  atomic() = default;
  atomic &operator=(const atomic &) = delete;
  CC_MEMBER constexpr atomic(T x) : value(x) {}
  CC_MEMBER T operator=(T x) { return store(x), x; }
  CC_OPERATIONS
};
#undef CC_OPERATIONS
#undef CC_FETCH
#undef CC_ANY
namespace std {
template <class T> using atomic_ref = ::cuda::atomic_ref<T>;
template <class T> using atomic = ::cuda::atomic<T>;
}

/* A barrier that all threads of the block reach. */
template <thread_scope scope> struct barrier {
  typedef int arrival_token;
  CC_MEMBER arrival_token arrive() const { return 0; }
  CC_MEMBER void wait(arrival_token) const { __syncthreads(); }
  CC_MEMBER void arrive_and_wait() const { __syncthreads(); }
  CC_MEMBER friend void init(barrier *, int) {}
};
template <thread_scope scope, unsigned stages> struct pipeline_shared_state {};
template <thread_scope scope> struct pipeline {
  CC_MEMBER void producer_acquire() const {}
  CC_MEMBER void producer_commit() const {}
  CC_MEMBER void consumer_wait() const {
    if constexpr (scope == thread_scope_thread) mem_fence(1);
    else __syncthreads();
  }
  CC_MEMBER void consumer_release() const {
    if constexpr (scope != thread_scope_thread) __syncthreads();
  }
};
CC_DEVICE pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope scope, unsigned stages>
CC_DEVICE pipeline<scope> make_pipeline(const Group &, pipeline_shared_state<scope, stages> *) { return {}; }
template <unsigned stages, thread_scope scope>
CC_DEVICE void pipeline_consumer_wait_prior(const pipeline<scope> &pipe) { pipe.consumer_wait(); }

template <size_t alignment> struct aligned_size_t {
  size_t value;
  CC_MEMBER constexpr explicit aligned_size_t(size_t n) : value(n) {}
  CC_MEMBER constexpr operator size_t() const { return value; }
};
/* Each access has the most bytes that the size allows. */
template <class T> CC_DEVICE void cc_copy_by(void *to, const void *from, size_t first, size_t step, size_t nbytes) {
  for (size_t k = first; k < nbytes / sizeof(T); k += step) ((T *)to)[k] = ((const T *)from)[k];
}
CC_DEVICE void cc_copy_all(void *to, const void *from, size_t first, size_t step, size_t nbytes) {
  if (nbytes % 16 == 0) cc_copy_by<int4>(to, from, first, step, nbytes);
  else if (nbytes % 8 == 0) cc_copy_by<int2>(to, from, first, step, nbytes);
  else if (nbytes % 4 == 0) cc_copy_by<int>(to, from, first, step, nbytes);
  else cc_copy_by<char>(to, from, first, step, nbytes);
}
template <class T, class Sync>
CC_DEVICE void memcpy_async(T *to, const T *from, size_t nbytes, Sync &) { cc_copy_all(to, from, 0, 1, nbytes); }
template <class Group, class T, class Sync>
CC_DEVICE void memcpy_async(const Group &group, T *to, const T *from, size_t nbytes, Sync &) {
  cc_copy_by<T>(to, from, group.thread_rank(), group.size(), nbytes);
}
}

#endif
