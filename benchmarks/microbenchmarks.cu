// Kernels that do what those of gpu-benches do; the names are those of its folders.

__global__ void small(double *__restrict__ out, const double *__restrict__ in, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = in[i] * 0.25;
}

__global__ void init(double *a, const double *__restrict__, const double *__restrict__, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) a[i] = 0.23;
}

__global__ void read(double *a, const double *__restrict__ b, const double *__restrict__, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  double value = b[i];
  if (value == 123.0) a[i] = value;
}

__global__ void scale(double *a, const double *__restrict__ b, const double *__restrict__, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) a[i] = b[i] * 1.2;
}

__global__ void triad(double *a, const double *__restrict__ b, const double *__restrict__ c, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) a[i] = b[i] * 1.2 + c[i];
}

__global__ void stencil(double *a, const double *__restrict__ b, const double *__restrict__, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i > 0 && i < n - 1) a[i] = 0.5 * b[i - 1] - b[i] + 0.5 * b[i + 1];
}

__device__ bool is(double a, double b) { return a == b; }
__device__ bool is(float4 a, float b) { return a.x == b && a.y == b; }
__device__ void add(float &sum, float value) { sum += value; }
__device__ void add(double &sum, double value) { sum += value; }
__device__ void add(float4 &sum, float4 value) {
  sum.x += value.x;
  sum.y += value.y;
  sum.z += value.z;
  sum.w += value.w;
}

// Each block reads N times 1,024 values; a number of blocks at a time read different ones.
template <typename T, int N> __global__ void l2(T *__restrict__ out, const T *__restrict__ in, int blocks) {
  T sum = T();
#pragma unroll
  for (int i = 0; i < N; i++)
    add(sum, in[blockDim.x * blocks * i + (blockIdx.x % blocks) * blockDim.x + threadIdx.x]);
  if (is(sum, 23.12f)) out[threadIdx.x] = sum;
}

// Each block reads the same N values again and again; 32 reads are unrolled.
template <typename T, int N, int TIMES> __global__ void cache(T *__restrict__ out, const T *__restrict__ in, int zero) {
  T sum = T();
  in += threadIdx.x;
#pragma unroll(N > 32 * 256 ? 1 : 32 * 256 / N)
  for (int time = 0; time < TIMES; time++) {
    in += zero;
#pragma unroll(N > 32 * 256 ? 32 : N / 256)
    for (int i = 0; i < N; i += 256) add(sum, in[i]);
  }
  if (is(sum, 1233.0f)) out[threadIdx.x] = sum;
}

template <typename T> __global__ void strides(T *in, T *out, int zero, int stride, int n) {
  T sum = T(0);
  T *p = in + (threadIdx.x % 64) * stride;
#pragma unroll 1
  for (int k = 0; k < n; k += 8) {
    p += zero;
    sum += p[0] * p[4];
    sum += p[8] * p[12];
    sum += p[20] * p[16];
    sum += p[24] * p[28];
  }
  if (is(sum, T(123123.23))) out[threadIdx.x] = sum;
}

__global__ void latency(const int *next, int *out, int n) {
  int at = 0;
#pragma unroll 1
  for (int k = 0; k < n; k += 8) {
#pragma unroll
    for (int step = 0; step < 8; step++) at = next[at];
  }
  if (threadIdx.x + blockIdx.x * blockDim.x > 12313) out[0] = at;
}

template <int N, int M>
__global__ void roofline(const float *__restrict__ a, const float *__restrict__ b, float *out) {
  int start = threadIdx.x + blockIdx.x * blockDim.x * M;
  float sum = 0;
#pragma unroll 1
  for (int i = start; i < start + M * 256; i += 512) {
    float first = a[i], second = a[i + 256], x = first - b[i], y = second - b[i + 256];
#pragma unroll
    for (int k = 0; k < N; k++) {
      x = x * first - b[i];
      y = y * second - b[i + 256];
    }
    sum += x + y;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
