// c = a * b for square matrices of n rows: one work-item an element, straight from global memory.
kernel void matmul(global const float *a, global const float *b, global float *c, int n)
{
    int column = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// The same through tiles in local memory, which a work-group of TILE x TILE loads together.
#ifndef TILE
#define TILE 8
#endif

kernel void matmul_tiled(global const float *a, global const float *b, global float *c, int n)
{
    local float a_tile[TILE][TILE];
    local float b_tile[TILE][TILE];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int column = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        a_tile[y][x] = a[row * n + start + x];
        b_tile[y][x] = b[(start + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += a_tile[y][k] * b_tile[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
