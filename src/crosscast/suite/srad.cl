/* Speckle-reducing anisotropic diffusion of an image; one work-item has one pixel.
 *
 * srad_cuda_1 takes each pixel's differences to its four neighbours and, from these, its diffusion
 * coefficient: near 1 where the image varies no more than speckle does, near 0 at an edge. srad_cuda_2
 * moves each pixel by the divergence of the coefficients times the differences. Work-groups keep what
 * neighbours share in tiles of 16 x 16 pixels in local memory. Outside, the image goes on with its edge.
 */

#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void srad_cuda_1(
    __global float *restrict north,
    __global float *restrict south,
    __global float *restrict west,
    __global float *restrict east,
    __global const float *restrict image,
    __global float *restrict coefficient,
    int rows,
    int columns,
    float speckle)
{
    __local float tile[TILE + 2][TILE + 2];
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0) + 1;
    const int y = get_local_id(1) + 1;
    /* Work-items beyond the edge load too: a tile's last row inside may need what they load. */
    const int near_column = min(column, columns - 1);
    const int near_row = min(row, rows - 1);

    tile[y][x] = image[near_row * columns + near_column];
    if (y == 1)
        tile[0][x] = image[max(near_row - 1, 0) * columns + near_column];
    if (y == TILE)
        tile[TILE + 1][x] = image[min(row + 1, rows - 1) * columns + near_column];
    if (x == 1)
        tile[y][0] = image[near_row * columns + max(near_column - 1, 0)];
    if (x == TILE)
        tile[y][TILE + 1] = image[near_row * columns + min(column + 1, columns - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= rows || column >= columns)
        return;

    const float here = tile[y][x];
    const float to_north = tile[y - 1][x] - here;
    const float to_south = tile[y + 1][x] - here;
    const float to_west = tile[y][x - 1] - here;
    const float to_east = tile[y][x + 1] - here;

    /* Squared coefficient of variation from the gradient and the Laplacian, relative to the pixel. */
    const float gradient2 =
        (to_north * to_north + to_south * to_south + to_west * to_west + to_east * to_east) / (here * here);
    const float laplacian = (to_north + to_south + to_west + to_east) / here;
    const float mean = 1.0f + 0.25f * laplacian;
    const float variation = (0.5f * gradient2 - 0.0625f * laplacian * laplacian) / (mean * mean);
    const float excess = (variation - speckle) / (speckle * (1.0f + speckle));

    const int pixel = row * columns + column;
    coefficient[pixel] = clamp(1.0f / (1.0f + excess), 0.0f, 1.0f);
    north[pixel] = to_north;
    south[pixel] = to_south;
    west[pixel] = to_west;
    east[pixel] = to_east;
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void srad_cuda_2(
    __global const float *restrict north,
    __global const float *restrict south,
    __global const float *restrict west,
    __global const float *restrict east,
    __global float *restrict image,
    __global const float *restrict coefficient,
    int rows,
    int columns,
    float step)
{
    __local float tile[TILE + 1][TILE + 1];
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int near_column = min(column, columns - 1);
    const int near_row = min(row, rows - 1);

    tile[y][x] = coefficient[near_row * columns + near_column];
    if (y == TILE - 1)
        tile[TILE][x] = coefficient[min(row + 1, rows - 1) * columns + near_column];
    if (x == TILE - 1)
        tile[y][TILE] = coefficient[near_row * columns + min(column + 1, columns - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= rows || column >= columns)
        return;

    /* The coefficient of a side is that of its southern or eastern pixel. */
    const int pixel = row * columns + column;
    const float here = tile[y][x];
    const float divergence = here * (north[pixel] + west[pixel]) + tile[y + 1][x] * south[pixel]
        + tile[y][x + 1] * east[pixel];
    image[pixel] += 0.25f * step * divergence;
}
