// LU decomposition in place, without pivoting, of a row-major matrix of n by n, n a multiple of BLOCK.
// L has ones on its diagonal, which are not stored. Step after step, `start` is the first row and column
// of the diagonal block, and the part of the matrix before it is done:
//
// lud_diagonal   decomposes the diagonal block: one work-group of BLOCK work-items.
// lud_perimeter  solves for the blocks to the right of it (part of U) and below it (part of L): a
//                work-group of 2 * BLOCK work-items a pair of blocks, one half of them for each.
// lud_internal   subtracts the product of its L and U blocks from each block that is left: a work-group
//                of BLOCK by BLOCK work-items a block.

#define BLOCK 16

kernel void lud_diagonal(global float *matrix, int n, int start)
{
    local float block[BLOCK][BLOCK];
    int item = get_local_id(0);
    global float *corner = matrix + start * n + start;

    for (int row = 0; row < BLOCK; row++)
        block[row][item] = corner[row * n + item];
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int step = 0; step < BLOCK - 1; step++) {
        // A column of L: work-items own rows.
        if (item > step) {
            float value = block[item][step];
            for (int k = 0; k < step; k++)
                value -= block[item][k] * block[k][step];
            block[item][step] = value / block[step][step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // The next row of U: work-items own columns.
        if (item > step) {
            float value = block[step + 1][item];
            for (int k = 0; k <= step; k++)
                value -= block[step + 1][k] * block[k][item];
            block[step + 1][item] = value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (int row = 0; row < BLOCK; row++)
        corner[row * n + item] = block[row][item];
}

kernel void lud_perimeter(global float *matrix, int n, int start)
{
    local float diagonal[BLOCK][BLOCK];
    local float right[BLOCK][BLOCK];
    local float below[BLOCK][BLOCK];
    int item = get_local_id(0) % BLOCK;
    int half_of_group = get_local_id(0) / BLOCK;
    int distance = (get_group_id(0) + 1) * BLOCK;
    global float *corner = matrix + start * n + start;
    global float *right_corner = corner + distance;
    global float *below_corner = corner + distance * n;

    // Both halves load; each takes every other row.
    for (int row = half_of_group; row < BLOCK; row += 2) {
        diagonal[row][item] = corner[row * n + item];
        right[row][item] = right_corner[row * n + item];
        below[row][item] = below_corner[row * n + item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (half_of_group == 0) {
        // Forward substitution with L: a work-item owns a column.
        for (int row = 1; row < BLOCK; row++) {
            float value = right[row][item];
            for (int k = 0; k < row; k++)
                value -= diagonal[row][k] * right[k][item];
            right[row][item] = value;
        }
    } else {
        // The same with U from the other side: a work-item owns a row.
        for (int column = 0; column < BLOCK; column++) {
            float value = below[item][column];
            for (int k = 0; k < column; k++)
                value -= below[item][k] * diagonal[k][column];
            below[item][column] = value / diagonal[column][column];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int row = half_of_group; row < BLOCK; row += 2) {
        right_corner[row * n + item] = right[row][item];
        below_corner[row * n + item] = below[row][item];
    }
}

kernel void lud_internal(global float *matrix, int n, int start)
{
    local float lower[BLOCK][BLOCK];
    local float upper[BLOCK][BLOCK];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int column = start + BLOCK + get_global_id(0);
    int row = start + BLOCK + get_global_id(1);

    lower[y][x] = matrix[row * n + start + x];
    upper[y][x] = matrix[(start + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
    for (int k = 0; k < BLOCK; k++)
        sum += lower[y][k] * upper[k][x];
    matrix[row * n + column] -= sum;
}
