/* Needleman-Wunsch: scores of the best global alignments of two sequences' beginnings.
 *
 * A score needs those above, to the left and above left. A work-group fills one tile of 16 x 16 scores
 * by its anti-diagonals, in local memory; a launch fills all tiles on one anti-diagonal of tiles. The
 * host launches needle_opencl_shared_1 from the upper left corner to the longest anti-diagonal, and then
 * needle_opencl_shared_2 down to the lower right corner.
 */

#define TILE 16

/* Set a score from its three neighbours, all inside the tile and its upper and left border. */
static void set_score(
    __local int (*scores)[TILE + 1], __local int (*substitution)[TILE], int row, int column, int penalty)
{
    const int aligned = scores[row - 1][column - 1] + substitution[row - 1][column - 1];
    const int gap = max(scores[row][column - 1], scores[row - 1][column]) - penalty;
    scores[row][column] = max(aligned, gap);
}

/* Fill one tile. `scores` is (n + 1) x (n + 1) with first row and column given, `substitution` n x n. */
static void fill_tile(
    __global const int *substitution, __global int *scores, int n, int penalty, int tile_row, int tile_column,
    __local int (*tile)[TILE + 1], __local int (*tile_substitution)[TILE])
{
    const int item = get_local_id(0);
    const int first_row = tile_row * TILE;
    const int column = tile_column * TILE + item;
    const int stride = n + 1;
    /* The last tiles may reach over the edge, by rows and columns that no score inside depends on. */
    const int rows = min(TILE, n - first_row);
    const bool inside = column < n;

    if (item == 0)
        tile[0][0] = scores[first_row * stride + column];
    tile[0][item + 1] = inside ? scores[first_row * stride + column + 1] : 0;
    tile[item + 1][0] = item < rows ? scores[(first_row + item + 1) * stride + tile_column * TILE] : 0;
    for (int i = 0; i < TILE; ++i)
        tile_substitution[i][item] = inside && i < rows ? substitution[(first_row + i) * n + column] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int diagonal = 0; diagonal < TILE; ++diagonal) {
        if (item <= diagonal)
            set_score(tile, tile_substitution, diagonal - item + 1, item + 1, penalty);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int left = TILE - 1; left > 0; --left) {
        if (item < left)
            set_score(tile, tile_substitution, TILE - item, TILE - left + item + 1, penalty);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (inside)
        for (int i = 0; i < rows; ++i)
            scores[(first_row + i + 1) * stride + column + 1] = tile[i + 1][item + 1];
}

/* Tiles of the anti-diagonal `diagonal`, which begins at the left edge. */
__kernel __attribute__((reqd_work_group_size(TILE, 1, 1))) void needle_opencl_shared_1(
    __global const int *substitution, __global int *scores, int n, int penalty, int diagonal)
{
    __local int tile[TILE + 1][TILE + 1];
    __local int tile_substitution[TILE][TILE];
    const int group = get_group_id(0);
    fill_tile(substitution, scores, n, penalty, diagonal - group, group, tile, tile_substitution);
}

/* Tiles of an anti-diagonal that ends at the right edge; there are `tiles` tiles from edge to edge. */
__kernel __attribute__((reqd_work_group_size(TILE, 1, 1))) void needle_opencl_shared_2(
    __global const int *substitution, __global int *scores, int n, int penalty, int tiles)
{
    __local int tile[TILE + 1][TILE + 1];
    __local int tile_substitution[TILE][TILE];
    const int group = get_group_id(0);
    const int first_column = tiles - (int)get_num_groups(0);
    fill_tile(
        substitution, scores, n, penalty, tiles - 1 - group, first_column + group, tile, tile_substitution);
}
