// Kernels that do what those of published optimization studies do; N x N matrices are row-major.

#define TILE 32

// Matrix products, by step of optimization.

__global__ void columns_by_lane(const float *a, const float *b, float *c, int n, float alpha, float beta) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

__global__ void rows_by_lane(const float *a, const float *b, float *c, int n, float alpha, float beta) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

__global__ void tiled(const float *a, const float *b, float *c, int n, float alpha, float beta) {
  __shared__ float tile_a[TILE * TILE], tile_b[TILE * TILE];
  int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  int row = blockIdx.x * TILE + y, column = blockIdx.y * TILE + x;
  float sum = 0.0f;
  for (int first = 0; first < n; first += TILE) {
    tile_a[y * TILE + x] = a[row * n + first + x];
    tile_b[y * TILE + x] = b[(first + y) * n + column];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += tile_a[y * TILE + k] * tile_b[k * TILE + x];
    __syncthreads();
  }
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

// BM x BN results of a block, TM of a thread in a column.
template <int BM, int BN, int BK, int TM>
__global__ void column_of_results(const float *a, const float *b, float *c, int n, float alpha, float beta) {
  __shared__ float tile_a[BM * BK], tile_b[BK * BN];
  int x = threadIdx.x % BN, y = threadIdx.x / BN;
  int x_a = threadIdx.x % BK, y_a = threadIdx.x / BK;
  a += blockIdx.y * BM * n;
  b += blockIdx.x * BN;
  c += blockIdx.y * BM * n + blockIdx.x * BN;
  float sums[TM] = {0.0f};
  for (int first = 0; first < n; first += BK) {
    tile_a[y_a * BK + x_a] = a[y_a * n + x_a];
    tile_b[y * BN + x] = b[y * n + x];
    __syncthreads();
    a += BK;
    b += BK * n;
    for (int k = 0; k < BK; ++k) {
      float value = tile_b[k * BN + x];
      for (int i = 0; i < TM; ++i) sums[i] += tile_a[(y * TM + i) * BK + k] * value;
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i) {
    int at = (y * TM + i) * n + x;
    c[at] = alpha * sums[i] + beta * c[at];
  }
}

// TM x TN results of a thread.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void block_of_results(const float *a, const float *b, float *c, int n, float alpha, float beta) {
  constexpr int threads = BM * BN / (TM * TN);
  __shared__ float tile_a[BM * BK], tile_b[BK * BN];
  int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN);
  int x_a = threadIdx.x % BK, y_a = threadIdx.x / BK;
  int x_b = threadIdx.x % BN, y_b = threadIdx.x / BN;
  a += blockIdx.y * BM * n;
  b += blockIdx.x * BN;
  c += blockIdx.y * BM * n + blockIdx.x * BN;
  float sums[TM * TN] = {0.0f}, column[TM], row[TN];
  for (int first = 0; first < n; first += BK) {
    for (int i = 0; i < BM; i += threads / BK) tile_a[(y_a + i) * BK + x_a] = a[(y_a + i) * n + x_a];
    for (int i = 0; i < BK; i += threads / BN) tile_b[(y_b + i) * BN + x_b] = b[(y_b + i) * n + x_b];
    __syncthreads();
    a += BK;
    b += BK * n;
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; ++i) column[i] = tile_a[(y * TM + i) * BK + k];
      for (int j = 0; j < TN; ++j) row[j] = tile_b[k * BN + x * TN + j];
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) sums[i * TN + j] += column[i] * row[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) {
      int at = (y * TM + i) * n + x * TN + j;
      c[at] = alpha * sums[i * TN + j] + beta * c[at];
    }
}

// A tile of a, transposed, and one of b, four values an access.
template <int BM, int BN, int BK, int threads>
__device__ void load(float *a, float *b, int n, float *tile_a, float *tile_b) {
  constexpr int rows_a = threads * 4 / BK, rows_b = threads * 4 / BN;
  int x_a = threadIdx.x % (BK / 4), y_a = threadIdx.x / (BK / 4);
  int x_b = threadIdx.x % (BN / 4), y_b = threadIdx.x / (BN / 4);
  for (int i = 0; i < BM; i += rows_a) {
    float4 four = reinterpret_cast<float4 *>(&a[(y_a + i) * n + x_a * 4])[0];
    float *column = &tile_a[x_a * 4 * BM + y_a + i];
    column[0] = four.x;
    column[BM] = four.y;
    column[2 * BM] = four.z;
    column[3 * BM] = four.w;
  }
  for (int i = 0; i < BK; i += rows_b)
    reinterpret_cast<float4 *>(&tile_b[(y_b + i) * BN + x_b * 4])[0] =
        reinterpret_cast<float4 *>(&b[(y_b + i) * n + x_b * 4])[0];
}

__device__ void store(float4 *at, const float *sums, float alpha, float beta) {
  float4 old = *at;
  old.x = alpha * sums[0] + beta * old.x;
  old.y = alpha * sums[1] + beta * old.y;
  old.z = alpha * sums[2] + beta * old.z;
  old.w = alpha * sums[3] + beta * old.w;
  *at = old;
}

// The same with a transposed in local memory, and four values an access.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void vectors(float *a, float *b, float *c, int n, float alpha, float beta) {
  constexpr int threads = BM * BN / (TM * TN);
  __shared__ float tile_a[BM * BK], tile_b[BK * BN];
  int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN);
  a += blockIdx.y * BM * n;
  b += blockIdx.x * BN;
  c += blockIdx.y * BM * n + blockIdx.x * BN;
  float sums[TM * TN] = {0.0f}, column[TM], row[TN];
  for (int first = 0; first < n; first += BK) {
    load<BM, BN, BK, threads>(a, b, n, tile_a, tile_b);
    __syncthreads();
    a += BK;
    b += BK * n;
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; ++i) column[i] = tile_a[k * BM + y * TM + i];
      for (int j = 0; j < TN; ++j) row[j] = tile_b[k * BN + x * TN + j];
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) sums[i * TN + j] += column[i] * row[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; j += 4)
      store(reinterpret_cast<float4 *>(&c[(y * TM + i) * n + x * TN + j]), &sums[i * TN + j], alpha, beta);
}

// A warp has WM x WN results, a thread TM x TN of each of IM x IN parts of these.
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int IN, int threads>
__global__ void warps(float *a, float *b, float *c, int n, float alpha, float beta) {
  constexpr int IM = WM * WN / (32 * TM * TN * IN), SM = WM / IM, SN = WN / IN;
  __shared__ float tile_a[BM * BK], tile_b[BK * BN];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int x_w = warp % (BN / WN), y_w = warp / (BN / WN), x = lane % (SN / TN), y = lane / (SN / TN);
  a += blockIdx.y * BM * n;
  b += blockIdx.x * BN;
  c += (blockIdx.y * BM + y_w * WM) * n + blockIdx.x * BN + x_w * WN;
  float sums[IM * TM * IN * TN] = {0.0f}, column[IM * TM], row[IN * TN];
  for (int first = 0; first < n; first += BK) {
    load<BM, BN, BK, threads>(a, b, n, tile_a, tile_b);
    __syncthreads();
    a += BK;
    b += BK * n;
    for (int k = 0; k < BK; ++k) {
      for (int m = 0; m < IM; ++m)
        for (int i = 0; i < TM; ++i) column[m * TM + i] = tile_a[k * BM + y_w * WM + m * SM + y * TM + i];
      for (int m = 0; m < IN; ++m)
        for (int j = 0; j < TN; ++j) row[m * TN + j] = tile_b[k * BN + x_w * WN + m * SN + x * TN + j];
      for (int i = 0; i < IM * TM; ++i)
        for (int j = 0; j < IN * TN; ++j) sums[i * IN * TN + j] += column[i] * row[j];
    }
    __syncthreads();
  }
  for (int m = 0; m < IM; ++m)
    for (int l = 0; l < IN; ++l)
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; j += 4)
          store(reinterpret_cast<float4 *>(&c[(m * SM + y * TM + i) * n + l * SN + x * TN + j]),
                &sums[(m * TM + i) * IN * TN + l * TN + j], alpha, beta);
}

// Laplacians of AMD's lab notes (MIT): seven points of a box of doubles, straight, and M in y a thread.

__global__ void laplacian(double *f, const double *u, int nx, int ny, int nz, double x2, double y2, double z2,
                          double all) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int j = threadIdx.y + blockIdx.y * blockDim.y;
  int k = threadIdx.z + blockIdx.z * blockDim.z;
  if (i == 0 || i >= nx - 1 || j == 0 || j >= ny - 1 || k == 0 || k >= nz - 1) return;
  int slice = nx * ny;
  size_t at = i + nx * j + (size_t)slice * k;
  f[at] = u[at] * all + (u[at - 1] + u[at + 1]) * x2 + (u[at - nx] + u[at + nx]) * y2 +
          (u[at - slice] + u[at + slice]) * z2;
}

template <int M>
__global__ void __launch_bounds__(256) laplacian_of_rows(double *f, const double *u, int nx, int ny, int nz, double x2, double y2,
                                  double z2, double all) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int j = M * (threadIdx.y + blockIdx.y * blockDim.y);
  int k = threadIdx.z + blockIdx.z * blockDim.z;
  if (i == 0 || i >= nx - 1 || k == 0 || k >= nz - 1) return;
  int slice = nx * ny;
  size_t at = i + nx * j + (size_t)slice * k;
  double sums[M] = {0};
  for (int m = 0; m < M; ++m) sums[m] += u[at - slice + m * nx] * z2;
  sums[0] += j > 0 ? u[at - nx] * y2 : 0;
  for (int m = 0; m < M; ++m) {
    double centre = u[at + m * nx];
    sums[m] += u[at - 1 + m * nx] * x2 + centre * all + u[at + 1 + m * nx] * x2;
    if (m > 0) sums[m - 1] += centre * y2;
    if (m < M - 1) sums[m + 1] += centre * y2;
  }
  sums[M - 1] += j < ny - M ? u[at + M * nx] * y2 : 0;
  for (int m = 0; m < M; ++m) sums[m] += u[at + slice + m * nx] * z2;
  for (int m = 0; m < M; ++m)
    if (m + j > 0 && m + j < ny - 1) __builtin_nontemporal_store(sums[m], &f[at + m * nx]);
}

// A step of a lattice Boltzmann method, D3Q19, in place (M. Lehmann, Esoteric pull and esoteric push, 2022).

__device__ constexpr int lattice(int i, int axis) {
  constexpr int steps[9][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {1, 0, 1},
                               {0, 1, 1}, {1, -1, 0}, {1, 0, -1}, {0, 1, -1}};
  return steps[i][axis];
}

__global__ void lattice_boltzmann(float *f, const unsigned char *flags, unsigned n, unsigned side, int odd,
                                  float rate) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n || flags[at] == 1) return;
  unsigned x = at % side, y = at / side % side, z = at / (side * side);
  unsigned xs[3] = {(x + side - 1) % side, x, (x + 1) % side};
  unsigned ys[3] = {(y + side - 1) % side * side, y * side, (y + 1) % side * side};
  unsigned slice = side * side;
  unsigned zs[3] = {(z + side - 1) % side * slice, z * slice, (z + 1) % side * slice};
  unsigned next[9];
  float forth[9], back[9];
  float rest = f[at], density = rest, ux = 0.0f, uy = 0.0f, uz = 0.0f;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    next[i] = xs[lattice(i, 0) + 1] + ys[lattice(i, 1) + 1] + zs[lattice(i, 2) + 1];
    forth[i] = f[(size_t)(2 * i + (odd ? 1 : 2)) * n + at];
    back[i] = f[(size_t)(2 * i + (odd ? 2 : 1)) * n + next[i]];
    density += forth[i] + back[i];
    ux += lattice(i, 0) * (forth[i] - back[i]);
    uy += lattice(i, 1) * (forth[i] - back[i]);
    uz += lattice(i, 2) * (forth[i] - back[i]);
  }
  float inverse = 1.0f / (density + 1.0f);
  ux *= inverse;
  uy *= inverse;
  uz *= inverse;
  float square = 1.5f * (ux * ux + uy * uy + uz * uz);
  f[at] = fmaf(1.0f - rate, rest, rate * (1.0f / 3.0f) * (density - square * (density + 1.0f)));
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    float weight = i < 3 ? 1.0f / 18.0f : 1.0f / 36.0f;
    float along = 3.0f * (lattice(i, 0) * ux + lattice(i, 1) * uy + lattice(i, 2) * uz);
    float even = weight * (density + (density + 1.0f) * (0.5f * along * along - square));
    float odd_part = weight * (density + 1.0f) * along;
    float out = fmaf(1.0f - rate, forth[i], rate * (even + odd_part));
    float opposite = fmaf(1.0f - rate, back[i], rate * (even - odd_part));
    f[(size_t)(2 * i + (odd ? 2 : 1)) * n + next[i]] = out;
    f[(size_t)(2 * i + (odd ? 1 : 2)) * n + at] = opposite;
  }
}

// Reads and multiply-adds as in mixbench (E. Konstantinidis): eight values at a time.

template <typename T, int rounds, int steps>
__global__ void mixed(T seed, T *data) {
  size_t at = blockIdx.x * blockDim.x * 8 + threadIdx.x, stride = (size_t)gridDim.x * blockDim.x * 8;
  for (int round = 0; round < rounds; ++round) {
    T values[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      values[j] = data[at + j * blockDim.x + round * stride];
#pragma unroll
      for (int i = 0; i < steps; ++i) values[j] = values[j] * values[j] + seed;
    }
    T sum = 0;
#pragma unroll
    for (int j = 0; j < 8; j += 2) sum += values[j] * values[j + 1];
    if (sum == (T)-1) data[at + round * stride] = sum;
  }
}

// Several steps of a heat equation with sources (HotSpot) in one launch: a block keeps its TX x TY results of each
// thread, and a halo as wide as there are steps, in shared memory. The input has a border of 10 cells.
#define BORDER 10
#define CELLS 4096
#define PITCH (CELLS + 2 * BORDER)

template <int BX, int BY, int TX, int TY, int STEPS, int UNROLLED, int KEEPS_POWER>
__global__ void heat(const float *power, const float *from, float *to, float rx, float ry, float rz, float factor) {
  constexpr int width = BX * TX + 2 * STEPS, height = BY * TY + 2 * STEPS;
  __shared__ float cells[2][height][width];
  __shared__ float kept[KEEPS_POWER ? height : 1][KEEPS_POWER ? width : 1];
  int first = (BORDER - STEPS) * (PITCH + 1), left = TX * BX * blockIdx.x, top = TY * BY * blockIdx.y, now = 1;
  power += first;
  from += first;
#pragma unroll
  for (int j = threadIdx.y; j < height; j += BY) {
#pragma unroll
    for (int i = threadIdx.x; i < width; i += BX) {
      bool inside = left + i < PITCH && top + j < PITCH;
      int at = (top + j) * PITCH + left + i;
      cells[now][j][i] = inside ? from[at] : 0.0f;
      if (!inside) cells[1 - now][j][i] = 0.0f;
      if (KEEPS_POWER) kept[j][i] = inside ? power[at] : 0.0f;
    }
  }
  __syncthreads();
#pragma unroll UNROLLED
  for (int step = 1; step <= STEPS; ++step) {
#pragma unroll
    for (int j = threadIdx.y + step; j < height - step; j += BY) {
#pragma unroll
      for (int i = threadIdx.x + step; i < width - step; i += BX) {
        float source = 0.0f, cell = cells[now][j][i];
        if (KEEPS_POWER) source = kept[j][i];
        else if (left + i < PITCH && top + j < PITCH) source = power[(top + j) * PITCH + left + i];
        // As published, 2.0 is of double precision.
        cells[1 - now][j][i] = cell + factor * (source + (cells[now][j + 1][i] + cells[now][j - 1][i] - 2.0 * cell) * ry +
                                                (cells[now][j][i + 1] + cells[now][j][i - 1] - 2.0 * cell) * rx +
                                                (80.0f - cell) * rz);
      }
    }
    __syncthreads();
    now = 1 - now;
  }
#pragma unroll
  for (int b = 0; b < TY; ++b) {
#pragma unroll
    for (int a = 0; a < TX; ++a) {
      int i = a * BX + threadIdx.x, j = b * BY + threadIdx.y;
      if (left + i < CELLS && top + j < CELLS) to[(top + j) * CELLS + left + i] = cells[now][j + STEPS][i + STEPS];
    }
  }
}

__global__ void transpose_rows(float *to, const float *from, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) to[x * n + y] = from[y * n + x];
}

__global__ void transpose_columns(float *to, const float *from, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) to[y * n + x] = from[x * n + y];
}
