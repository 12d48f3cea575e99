// Kernels that do what the exercises of a textbook ask for.

__global__ void add_along_columns(unsigned *a, unsigned *b, unsigned *c, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < m) c[i * m + j] = a[i * m + j] + b[i * m + j];
}

__global__ void add_along_rows(unsigned *a, unsigned *b, unsigned *c, int m, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < m) c[i * m + j] = a[i * m + j] + b[i * m + j];
}

__global__ void gray(unsigned char *in, unsigned char *out, int width, int height) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= height || col >= width) return;
  int at = row * width + col;
  unsigned char r = in[3 * at], g = in[3 * at + 1], b = in[3 * at + 2];
  out[at] = (unsigned char)(0.21f * r + 0.71f * g + 0.07f * b);
}

// A thread walks along a row.
__global__ void matrix_vector(unsigned *out, unsigned *matrix, unsigned *vector, int m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  unsigned sum = 0;
  for (int k = 0; k < n; ++k) sum += matrix[i * n + k] * vector[k];
  out[i] = sum;
}

__global__ void histogram_of_all(unsigned *input, unsigned *bins, unsigned n, unsigned n_bins) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned bin = at; bin < n_bins; bin += blockDim.x * gridDim.x) bins[bin] = 0;
  __syncthreads();
  for (unsigned i = at; i < n; i += blockDim.x * gridDim.x) atomicAdd(&bins[input[i]], 1);
}

// Each block has bins of its own, which it adds to those of all at its end.
__global__ void histogram(unsigned *input, unsigned *bins, unsigned n, unsigned n_bins) {
  extern __shared__ unsigned own[];
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned bin = threadIdx.x; bin < n_bins; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (unsigned i = at; i < n; i += blockDim.x * gridDim.x) atomicAdd(&own[input[i]], 1);
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < n_bins; bin += blockDim.x) atomicAdd(&bins[bin], own[bin]);
}

// Clamped in double precision, as its published source does.
__global__ void convolution(float *in, float *mask, float *out, int mask_width, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  float sum = 0;
  int start = i - mask_width / 2;
  for (int j = 0; j < mask_width; ++j)
    if (start + j >= 0 && start + j < width) sum += in[start + j] * mask[j];
  out[i] = min(max(sum, 0.0), 1.0);
}

// A thread computes one element.
__global__ void product(unsigned *a, unsigned *b, unsigned *out, int m, int n, int p) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= p) return;
  unsigned sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * p + column];
  out[row * p + column] = sum;
}

// By tiles as wide as the block, which it keeps in shared memory.
__global__ void product_of_tiles(unsigned *a, unsigned *b, unsigned *out, int m, int n, int p) {
  extern __shared__ unsigned tiles[];
  int width = blockDim.x, x = threadIdx.x, y = threadIdx.y;
  unsigned *of_a = tiles, *of_b = tiles + width * width;
  int row = blockIdx.y * width + y, column = blockIdx.x * width + x;
  unsigned sum = 0;
  for (int first = 0; first < n; first += width) {
    of_a[y * width + x] = row < m && first + x < n ? a[row * n + first + x] : 0;
    of_b[y * width + x] = first + y < n && column < p ? b[(first + y) * p + column] : 0;
    __syncthreads();
    for (int k = 0; k < width; ++k) sum += of_a[y * width + k] * of_b[k * width + x];
    __syncthreads();
  }
  if (row < m && column < p) out[row * p + column] = sum;
}
