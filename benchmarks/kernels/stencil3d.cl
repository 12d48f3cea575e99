kernel void stencil3d(global const float *in, global float *out, int n, float centre, float side) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int z = get_global_id(2);
  int i = (z * n + y) * n + x;
  if (x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1)
    out[i] = in[i];
  else
    out[i] = centre * in[i] + side * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n]);
}
