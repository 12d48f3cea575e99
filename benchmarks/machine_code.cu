// Loops over a matrix by column or row; `n` iterations are not known to the compiler.
extern "C" {
__global__ void sum(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; j++) s += a[j * m + i];
  y[i] = s;
}

__global__ void product(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; j++) s += a[j * m + i] * x[j];
  y[i] = s;
}

__global__ void select(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; j++) {
    float v = a[j * m + i];
    if (v > 0) s += v * 2;
    else s -= v;
  }
  y[i] = s;
}

__global__ void constant(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < 1024; j++) s += a[(j * m + i) % 4096];
  y[i] = s;
}

__global__ void copy(const float *__restrict__ a, const float *x, float *__restrict__ y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; j++) y[j * m + i] = a[j * m + i];
}

__global__ void copy_that_may_overlap(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; j++) y[j * m + i] = a[j * m + i];
}

__global__ void scan(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < n; j++) {
    s += y[j * m + i];
    y[j * m + i] = s;
  }
}

__global__ void scale_row(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; j++) y[i * n + j] *= 2;
}

__global__ void over_the_grid(const float *a, const float *x, float *y, int m, int n) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m * n; i += blockDim.x * gridDim.x) s += a[i];
  y[threadIdx.x] = s;
}

__global__ void until_found(const float *a, const float *x, float *y, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = 0;
  while (j < n && a[j * m + i] < 1) j++;
  y[i] = j;
}
}
