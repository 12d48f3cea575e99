/* Operations on the bytes or halves of a word, and least and greatest of sums: a few instructions each, as on devices.
 *
 * Sums, least and greatest of halves are those of vectors of two, which some devices do at once. HIGH has the highest
 * bit of each part and LOW the lowest; SPREAD copies highest bits to whole parts.
 */
#ifndef CROSSCAST_WORDS_H
#define CROSSCAST_WORDS_H

CC_PURE unsigned cc_vabsdiffu4(unsigned, unsigned);
CC_PURE unsigned cc_vsadu4(unsigned, unsigned, unsigned);

#define CC_WORD(NAME, EXPRESSION) CC_INLINE unsigned NAME(unsigned x) { return EXPRESSION; }
#define CC_WORDS(NAME, EXPRESSION) CC_INLINE unsigned NAME(unsigned x, unsigned y) { return EXPRESSION; }
#define CC_COMPARISON(NAME, N, HIGH, SPREAD, BITS)         \
  CC_WORDS(cc_is_##NAME##N, (BITS) & HIGH)                 \
  CC_WORDS(__vcmp##NAME##N, cc_byte_perm(BITS, 0, SPREAD)) \
  CC_WORDS(__vset##NAME##N, cc_is_##NAME##N(x, y) >> (32 / N - 1))
/* The difference of the parts without their highest bits, plus a highest bit: it is left where nothing is borrowed. */
#define CC_REST(HIGH) ((x | HIGH) - (y & ~HIGH))
#define CC_ORDER(SIGN, N, HIGH, SPREAD, GREATER)                                                            \
  CC_COMPARISON(ge##SIGN, N, HIGH, SPREAD, (GREATER) | (~(x ^ y) & CC_REST(HIGH)))                          \
  CC_COMPARISON(lt##SIGN, N, HIGH, SPREAD, ~((GREATER) | (~(x ^ y) & CC_REST(HIGH))))                       \
  CC_WORDS(__vcmple##SIGN##N, __vcmpge##SIGN##N(y, x)) CC_WORDS(__vsetle##SIGN##N, __vsetge##SIGN##N(y, x)) \
  CC_WORDS(__vcmpgt##SIGN##N, __vcmplt##SIGN##N(y, x)) CC_WORDS(__vsetgt##SIGN##N, __vsetlt##SIGN##N(y, x))

/* A sum that leaves its range is the end of it: `OVER` has the highest bit of such parts. */
#define CC_SATURATED(NAME, N, HIGH, SPREAD, SUM, OVER)        \
  CC_INLINE unsigned NAME(unsigned x, unsigned y) {           \
    unsigned sum = SUM, over = cc_byte_perm(OVER, 0, SPREAD); \
    unsigned end = ~HIGH + ((x & HIGH) >> (32 / N - 1));      \
    return (sum & ~over) | (end & over);                      \
  }
#define CC_EACH_PART(N, HIGH, LOW, SPREAD)                                          \
  CC_WORD(__vneg##N, __vsub##N(0, x))                                               \
  CC_COMPARISON(ne, N, HIGH, SPREAD, (((x ^ y) & ~HIGH) + ~HIGH) | (x ^ y))         \
  CC_COMPARISON(eq, N, HIGH, SPREAD, ~((((x ^ y) & ~HIGH) + ~HIGH) | (x ^ y)))      \
  CC_ORDER(u, N, HIGH, SPREAD, x & ~y)                                              \
  CC_ORDER(s, N, HIGH, SPREAD, ~x & y)                                              \
  CC_SATURATED(__vaddss##N, N, HIGH, SPREAD, __vadd##N(x, y), ~(x ^ y) & (x ^ sum)) \
  CC_SATURATED(__vsubss##N, N, HIGH, SPREAD, __vsub##N(x, y), (x ^ y) & (x ^ sum))  \
  CC_WORD(__vnegss##N, __vsubss##N(0, x))                                           \
  CC_INLINE unsigned __vaddus##N(unsigned x, unsigned y) {                          \
    unsigned sum = __vadd##N(x, y);                                                 \
    return sum | cc_byte_perm((x & y) | ((x | y) & ~sum), 0, SPREAD);               \
  }                                                                                 \
  CC_WORDS(__vsubus##N, __vsub##N(x, y) & __vcmpgeu##N(x, y))                       \
  CC_INLINE unsigned __vabs##N(unsigned x) {                                        \
    unsigned sign = cc_byte_perm(x, 0, SPREAD);                                     \
    return (x ^ sign) + (sign & LOW);                                               \
  }                                                                                 \
  CC_INLINE unsigned __vabsss##N(unsigned x) {                                      \
    unsigned value = __vabs##N(x);                                                  \
    return value - ((value & HIGH) >> (32 / N - 1));                                \
  }                                                                                 \
  CC_WORDS(__vhaddu##N, (x & y) + (((x ^ y) & ~LOW) >> 1))                          \
  CC_WORDS(__vavgu##N, (x | y) - (((x ^ y) & ~LOW) >> 1))

#define CC_HALVES(NAME, T, EXPRESSION)                                                    \
  CC_INLINE unsigned NAME(unsigned first, unsigned second) {                              \
    typedef T vector __attribute__((ext_vector_type(2)));                                 \
    vector x = __builtin_bit_cast(vector, first), y = __builtin_bit_cast(vector, second); \
    return __builtin_bit_cast(unsigned, EXPRESSION);                                      \
  }
CC_HALVES(__vadd2, unsigned short, x + y)
CC_HALVES(__vsub2, unsigned short, x - y)
CC_HALVES(__vmaxs2, short, __builtin_elementwise_max(x, y))
CC_HALVES(__vmins2, short, __builtin_elementwise_min(x, y))
CC_HALVES(__vmaxu2, unsigned short, __builtin_elementwise_max(x, y))
CC_HALVES(__vminu2, unsigned short, __builtin_elementwise_min(x, y))
#undef CC_HALVES
#define CC_BYTES 0x80808080u
CC_WORDS(__vadd4, ((x & ~CC_BYTES) + (y & ~CC_BYTES)) ^ ((x ^ y) & CC_BYTES))
CC_WORDS(__vsub4, CC_REST(CC_BYTES) ^ (~(x ^ y) & CC_BYTES))

CC_EACH_PART(4, CC_BYTES, 0x01010101u, 0xba98)
CC_EACH_PART(2, 0x80008000u, 0x00010001u, 0xbb99)
CC_INLINE unsigned cc_chosen(unsigned x, unsigned y, unsigned mask) { return (x & mask) | (y & ~mask); }
CC_WORDS(__vmaxs4, cc_chosen(x, y, __vcmpges4(x, y)))
CC_WORDS(__vmins4, cc_chosen(x, y, __vcmplts4(x, y)))
CC_WORDS(__vmaxu4, cc_chosen(x, y, __vcmpgeu4(x, y)))
CC_WORDS(__vminu4, cc_chosen(x, y, __vcmpltu4(x, y)))
CC_WORDS(__vabsdiffu4, cc_vabsdiffu4(x, y))
CC_WORDS(__vabsdiffs4, cc_vabsdiffu4(x ^ CC_BYTES, y ^ CC_BYTES))
CC_WORDS(__vsadu4, cc_vsadu4(x, y, 0))
CC_WORDS(__vsads4, cc_vsadu4(x ^ CC_BYTES, y ^ CC_BYTES, 0))
CC_WORDS(__vabsdiffu2, __vsub2(__vmaxu2(x, y), __vminu2(x, y)))
CC_WORDS(__vabsdiffs2, __vsub2(__vmaxs2(x, y), __vmins2(x, y)))
CC_INLINE unsigned cc_sum2(unsigned x) { return (x & 0xffff) + (x >> 16); }
CC_WORDS(__vsadu2, cc_sum2(__vabsdiffu2(x, y)))
CC_WORDS(__vsads2, cc_sum2(__vabsdiffs2(x, y)))
#undef CC_BYTES
#undef CC_EACH_PART
#undef CC_SATURATED
#undef CC_ORDER
#undef CC_REST
#undef CC_COMPARISON
#undef CC_WORDS
#undef CC_WORD

/* Least and greatest of three, of sums, and with zero (DPX). */
#define CC_BOUNDS(T, TYPE, MIN, MAX, ADD)                                    \
  CC_INLINE T __vimax3_##TYPE(T x, T y, T z) { return MAX(MAX(x, y), z); }   \
  CC_INLINE T __vimin3_##TYPE(T x, T y, T z) { return MIN(MIN(x, y), z); }   \
  CC_INLINE T __viaddmax_##TYPE(T x, T y, T z) { return MAX(ADD(x, y), z); } \
  CC_INLINE T __viaddmin_##TYPE(T x, T y, T z) { return MIN(ADD(x, y), z); }
#define CC_RELU(T, TYPE, MIN, MAX)                                                                   \
  CC_INLINE T __vimax_##TYPE##_relu(T x, T y) { return MAX(MAX(x, y), 0); }                          \
  CC_INLINE T __vimin_##TYPE##_relu(T x, T y) { return MAX(MIN(x, y), 0); }                          \
  CC_INLINE T __vimax3_##TYPE##_relu(T x, T y, T z) { return MAX(__vimax3_##TYPE(x, y, z), 0); }     \
  CC_INLINE T __vimin3_##TYPE##_relu(T x, T y, T z) { return MAX(__vimin3_##TYPE(x, y, z), 0); }     \
  CC_INLINE T __viaddmax_##TYPE##_relu(T x, T y, T z) { return MAX(__viaddmax_##TYPE(x, y, z), 0); } \
  CC_INLINE T __viaddmin_##TYPE##_relu(T x, T y, T z) { return MAX(__viaddmin_##TYPE(x, y, z), 0); }
CC_INLINE int cc_wrapped_sum(int x, int y) { return (int)((unsigned)x + (unsigned)y); }
CC_BOUNDS(int, s32, min, max, cc_wrapped_sum) CC_BOUNDS(unsigned, u32, min, max, cc_wrapped_sum)
CC_BOUNDS(unsigned, s16x2, __vmins2, __vmaxs2, __vadd2) CC_BOUNDS(unsigned, u16x2, __vminu2, __vmaxu2, __vadd2)
CC_RELU(int, s32, min, max) CC_RELU(unsigned, s16x2, __vmins2, __vmaxs2)
#undef CC_RELU
#undef CC_BOUNDS
#define CC_CHOSEN(T, TYPE, NAME, OPERATOR) \
  CC_INLINE T __vib##NAME##_##TYPE(T x, T y, bool *first) { return *first = x OPERATOR y, NAME(x, y); }
CC_CHOSEN(int, s32, max, >=) CC_CHOSEN(int, s32, min, <=)
CC_CHOSEN(unsigned, u32, max, >=) CC_CHOSEN(unsigned, u32, min, <=)
#undef CC_CHOSEN
#define CC_CHOSEN(SIGN, NAME, ORDER)                                                                         \
  CC_INLINE unsigned __vib##NAME##_##SIGN##16x2(unsigned x, unsigned y, bool *first_high, bool *first_low) { \
    unsigned first = __vcmp##ORDER##SIGN##2(x, y);                                                           \
    *first_high = first >> 31, *first_low = first & 1;                                                       \
    return cc_chosen(x, y, first);                                                                           \
  }
CC_CHOSEN(s, max, ge) CC_CHOSEN(s, min, le) CC_CHOSEN(u, max, ge) CC_CHOSEN(u, min, le)
#undef CC_CHOSEN

/* The position of the so-many-th set bit from a position on, upwards or downwards, or all ones. */
CC_INLINE unsigned __fns(unsigned mask, unsigned base, int offset) {
  int left = offset < 0 ? -offset : offset, step = offset < 0 ? -1 : 1;
  if (offset == 0) return mask >> (base & 31) & 1 ? base : ~0u;
  for (unsigned k = base; k < 32; k += step)
    if ((mask >> k & 1) && --left == 0) return k;
  return ~0u;
}

#endif
