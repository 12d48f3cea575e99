// Kernels whose times were published for devices of AMD and Intel, and for new ones of NVIDIA, written anew.

// Transposes of doubles by 16 x 16 threads: rows are read, are written, or both, through local memory.
__global__ void transpose_of_rows(double *out, double *in, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

__global__ void transpose_to_rows(double *out, double *in, int n) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = in[x * n + y];
}

__global__ void transpose_through_tile(double *out, double *in, int n) {
  __shared__ double tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = x < n && y < n ? in[y * n + x] : 0.0;
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// Tiles of 32 x 32 floats by 32 x 8 threads.
__global__ void copy_four_rows(float *out, const float *in) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y, n = gridDim.x * 32;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = in[(y + j) * n + x];
}

__global__ void copy_through_tile(float *out, const float *in) {
  __shared__ float tile[32 * 32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y, n = gridDim.x * 32;
  for (int j = 0; j < 32; j += 8) tile[(threadIdx.y + j) * 32 + threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[(threadIdx.y + j) * 32 + threadIdx.x];
}

__global__ void transpose_naive(float *out, const float *in) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y, n = gridDim.x * 32;
  for (int j = 0; j < 32; j += 8) out[x * n + y + j] = in[(y + j) * n + x];
}

template <int PADDING>
__global__ void transpose_tile(float *out, const float *in) {
  __shared__ float tile[32][32 + PADDING];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y, n = gridDim.x * 32;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// A matrix between two vectors. A work-item sums a row, whose neighbours are those of the next work-items or not.
__global__ void by_row(double *y, double *a, double *x, int n, int m, double *result) {
  double all = 0;
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double sum = 0;
    for (int j = 0; j < m; j++) sum += a[i * m + j] * x[j];
    all += y[i] * sum;
  }
  atomicAdd(result, all);
}

__global__ void by_column(double *y, double *a, double *x, int n, int m, double *result) {
  double all = 0;
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double sum = 0;
    for (int j = 0; j < m; j++) sum += a[j * n + i] * x[j];
    all += y[i] * sum;
  }
  atomicAdd(result, all);
}

// The first numbers of the vector are in local memory.
template <int KEPT>
__global__ void by_row_and_local(double *y, double *a, double *x, int n, int m, double *result) {
  __shared__ double kept[KEPT];
  for (int i = threadIdx.x; i < KEPT; i += blockDim.x) kept[i] = x[i];
  __syncthreads();
  double all = 0;
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double sum = 0;
    for (int j = 0; j < m; j++) sum += a[i * m + j] * (j < KEPT ? kept[j] : x[j]);
    all += y[i] * sum;
  }
  atomicAdd(result, all);
}

// A block sums a row.
__global__ void by_block(double *y, double *a, double *x, int n, int m, double *result) {
  __shared__ double all;
  if (threadIdx.x == 0) all = 0;
  for (int i = blockIdx.x; i < n; i += gridDim.x) {
    double sum = 0;
    for (int j = threadIdx.x; j < m; j += blockDim.x) sum += a[i * m + j] * x[j];
    atomicAdd(&all, sum);
    if (threadIdx.x == 0) all *= y[i];
  }
  if (threadIdx.x == 0) atomicAdd(result, all);
}

// Streams of doubles.
__global__ void copy(double *a, double *c) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  c[i] = a[i];
}

__global__ void mul(double *b, double *c) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  b[i] = 0.4 * c[i];
}

__global__ void add(double *a, double *b, double *c) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];
}

__global__ void triad(double *a, double *b, double *c) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  a[i] = b[i] + 0.4 * c[i];
}

// Poisson's equation on a square: a step, and the operator on its inside.
__global__ void step(int n, double factor, const double *__restrict__ right, const double *__restrict__ left,
                     double *__restrict__ residual, double *__restrict__ u) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  double r = right[i] - left[i];
  residual[i] = r;
  u[i] += r * factor;
}

__global__ void laplacian(int nx, int ny, int stride, double fx, double fy, const double *__restrict__ u,
                          double *__restrict__ out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i >= nx || j >= ny) return;
  int at = i + 1 + (j + 1) * stride;
  out[at] = (-u[at - 1] + 2 * u[at] - u[at + 1]) * fx + (-u[at - stride] + 2 * u[at] - u[at + stride]) * fy;
}

// A block of 128 sums squares in local memory.
__global__ void norm(int n, double dx, double dy, const double *__restrict__ u, double *__restrict__ out) {
  __shared__ double sums[128];
  int t = threadIdx.x;
  sums[t] = 0;
  for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) sums[t] += u[i] * u[i] * dx * dy;
  __syncthreads();
  for (int k = 64; k > 0; k /= 2) {
    if (t < k) sums[t] += sums[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

// Matrix products: a work-item computes a result of a row of its own, a row, or one by tiles.
template <int N>
__global__ void product_by_item(float *a, float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= N || j >= N) return;
  float sum = 0;
  for (int k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
  c[i * N + j] = sum;
}

template <int N>
__global__ void product_by_row(float *a, float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  for (int j = 0; j < N; j++) {
    float sum = 0;
    for (int k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
    c[i * N + j] = sum;
  }
}

template <int N>
__global__ void product_by_tiles(float *a, float *b, float *c) {
  __shared__ float of_a[16 * 16], of_b[16 * 16];
  int x = threadIdx.x, y = threadIdx.y;
  int at = blockIdx.y * 16 * N + y * N + x, next = blockIdx.x * 16 + y * N + x;
  float sum = 0;
  for (int block = 0; block < N / 16; block++, at += 16, next += 16 * N) {
    of_a[y * 16 + x] = a[at], of_b[y * 16 + x] = b[next];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++) sum += of_a[y * 16 + k] * of_b[k * 16 + x];
    __syncthreads();
  }
  c[(blockIdx.y * 16 + y) * N + blockIdx.x * 16 + x] = sum;
}
