/* Atomic functions: `atomic_*` and `atom_*` of OpenCL C 1.x, the C11 ones of 2.0 and 3.0.
 *
 * The functions of OpenCL C 1.x promise no order, the C11 ones are sequentially consistent, which is the most that a
 * call may ask for. So what they say of order and scope (REST) is left aside.
 */
#pragma once
#include "values.h"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)

/* On memory that other threads may use at the same time. A is the type of an atomic T. */
template <class T, memory_order ORDER> struct shared {
#define ON_OBJECT(RESULT, NAME, CLANG, ...)                                                        \
  template <class A, class... Rest> static RESULT NAME(A *object __VA_OPT__(, T value), Rest...) { \
    return CLANG(object, __VA_OPT__(value, ) ORDER, memory_scope_all_svm_devices);                 \
  }
  ON_OBJECT(T, load, __opencl_atomic_load)
  ON_OBJECT(void, store, __opencl_atomic_store, value)
  ON_OBJECT(T, exchange, __opencl_atomic_exchange, value)
  ON_OBJECT(T, fetch_add, __opencl_atomic_fetch_add, value)
  ON_OBJECT(T, fetch_sub, __opencl_atomic_fetch_sub, value)
  ON_OBJECT(T, fetch_and, __opencl_atomic_fetch_and, value)
  ON_OBJECT(T, fetch_or, __opencl_atomic_fetch_or, value)
  ON_OBJECT(T, fetch_xor, __opencl_atomic_fetch_xor, value)
  ON_OBJECT(T, fetch_min, __opencl_atomic_fetch_min, value)
  ON_OBJECT(T, fetch_max, __opencl_atomic_fetch_max, value)
#undef ON_OBJECT
  template <class A> static void init(A *object, T value) { __opencl_atomic_init(object, value); }
  template <class A, class E, class... Rest> static bool compare_exchange(A *object, E *expected, T value, Rest...) {
    return __opencl_atomic_compare_exchange_strong(object, expected, value, ORDER, ORDER,
                                                   memory_scope_all_svm_devices);
  }
};

/* On memory of one work-group, which runs on one thread, or of one work-item. */
template <class T, memory_order> struct own {
  template <class A, class... Rest> static T load(A *object, Rest...) { return *object; }
  template <class A, class... Rest> static void store(A *object, T value, Rest...) { *object = value; }
  template <class A> static void init(A *object, T value) { *object = value; }
#define UPDATE(NAME, NEW)                                                        \
  template <class A, class... Rest> static T NAME(A *object, T value, Rest...) { \
    T old = *object;                                                             \
    *object = NEW;                                                               \
    return old;                                                                  \
  }
  UPDATE(exchange, value) UPDATE(fetch_and, old & value) UPDATE(fetch_or, old | value)
  UPDATE(fetch_xor, old ^ value) UPDATE(fetch_min, value < old ? value : old)
  UPDATE(fetch_max, value > old ? value : old)
  UPDATE(fetch_add, (T)(wrapping(old) + wrapping(value))) UPDATE(fetch_sub, (T)(wrapping(old) - wrapping(value)))
#undef UPDATE
  /* The bits decide, as in hardware: a NaN equals itself. */
  template <class A, class E, class... Rest> static bool compare_exchange(A *object, E *expected, T value, Rest...) {
    T old = *object;
    bool equal = as<uints<T>>(old) == as<uints<T>>((T)*expected);
    if (equal) *object = value;
    else *expected = old;
    return equal;
  }
  /* Signed sums wrap around in atomics but are undefined in C. */
  static auto wrapping(T x) {
    if constexpr (__is_integral(T)) return as<uints<T>>(x);
    else return x;
  }
};

/* And what follows from those. */
template <template <class, memory_order> class MEMORY, class T, memory_order ORDER> struct atomic : MEMORY<T, ORDER> {
  using memory = MEMORY<T, ORDER>;
  template <class A> static T fetch_inc(A *object) { return memory::fetch_add(object, 1); }
  template <class A> static T fetch_dec(A *object) { return memory::fetch_sub(object, 1); }
  template <class A> static T cmpxchg(A *object, T expected, T value) {
    memory::compare_exchange(object, &expected, value);
    return expected;
  }
  template <class A, class... Rest> static bool flag_test_and_set(A *object, Rest...) {
    return memory::exchange(object, 1) != 0;
  }
  template <class A, class... Rest> static void flag_clear(A *object, Rest...) { memory::store(object, 0); }
};
#pragma clang attribute pop
