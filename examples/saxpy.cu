// y = a x + y, in one dimension.
#include <cstdio>
#include <vector>

template <class T>
__global__ void saxpy(int n, T a, const T *__restrict__ x, T *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// Crosscast runs the kernel alone; the host's part is here for those who compile it with nvcc.
int main() {
  const int n = 1 << 20;
  std::vector<float> host(n, 1.0f);
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(y, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  saxpy<float><<<n / 256, 256>>>(n, 2.0f, x, y);
  cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%f\n", host[0]);
  cudaFree(x);
  cudaFree(y);
}
