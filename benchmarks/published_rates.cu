// Kernels that do what published ones do, whose rates were measured on many devices.

// Hashes: a work-item has all words of a candidate but the first, of which it tries many. As brute force does, the
// last rounds are left out: they are undone from the wanted digest.
template <typename T> __device__ T turned(T x, int n) { return __builtin_elementwise_fshl(x, x, (T)n); }

__global__ void md5(const unsigned *candidates, const unsigned *firsts, unsigned wanted, unsigned *found, int n) {
  constexpr unsigned char shifts[3][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}};
  constexpr unsigned char words[43] = {0, 1, 2,  3,  4, 5,  6,  7, 8, 9, 10, 11, 12, 13, 14, 15, 1, 6, 11, 0, 5, 10,
                                       15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3};
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned w[16];
  for (int k = 0; k < 16; ++k) w[k] = k < 4 || k == 14 ? candidates[16 * i + k] : 0;
  for (int r = 0; r < n; ++r) {
    unsigned first = w[0] | firsts[r], v[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
#pragma unroll
    for (int k = 0; k < 43; ++k) {
      unsigned &a = v[-k & 3], b = v[(1 - k) & 3], c = v[(2 - k) & 3], d = v[(3 - k) & 3];
      unsigned f = k < 16 ? d ^ (b & (c ^ d)) : k < 32 ? c ^ (d & (b ^ c)) : b ^ c ^ d;
      a += f + ((words[k] ? w[words[k]] : 0) + 0xd76aa478u * (2 * k + 1));
      if (words[k] == 0) a += first;
      a = turned(a, shifts[k / 16][k % 4]) + b;
    }
    if (v[2] == wanted) found[0] = r;
  }
}

template <typename T, int ROUNDS>
__global__ void sha2(const T *candidates, const T *firsts, T wanted, unsigned *found, int n) {
  constexpr bool wide = sizeof(T) == 8;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  T own[16];
  for (int k = 0; k < 16; ++k) own[k] = k < 4 || k == 15 ? candidates[16 * i + k] : 0;
  for (int r = 0; r < n; ++r) {
    T w[16], v[8];
#pragma unroll
    for (int k = 0; k < 16; ++k) w[k] = own[k];
    w[0] |= firsts[r];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = (T)0x6a09e667f3bcc908ull * (2 * k + 1);
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
      T a = v[-k & 7], b = v[(1 - k) & 7], c = v[(2 - k) & 7], &d = v[(3 - k) & 7];
      T e = v[(4 - k) & 7], f = v[(5 - k) & 7], g = v[(6 - k) & 7], &h = v[(7 - k) & 7];
      if (k >= 16) {
        T x = w[(k + 1) & 15], y = w[(k + 14) & 15];
        T of_x = wide ? turned(x, 63) ^ turned(x, 56) ^ (x >> 7) : turned(x, 25) ^ turned(x, 14) ^ (x >> 3);
        T of_y = wide ? turned(y, 45) ^ turned(y, 3) ^ (y >> 6) : turned(y, 15) ^ turned(y, 13) ^ (y >> 10);
        w[k & 15] += of_x + w[(k + 9) & 15] + of_y;
      }
      T of_e = wide ? turned(e, 50) ^ turned(e, 46) ^ turned(e, 23) : turned(e, 26) ^ turned(e, 21) ^ turned(e, 7);
      T of_a = wide ? turned(a, 36) ^ turned(a, 30) ^ turned(a, 25) : turned(a, 30) ^ turned(a, 19) ^ turned(a, 10);
      h += of_e + (g ^ (e & (f ^ g))) + (T)0x428a2f98d728ae22ull * (2 * k + 1) + w[k & 15];
      d += h;
      h += of_a + ((a & b) | (c & (a | b)));
    }
    if (v[(7 - ROUNDS) & 7] == wanted) found[0] = r;
  }
}

// All bodies attract each other; a block reads them by tiles.
template <typename T> struct Four { T x, y, z, w; };

template <typename T>
__global__ void bodies(Four<T> *next, Four<T> *at, Four<T> *velocity, T softening, T step, int tiles) {
  __shared__ Four<T> tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Four<T> own = at[i];
  T x = 0, y = 0, z = 0;
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = at[t * blockDim.x + threadIdx.x];
    __syncthreads();
#pragma unroll 128
    for (int k = 0; k < blockDim.x; ++k) {
      T dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
      T near = rsqrt(dx * dx + dy * dy + dz * dz + softening), s = tile[k].w * (near * near * near);
      x += dx * s, y += dy * s, z += dz * s;
    }
    __syncthreads();
  }
  Four<T> v = velocity[i];
  v.x += x * step, v.y += y * step, v.z += z * step;
  own.x += v.x * step, own.y += v.y * step, own.z += v.z * step;
  next[i] = own, velocity[i] = v;
}

// Rodinia's: literals of double precision among values of single precision.
constexpr int S = 16;

__global__ void layer_forward(float *input, float *weights, float *sums, int hidden) {
  __shared__ float node[S], product[S][S];
  int tx = threadIdx.x, ty = threadIdx.y, by = blockIdx.y;
  int at = (hidden + 1) * S * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
  if (tx == 0) node[ty] = input[S * by + ty + 1];
  __syncthreads();
  product[ty][tx] = weights[at];
  __syncthreads();
  product[ty][tx] = product[ty][tx] * node[ty];
  __syncthreads();
  for (int i = 1; i <= __log2f(S); ++i) {
    int power = __powf(2, i);
    if (ty % power == 0) product[ty][tx] = product[ty][tx] + product[ty + power / 2][tx];
    __syncthreads();
  }
  weights[at] = product[ty][tx];
  __syncthreads();
  if (tx == 0) sums[by * hidden + ty] = product[tx][ty];
}

__global__ void adjust_weights(float *delta, int hidden, float *input, float *weights, float *before) {
  int tx = threadIdx.x, ty = threadIdx.y, by = blockIdx.y;
  int at = (hidden + 1) * S * by + (hidden + 1) * ty + tx + 1 + (hidden + 1), y = S * by + ty + 1, x = tx + 1;
  weights[at] += ((0.3 * delta[x] * input[y]) + (0.3 * before[at]));
  before[at] = ((0.3 * delta[x] * input[y]) + (0.3 * before[at]));
  __syncthreads();
  if (ty == 0 && by == 0) {
    weights[x] += ((0.3 * delta[x]) + (0.3 * before[x]));
    before[x] = ((0.3 * delta[x]) + (0.3 * before[x]));
  }
}

__device__ bool within(int x, int low, int high) { return x >= low && x <= high; }

__global__ void hot_spot(int steps, float *power, float *from, float *to, int columns, int rows, float capacity,
                         float rx, float ry, float rz, float step) {
  __shared__ float now[S][S], heat[S][S], then[S][S];
  int tx = threadIdx.x, ty = threadIdx.y, inner = S - 2 * steps;
  float rate = step / capacity, x1 = 1 / rx, y1 = 1 / ry, z1 = 1 / rz, ambient = 80.0;
  int top = inner * blockIdx.y - steps, left = inner * blockIdx.x - steps, y = top + ty, x = left + tx;
  int at = columns * y + x;
  if (within(y, 0, rows - 1) && within(x, 0, columns - 1)) now[ty][tx] = from[at], heat[ty][tx] = power[at];
  __syncthreads();
  int y_min = top < 0 ? -top : 0, x_min = left < 0 ? -left : 0;
  int y_max = top + S > rows ? rows - 1 - top : S - 1, x_max = left + S > columns ? columns - 1 - left : S - 1;
  int n = max(ty - 1, y_min), s = min(ty + 1, y_max), w = max(tx - 1, x_min), e = min(tx + 1, x_max);
  bool done = false;
  for (int i = 0; i < steps; ++i) {
    done = false;
    if (within(tx, i + 1, S - i - 2) && within(ty, i + 1, S - i - 2) && within(tx, x_min, x_max) &&
        within(ty, y_min, y_max)) {
      done = true;
      then[ty][tx] = now[ty][tx] + rate * (heat[ty][tx] + (now[s][tx] + now[n][tx] - 2.0 * now[ty][tx]) * y1 +
                                           (now[ty][e] + now[ty][w] - 2.0 * now[ty][tx]) * x1 +
                                           (ambient - now[ty][tx]) * z1);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (done) now[ty][tx] = then[ty][tx];
    __syncthreads();
  }
  if (done) to[at] = then[ty][tx];
}

__global__ void perimeter(float *m, int n, int offset) {
  __shared__ float diagonal[S][S], row[S][S], column[S][S];
  bool first = threadIdx.x < S;
  int own = first ? threadIdx.x : threadIdx.x - S, to = (blockIdx.x + 1) * S;
  for (int i = first ? 0 : S / 2; i < (first ? S / 2 : S); ++i)
    diagonal[i][own] = m[(offset + i) * n + offset + own];
  for (int i = 0; i < S; ++i)
    if (first)
      row[i][own] = m[(offset + i) * n + offset + to + own];
    else
      column[i][own] = m[(offset + to + i) * n + offset + own];
  __syncthreads();
  if (first) {
    for (int i = 1; i < S; ++i)
      for (int j = 0; j < i; ++j) row[i][own] -= diagonal[i][j] * row[j][own];
  } else {
    for (int i = 0; i < S; ++i) {
      for (int j = 0; j < i; ++j) column[own][i] -= column[own][j] * diagonal[j][i];
      column[own][i] /= diagonal[i][i];
    }
  }
  __syncthreads();
  for (int i = 0; i < S; ++i)
    if (first) {
      if (i) m[(offset + i) * n + offset + to + own] = row[i][own];
    } else {
      m[(offset + to + i) * n + offset + own] = column[i][own];
    }
}

// RAJAPerf's, in double precision; an index of 64 bits for each work-item.
#define EACH long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i >= n) return

__global__ void daxpy(double *y, double *x, double a, long n) { EACH; y[i] += a * x[i]; }
__global__ void daxpy_atomic(double *y, double *x, double a, long n) { EACH; atomicAdd(&y[i], a * x[i]); }
__global__ void copy8(double *y, double *x, long n) { EACH; for (int k = 0; k < 8; ++k) y[k * n + i] = x[k * n + i]; }
__global__ void roots(double *a, double *b, double *c, double *x1, double *x2, long n) {
  EACH;
  double s = b[i] * b[i] - 4.0 * a[i] * c[i];
  if (s >= 0) {
    s = sqrt(s);
    x2[i] = (-b[i] + s) / (2.0 * a[i]), x1[i] = (-b[i] - s) / (2.0 * a[i]);
  } else {
    x2[i] = x1[i] = 0.0;
  }
}
__global__ void state(double *x, double *y, double *z, double *u, double q, double r, double t, long n) {
  EACH;
  x[i] = u[i] + r * (z[i] + r * y[i]) +
         t * (u[i + 3] + r * (u[i + 2] + r * u[i + 1]) + t * (u[i + 6] + q * (u[i + 5] + q * u[i + 4])));
}
__global__ void planck(double *x, double *y, double *u, double *v, double *w, long n) {
  EACH;
  y[i] = u[i] / v[i];
  w[i] = x[i] / (exp(y[i]) - 1.0);
}
__constant__ double taps[16];
__global__ void fir(double *out, double *in, long n) {
  EACH;
  double sum = 0.0;
  for (int k = 0; k < 16; ++k) sum += taps[k] * in[i + k];
  out[i] = sum;
}
__global__ void differences(double *px, double *cx, long n) {
  EACH;
  double ar = cx[i + n * 4];
#pragma unroll
  for (int k = 4; k < 13; ++k) {
    double br = ar - px[i + n * k];
    px[i + n * k] = ar;
    ar = br;
  }
  px[i + n * 13] = ar;
}
__global__ void nodes(double *x, double *volume, long *zones, long row, long plane, long n) {
  EACH;
  long at = zones[i];
  double part = 0.125 * volume[at];
  for (int k = 0; k < 8; ++k) atomicAdd(&x[at + (k & 1) + (k >> 1 & 1) * row + (k >> 2) * plane], part);
}

__global__ void pi_atomic(double dx, double *to, long n) {
  EACH;
  double x = (i + 0.5) * dx;
  atomicAdd(to, dx / (1.0 + x * x));
}

__global__ void rows_by_vector(double *a, double *b, double *x, double *y, double alpha, double beta, long n) {
  EACH;
  double tmp = 0.0, dot = 0.0;
  for (long j = 0; j < n; ++j) tmp += a[j + i * n] * x[j], dot += b[j + i * n] * x[j];
  y[i] = alpha * tmp + beta * dot;
}
__global__ void shared_product(int n, double *c, double *a, double *b) {
  __shared__ double as[S][S], bs[S][S], cs[S][S];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * S + ty, col = blockIdx.x * S + tx;
  cs[ty][tx] = 0;
  for (int k = 0; k < (S + n - 1) / S; ++k) {
    as[ty][tx] = k * S + tx < n && row < n ? a[row * n + k * S + tx] : 0.0;
    bs[ty][tx] = k * S + ty < n && col < n ? b[(k * S + ty) * n + col] : 0.0;
    __syncthreads();
    for (int m = 0; m < S; ++m) cs[ty][tx] += as[ty][m] * bs[m][tx];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = cs[ty][tx];
}
__global__ void jacobi(double *b, double *a, long n) {
  long i = 1 + blockIdx.y * (long)blockDim.y + threadIdx.y, j = 1 + blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n - 1 || j >= n - 1) return;
  b[j + i * n] = 0.2 * (a[j + i * n] + a[j - 1 + i * n] + a[j + 1 + i * n] + a[j + (i - 1) * n] + a[j + (i + 1) * n]);
}
__global__ void heat3(double *b, double *a, long n) {
  long k = 1 + blockIdx.x * (long)blockDim.x + threadIdx.x, j = 1 + blockIdx.y * (long)blockDim.y + threadIdx.y;
  long i = 1 + blockIdx.z, at = k + n * (j + n * i), plane = n * n;
  if (j >= n - 1 || k >= n - 1) return;
  b[at] = 0.125 * (a[at + plane] - 2.0 * a[at] + a[at - plane]) + 0.125 * (a[at + n] - 2.0 * a[at] + a[at - n]) +
          0.125 * (a[at + 1] - 2.0 * a[at] + a[at - 1]) + a[at];
}
__global__ void shortest(double *to, double *from, long k, long n) {
  long i = blockIdx.y * (long)blockDim.y + threadIdx.y, j = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n || j >= n) return;
  double by = from[k + i * n] + from[j + k * n], now = from[j + i * n];
  to[j + i * n] = now < by ? now : by;
}

// miniBUDE's: the energy of P poses of a ligand at a protein.
struct Atom { float x, y, z; int type; };
struct Force { int bond; float radius, hphb, charge; };
constexpr int F = 70, E = 69;

template <int P>
__global__ void dock(int ligands, int proteins, const Atom *protein, const Atom *ligand, const float *poses,
                     float *energies, const Force *forces, int n) {
  int first = blockIdx.x * blockDim.x * P + threadIdx.x;
  float total[P], m[P][3][4];
  for (int i = 0; i < P; ++i) {
    int at = first + i * blockDim.x;
    float sx = sinf(poses[at]), cx = cosf(poses[at]), sy = sinf(poses[n + at]), cy = cosf(poses[n + at]);
    float sz = sinf(poses[2 * n + at]), cz = cosf(poses[2 * n + at]);
    m[i][0][0] = cy * cz, m[i][0][1] = sx * sy * cz - cx * sz, m[i][0][2] = cx * sy * cz + sx * sz;
    m[i][1][0] = cy * sz, m[i][1][1] = sx * sy * sz + cx * cz, m[i][1][2] = cx * sy * sz - sx * cz;
    m[i][2][0] = -sy, m[i][2][1] = sx * cy, m[i][2][2] = cx * cy;
    for (int k = 0; k < 3; ++k) m[i][k][3] = poses[(3 + k) * n + at];
    total[i] = 0.0f;
  }
  for (int l = 0; l < ligands; ++l) {
    Atom a = ligand[l];
    Force of_l = forces[a.type];
    float at[P][3];
    for (int i = 0; i < P; ++i)
      for (int k = 0; k < 3; ++k) at[i][k] = m[i][k][3] + a.x * m[i][k][0] + a.y * m[i][k][1] + a.z * m[i][k][2];
    for (int p = 0; p < proteins; ++p) {
      Atom b = protein[p];
      Force of_p = forces[b.type];
      float reach = of_p.radius + of_l.radius, per_reach = 1.0f / reach;
      bool bonds = of_p.bond == F && of_l.bond == F, either = of_p.bond == E || of_l.bond == E;
      float far = bonds ? 4.0f : 2.0f, per_far = bonds ? 0.25f : 0.5f;
      float p_hphb = of_p.hphb * (of_p.hphb < 0 && of_l.hphb > 0 ? -1.0f : 1.0f);
      float l_hphb = of_l.hphb * (of_p.hphb > 0 && of_l.hphb < 0 ? -1.0f : 1.0f);
      float apart = of_p.hphb < 0 ? (of_l.hphb < 0 ? 5.5f : 1.0f) : (of_l.hphb < 0 ? 1.0f : -3.4e38f);
      float per_apart = 1.0f / apart, charge = of_l.charge * of_p.charge, solve = p_hphb + l_hphb;
      for (int i = 0; i < P; ++i) {
        float x = at[i][0] - b.x, y = at[i][1] - b.y, z = at[i][2] - b.z, r = sqrtf(x * x + y * y + z * z);
        float gap = r - reach;
        bool near = gap < 0.0f;
        total[i] += (1.0f - r * per_reach) * (near ? 2.0f * 38.0f : 0.0f);
        float electric = charge * ((near ? 1.0f : 1.0f - gap * per_far) * (gap < far ? 1.0f : 0.0f));
        total[i] += (either ? -fabsf(electric) : electric) * 45.0f;
        total[i] += solve * (gap < apart && of_p.hphb != 0 ? 1.0f : 0.0f) * (near ? 1.0f : 1.0f - gap * per_apart);
      }
    }
  }
  for (int i = 0; i < P; ++i) energies[first + i * blockDim.x] = total[i] * 0.5f;
}
