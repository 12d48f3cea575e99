#define TILE 16

kernel void tiled_matmul(global const float *a, global const float *b, global float *c, int n) {
  local float tile_a[TILE][TILE];
  local float tile_b[TILE][TILE];
  int x = get_local_id(0);
  int y = get_local_id(1);
  int column = get_global_id(0);
  int row = get_global_id(1);
  float sum = 0.0f;
  for (int start = 0; start < n; start += TILE) {
    tile_a[y][x] = a[row * n + start + x];
    tile_b[y][x] = b[(start + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; k++)
      sum += tile_a[y][k] * tile_b[k][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}
