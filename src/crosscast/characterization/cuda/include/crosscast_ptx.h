/* What instructions of inline PTX do that C++ has no expression for (ptx.py). */
#ifndef CROSSCAST_PTX_H
#define CROSSCAST_PTX_H

CC_PURE float native_exp2(float);
/* An address of 32 bits in shared memory. */
CC_PURE __attribute__((address_space(3))) char *cc_shared(unsigned);

/* A register as another type: its bits, but for whole numbers and what is of another size. */
template <class To, class From> CC_DEVICE To cc_bits(From x) {
  const bool whole = (__is_integral(To) || __is_pointer(To)) && (__is_integral(From) || __is_pointer(From));
  if constexpr (whole || sizeof(To) != sizeof(From)) return (To)x;
  else return __builtin_bit_cast(To, x);
}
CC_INLINE unsigned cc_zeros(unsigned x) { return (unsigned)clz((int)x); }
CC_INLINE unsigned cc_zeros(unsigned long x) { return (unsigned)clz((long)x); }
template <class T> CC_INLINE T cc_shifted_left(T x, unsigned n) { return n < 8 * sizeof(T) ? x << n : 0; }
template <class T> CC_INLINE T cc_shifted_right(T x, unsigned n) {
  return n < 8 * sizeof(T) ? x >> n : x >> (8 * sizeof(T) - 1) >> 1;
}
/* Sums and differences that take a carry, and leave one to the next, of this asm or another (adapt.py). */
CC_CONVERGENT void cc_leave_carry(bool);
CC_CONVERGENT bool cc_take_carry();
template <bool takes, bool leaves, class T> CC_DEVICE T cc_more(T x, T y) {
  T carry = takes ? cc_take_carry() : 0, sum = x + y, all = sum + carry;
  if (leaves) cc_leave_carry(takes ? sum < x || all < sum : all < x);
  return all;
}
template <bool takes, bool leaves, class T> CC_DEVICE T cc_less(T x, T y) {
  T borrow = takes ? cc_take_carry() : 0, rest = x - y, all = rest - borrow;
  if (leaves) cc_leave_carry(takes ? x < y || rest < borrow : x < y);
  return all;
}
/* Bits from a position on, as a number; they end where the word does, whose last bit is the sign then. */
template <class T> CC_INLINE T cc_field(T x, unsigned at, unsigned n) {
  const unsigned bits = 8 * sizeof(T);
  at &= 255, n &= 255;
  if (n == 0) return 0;
  x = cc_shifted_right(x, at);
  return at + n >= bits || n >= bits ? x : (T)(x << (bits - n)) >> (bits - n);
}
template <class T> CC_INLINE T cc_with_field(T field, T x, unsigned at, unsigned n) {
  T mask = cc_shifted_left((T)(cc_shifted_left((T)1, n & 255) - 1), at & 255);
  return (x & ~mask) | (cc_shifted_left(field, at & 255) & mask);
}
/* A function of three bits by its table; of two by half of it. */
CC_INLINE unsigned cc_logic(unsigned x, unsigned y, unsigned table) {
  unsigned odd = table & 1 ? (table & 2 ? ~0u : ~y) : (table & 2 ? y : 0);
  unsigned even = table & 4 ? (table & 8 ? ~0u : ~y) : (table & 8 ? y : 0);
  return odd ^ (x & (odd ^ even));
}
CC_INLINE unsigned cc_logic(unsigned x, unsigned y, unsigned z, unsigned table) {
  return cc_logic(y, z, table) ^ (x & cc_logic(y, z, table ^ table >> 4));
}

#endif
