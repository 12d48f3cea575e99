// Product of two square matrices. Each work-group of GROUP x GROUP work-items computes a tile, each work-item
// WORK elements of a column of it; with STAGE, tiles of both matrices go through local memory.
#define TILE (GROUP * WORK)

kernel void matmul(int n, global const float *a, global const float *b, global float *c) {
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_group_id(0) * GROUP + x;
    const int row = get_group_id(1) * TILE + y;
    float sum[WORK];
    for (int w = 0; w < WORK; ++w) sum[w] = 0.0f;
#if STAGE
    local float left[TILE][GROUP], right[GROUP][GROUP];
    for (int k = 0; k < n; k += GROUP) {
        for (int w = 0; w < WORK; ++w) left[y + w * GROUP][x] = a[(row + w * GROUP) * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < GROUP; ++j)
            for (int w = 0; w < WORK; ++w) sum[w] += left[y + w * GROUP][j] * right[j][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (int k = 0; k < n; ++k)
        for (int w = 0; w < WORK; ++w) sum[w] += a[(row + w * GROUP) * n + k] * b[k * n + column];
#endif
    for (int w = 0; w < WORK; ++w) c[(row + w * GROUP) * n + column] = sum[w];
}
