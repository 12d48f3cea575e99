/* Random numbers of threads, as in curand_kernel.h and hiprand_kernel.h: XORWOW and Philox.
 *
 * Philox has cuRAND's numbers. XORWOW has them for the subsequence and offset 0; to others it jumps by a hash
 * of theirs, where cuRAND multiplies by a matrix, thousands of instructions for each digit.
 */
#ifndef CROSSCAST_RANDOM_H
#define CROSSCAST_RANDOM_H

/* Of the sizes that these have there, 48 and 64 bytes; normal numbers come in pairs. */
struct curandStateXORWOW {
  unsigned d, v[5];
  int has_normal, has_wide_normal;
  float normal;
  double wide_normal;
};
struct curandStatePhilox4_32_10 {
  uint4 counter, output;
  uint2 key;
  unsigned next;
  int has_normal, has_wide_normal;
  float normal;
  double wide_normal;
};
typedef curandStateXORWOW curandState, curandState_t, curandStateXORWOW_t;
typedef curandStateXORWOW hiprandState, hiprandState_t, hiprandStateXORWOW_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t, hiprandStatePhilox4_32_10_t;

/* Marsaglia, Xorshift RNGs, 2003. */
CC_DEVICE unsigned curand(curandStateXORWOW *state) {
  unsigned *v = state->v, t = v[0] ^ (v[0] >> 2);
  v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
  v[4] = v[4] ^ (v[4] << 4) ^ t ^ (t << 1);
  return v[4] + (state->d += 362437);
}
CC_DEVICE void curand_init(
    unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStateXORWOW *state) {
  unsigned long long jump = subsequence * 0x9e3779b97f4a7c15ull + offset * 0xbf58476d1ce4e5b9ull;
  jump ^= jump >> 31;
  unsigned low = 1099087573u * ((unsigned)seed ^ 0xaad26b49u ^ (unsigned)jump);
  unsigned high = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu ^ (unsigned)(jump >> 32));
  *state = {6615241u + high + low,
            {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low}};
}

/* Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011. */
CC_DEVICE uint4 curand_Philox4x32_10(uint4 c, uint2 k) {
#pragma unroll
  for (int round = 0; round < 10; round++) {
    unsigned long long even = 0xd2511f53ull * c.x, odd = 0xcd9e8d57ull * c.z;
    c = {(unsigned)(odd >> 32) ^ c.y ^ k.x, (unsigned)odd, (unsigned)(even >> 32) ^ c.w ^ k.y, (unsigned)even};
    k = {k.x + 0x9e3779b9u, k.y + 0xbb67ae85u};
  }
  return c;
}
CC_DEVICE void cc_philox_step(curandStatePhilox4_32_10 *state, unsigned long long n) {
  uint4 &c = state->counter;
  unsigned long long low = c.x | (unsigned long long)c.y << 32, high = c.z | (unsigned long long)c.w << 32;
  high += low + n < low;
  low += n;
  c = {(unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32)};
}
CC_DEVICE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                           curandStatePhilox4_32_10 *state) {
  state->key = {(unsigned)seed, (unsigned)(seed >> 32)};
  state->counter = {0, 0, (unsigned)subsequence, (unsigned)(subsequence >> 32)};
  cc_philox_step(state, offset / 4);
  state->next = offset % 4;
  state->has_normal = state->has_wide_normal = 0;
  state->output = curand_Philox4x32_10(state->counter, state->key);
}
CC_DEVICE uint4 curand4(curandStatePhilox4_32_10 *state) {
  uint4 a = state->output;
  cc_philox_step(state, 1);
  uint4 b = state->output = curand_Philox4x32_10(state->counter, state->key);
  switch (state->next) {
    case 1: return {a.y, a.z, a.w, b.x};
    case 2: return {a.z, a.w, b.x, b.y};
    case 3: return {a.w, b.x, b.y, b.z};
  }
  return a;
}
CC_DEVICE unsigned curand(curandStatePhilox4_32_10 *state) {
  uint4 o = state->output;
  unsigned drawn = state->next == 0 ? o.x : state->next == 1 ? o.y : state->next == 2 ? o.z : o.w;
  if (++state->next == 4) {
    cc_philox_step(state, 1);
    state->output = curand_Philox4x32_10(state->counter, state->key);
    state->next = 0;
  }
  return drawn;
}

CC_DEVICE float cc_uniform(unsigned x) { return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
CC_DEVICE double cc_uniform(unsigned x, unsigned y) {
  return ((unsigned long long)x ^ ((unsigned long long)y << 21)) * 0x1p-53 + 0x1p-54;
}
CC_DEVICE float2 cc_box_muller(unsigned x, unsigned y) {
  float angle = y * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f / 2.0f * 6.2831855f);
  float radius = sqrtf(-2.0f * logf(cc_uniform(x)));
  float2 pair;
  sincosf(angle, &pair.x, &pair.y);
  return {radius * pair.x, radius * pair.y};
}

template <class S> CC_DEVICE float curand_uniform(S *state) { return cc_uniform(curand(state)); }
template <class S> CC_DEVICE double curand_uniform_double(S *state) {
  unsigned x = curand(state), y = curand(state);
  return cc_uniform(x, y);
}
template <class S> CC_DEVICE float2 curand_normal2(S *state) {
  unsigned x = curand(state), y = curand(state);
  return cc_box_muller(x, y);
}
template <class S> CC_DEVICE double2 curand_normal2_double(S *state) {
  double radius = sqrt(-2.0 * log(curand_uniform_double(state)));
  double2 pair;
  sincospi(2.0 * curand_uniform_double(state), &pair.x, &pair.y);
  return {radius * pair.x, radius * pair.y};
}
template <class S> CC_DEVICE double curand_normal_double(S *state) {
  state->has_wide_normal = !state->has_wide_normal;
  if (!state->has_wide_normal) return state->wide_normal;
  double2 pair = curand_normal2_double(state);
  state->wide_normal = pair.y;
  return pair.x;
}
template <class S> CC_DEVICE float curand_normal(S *state) {
  state->has_normal = !state->has_normal;
  if (!state->has_normal) return state->normal;
  float2 pair = curand_normal2(state);
  state->normal = pair.y;
  return pair.x;
}
template <class S> CC_DEVICE float curand_log_normal(S *state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
CC_DEVICE float4 curand_uniform4(curandStatePhilox4_32_10 *state) {
  uint4 x = curand4(state);
  return {cc_uniform(x.x), cc_uniform(x.y), cc_uniform(x.z), cc_uniform(x.w)};
}
CC_DEVICE float4 curand_normal4(curandStatePhilox4_32_10 *state) {
  uint4 x = curand4(state);
  float2 a = cc_box_muller(x.x, x.y), b = cc_box_muller(x.z, x.w);
  return {a.x, a.y, b.x, b.y};
}
template <class S> CC_DEVICE void skipahead(unsigned long long n, S *state) {
  for (; n > 0; n--) curand(state);
}

#define hiprand_init curand_init
#define hiprand curand
#define hiprand_uniform curand_uniform
#define hiprand_uniform_double curand_uniform_double
#define hiprand_uniform4 curand_uniform4
#define hiprand_normal curand_normal
#define hiprand_normal2 curand_normal2
#define hiprand_normal4 curand_normal4
#define hiprand_normal_double curand_normal_double
#define hiprand_normal2_double curand_normal2_double
#define hiprand_log_normal curand_log_normal

#endif
