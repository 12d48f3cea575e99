// Kernels that do what those of NVIDIA's CUDA samples do.

__global__ void copy_tile(float *out, float *in, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  out[y * n + x] = in[y * n + x];
}

__global__ void copy_through_tile(float *out, float *in, int n) {
  __shared__ float tile[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[y * n + x] = tile[threadIdx.y][threadIdx.x];
}

__global__ void transpose_naive(float *out, float *in, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}

// With a padding of 0, work-items read a column from one bank.
template <int PADDING>
__global__ void transpose_tile(float *out, float *in, int n) {
  __shared__ float tile[16][16 + PADDING];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// Blocks in turn take tiles along diagonals.
__global__ void transpose_diagonal(float *out, float *in, int n) {
  __shared__ float tile[16][17];
  int tile_y = blockIdx.x, tile_x = (blockIdx.x + blockIdx.y) % gridDim.x;
  int x = tile_x * 16 + threadIdx.x, y = tile_y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = tile_y * 16 + threadIdx.x, y = tile_x * 16 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// Structures that are aligned as their parts are, or as a whole.
struct bytes4 {
  unsigned char r, g, b, a;
};
struct words2 {
  unsigned l, a;
};
struct words3 {
  unsigned r, g, b;
};
struct words4 {
  unsigned r, g, b, a;
};

template <typename T>
__global__ void copy_elements(T *out, T *in, int n) {
  int threads = blockDim.x * gridDim.x;
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += threads) out[i] = in[i];
}

// The distribution of Abramowitz and Stegun 26.2.17.
__device__ float normal(float d) {
  float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float tail = 0.3989422804f * __expf(-0.5f * d * d) *
               (k * (0.319381530f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}

__device__ void price(float &call, float &put, float s, float x, float t, float r, float v) {
  float root = __fdividef(1.0f, rsqrtf(t));
  float d1 = __fdividef(__logf(s / x) + (r + 0.5f * v * v) * t, v * root), d2 = d1 - v * root;
  float below1 = normal(d1), below2 = normal(d2), discount = __expf(-r * t);
  call = s * below1 - x * discount * below2;
  put = x * discount * (1.0f - below2) - s * (1.0f - below1);
}

__global__ void black_scholes(float2 *__restrict__ calls, float2 *__restrict__ puts, float2 *__restrict__ prices,
                              float2 *__restrict__ strikes, float2 *__restrict__ years, float r, float v, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n / 2) return;
  float2 s = prices[i], x = strikes[i], t = years[i], call, put;
  price(call.x, put.x, s.x, x.x, t.x, r, v);
  price(call.y, put.y, s.y, x.y, t.y, r, v);
  calls[i] = call, puts[i] = put;
}

// Each warp has bins of its own.
__global__ void histogram_256(unsigned *partial, unsigned *data, unsigned words) {
  __shared__ unsigned bins[6 * 256];
  unsigned *own = bins + threadIdx.x / 32 * 256;
  for (unsigned i = threadIdx.x; i < 6 * 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += blockDim.x * gridDim.x) {
    unsigned word = data[i];
    atomicAdd(&own[word & 255], 1), atomicAdd(&own[word >> 8 & 255], 1);
    atomicAdd(&own[word >> 16 & 255], 1), atomicAdd(&own[word >> 24], 1);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x) {
    unsigned sum = 0;
    for (unsigned warp = 0; warp < 6; warp++) sum += bins[warp * 256 + bin];
    partial[blockIdx.x * 256 + bin] = sum;
  }
}

// Each work-item has a byte in each bin.
__device__ void count_bytes(unsigned char *own, unsigned word) {
  own[(word >> 2 & 63) * 64]++, own[(word >> 10 & 63) * 64]++;
  own[(word >> 18 & 63) * 64]++, own[(word >> 26 & 63) * 64]++;
}

__global__ void histogram_64(unsigned *partial, uint4 *data, unsigned n) {
  __shared__ unsigned char bins[64 * 64];
  unsigned at = (threadIdx.x & ~63u) | (threadIdx.x & 15u) << 2 | (threadIdx.x & 48u) >> 4;
  for (unsigned i = 0; i < 16; i++) ((unsigned *)bins)[threadIdx.x + i * 64] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    uint4 four = data[i];
    count_bytes(bins + at, four.x), count_bytes(bins + at, four.y);
    count_bytes(bins + at, four.z), count_bytes(bins + at, four.w);
  }
  __syncthreads();
  unsigned sum = 0, start = 4 * (threadIdx.x & 15u);
  for (unsigned i = 0; i < 16; i++) {
    unsigned char *word = bins + threadIdx.x * 64 + (start + 4 * i) % 64;
    sum += word[0] + word[1] + word[2] + word[3];
  }
  partial[blockIdx.x * 64 + threadIdx.x] = sum;
}

// An option a block, of 2,048 steps, 16 nodes a work-item.
__global__ void binomial(float *values, float4 *options) {
  __shared__ float first[129];
  int item = threadIdx.x, final_step = max(0, item * 16 - 1);
  float4 option = options[blockIdx.x]; // Price, strike, drift of a step, and the discounted odds of a rise
  float fall = 1.0f - option.w, node[17];
  for (int k = 0; k < 16; k++) node[k] = fmaxf(option.x * __expf(option.z * (2.0f * (item * 16 + k) - 2048)) - option.y, 0.0f);
  if (item == 0) first[128] = fmaxf(option.x * __expf(option.z * 2048) - option.y, 0.0f);
  for (int step = 2048; step > 0; step--) {
    first[item] = node[0];
    __syncthreads();
    node[16] = first[item + 1];
    __syncthreads();
    if (step > final_step)
      for (int k = 0; k < 16; k++) node[k] = option.w * node[k + 1] + fall * node[k];
  }
  if (item == 0) values[blockIdx.x] = node[0];
}

__constant__ unsigned directions[3][31];

__global__ void quasirandom(float *out, unsigned seed, unsigned n) {
  unsigned *own = directions[threadIdx.y];
  unsigned start = blockDim.x * blockIdx.x + threadIdx.x;
  for (unsigned i = start; i < n; i += blockDim.x * gridDim.x) {
    unsigned result = 0, bits = seed + i;
    for (int bit = 0; bit < 31; bit++, bits >>= 1)
      if (bits & 1) result ^= own[bit];
    out[threadIdx.y * n + i] = (result + 1) * (1.0f / 2147483648.0f);
  }
}

// Moro's algorithm.
__device__ float inverse_normal(unsigned x) {
  bool upper = x >= 0x80000000u;
  if (upper) x = 0xffffffffu - x;
  float p = x * 2.3283064e-10f + 1.1641532e-10f, y = p - 0.5f, z;
  if (y > -0.42f) {
    z = y * y;
    z = y * (((-25.44106049637f * z + 41.39119773534f) * z - 18.61500062529f) * z + 2.50662823884f) /
        ((((3.13082909833f * z - 21.06224101826f) * z + 23.08336743743f) * z - 8.47351093090f) * z + 1.0f);
  } else {
    z = __logf(-__logf(p));
    z = -(0.337475482272615f +
          z * (0.976169019091719f +
               z * (0.160797971491821f +
                    z * (2.76438810333863e-2f +
                         z * (3.8405729373609e-3f +
                              z * (3.951896511919e-4f +
                                   z * (3.21767881768e-5f + z * (2.888167364e-7f + z * 3.960315187e-7f))))))));
  }
  return upper ? -z : z;
}

__global__ void inverse(float *out, unsigned n) {
  unsigned distance = 0xffffffffu / (n + 1);
  for (unsigned i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    out[i] = inverse_normal((i + 1) * distance);
}

__global__ void reduce(int *in, int *out, unsigned n) {
  __shared__ int sums[256];
  int sum = 0;
  for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < n; i += 512 * gridDim.x) sum += in[i] + in[i + 256];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < 128) sums[threadIdx.x] = sum = sum + sums[threadIdx.x + 128];
  __syncthreads();
  if (threadIdx.x < 64) sums[threadIdx.x] = sum = sum + sums[threadIdx.x + 64];
  __syncthreads();
  if (threadIdx.x < 32) {
    sum += sums[threadIdx.x + 32];
    for (int far = 16; far > 0; far /= 2) sum += __shfl_down_sync(0xffffffff, sum, far);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Sums before each of 1,024 numbers, four a work-item.
__global__ void scan(uint4 *out, uint4 *in) {
  __shared__ unsigned sums[512];
  uint4 own = in[blockIdx.x * 256 + threadIdx.x];
  own.y += own.x, own.z += own.y, own.w += own.z;
  unsigned at = 2 * threadIdx.x - (threadIdx.x & 255);
  sums[at] = 0;
  at += 256;
  sums[at] = own.w;
  for (unsigned far = 1; far < 256; far *= 2) {
    __syncthreads();
    unsigned sum = sums[at] + sums[at - far];
    __syncthreads();
    sums[at] = sum;
  }
  unsigned before = sums[at] - own.w;
  out[blockIdx.x * 256 + threadIdx.x] = make_uint4(before, own.x + before, own.y + before, own.z + before);
}

__device__ void order(unsigned &key, unsigned &value, unsigned &other_key, unsigned &other_value, unsigned up) {
  if ((key > other_key) == up) {
    unsigned k = key, v = value;
    key = other_key, value = other_value, other_key = k, other_value = v;
  }
}

// Bitonic sort of 1,024 pairs a block, as arrays of some length.
__global__ void sort(unsigned *keys_out, unsigned *values_out, unsigned *keys_in, unsigned *values_in, unsigned length,
                     unsigned up) {
  __shared__ unsigned keys[1024], values[1024];
  unsigned base = blockIdx.x * 1024 + threadIdx.x;
  keys[threadIdx.x] = keys_in[base], values[threadIdx.x] = values_in[base];
  keys[threadIdx.x + 512] = keys_in[base + 512], values[threadIdx.x + 512] = values_in[base + 512];
  for (unsigned size = 2; size < length; size *= 2) {
    unsigned turned = up ^ ((threadIdx.x & size / 2) != 0);
    for (unsigned far = size / 2; far > 0; far /= 2) {
      __syncthreads();
      unsigned at = 2 * threadIdx.x - (threadIdx.x & (far - 1));
      order(keys[at], values[at], keys[at + far], values[at + far], turned);
    }
  }
  for (unsigned far = length / 2; far > 0; far /= 2) {
    __syncthreads();
    unsigned at = 2 * threadIdx.x - (threadIdx.x & (far - 1));
    order(keys[at], values[at], keys[at + far], values[at + far], up);
  }
  __syncthreads();
  keys_out[base] = keys[threadIdx.x], values_out[base] = values[threadIdx.x];
  keys_out[base + 512] = keys[threadIdx.x + 512], values_out[base + 512] = values[threadIdx.x + 512];
}

__global__ void product(float *c, float *a, float *b, int a_width, int b_width) {
  __shared__ float a_tile[32][32], b_tile[32][32];
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < a_width; k += 32) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * a_width + k + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * b_width + column];
    __syncthreads();
    for (int i = 0; i < 32; i++) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  c[row * b_width + column] = sum;
}
