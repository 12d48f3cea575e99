/* Best local alignment of two sequences with affine gaps (Smith-Waterman, Gotoh).
 *
 * score[i][j] is the best score of an alignment that ends with query[i] over database[j], or a gap
 * there. It needs its neighbours above, left and diagonally above, so all tiles on an anti-diagonal of
 * tiles can be filled at once, and within a tile all cells on an anti-diagonal of cells. path[i][j]
 * keeps which neighbour a score came from, for the way back.
 */

/* The driver takes as many work-items for a tile as it has columns. */
#define TILE 32

/* A gap that has not begun. Far enough from INT_MIN for its extension not to wrap around. */
#define NO_GAP (-(1 << 30))

/* What a path cell says: where the score came from ... */
#define STOP 0
#define MATCH 1
#define GAP_IN_QUERY 2    /* from the left: database[j] stands alone */
#define GAP_IN_DATABASE 3 /* from above: query[i] stands alone */
#define FROM_MASK 3
/* ... and whether a gap that ends here is longer than one letter. */
#define LONG_GAP_IN_QUERY 4
#define LONG_GAP_IN_DATABASE 8

/* Fill the tiles of one anti-diagonal, one work-group a tile. first_tile_row is that of the lowest group.
 *
 * gap_at_row holds, for each row, the best score that ends with a gap in the query in the last column of
 * the tiles done; gap_at_column likewise for gaps in the database. best_score and best_row hold each
 * column's best. No other tile of the anti-diagonal has the same rows or columns. */
__kernel void MatchStringGPUSync(__global const uchar *query, int query_length,
                                 __global const uchar *database, int database_length,
                                 __constant int *similarity, int letters, int gap_open, int gap_extend,
                                 int diagonal, int first_tile_row,
                                 __global int *score, __global uchar *path,
                                 __global int *gap_at_row, __global int *gap_at_column,
                                 __global int *best_score, __global int *best_row)
{
    __local int tile[TILE + 1][TILE + 1]; /* scores, with those of the row above and the column before */
    __local int left_gap[TILE];
    __local uchar from[TILE][TILE];
    __local uchar tile_query[TILE];

    int item = get_local_id(0);
    int tile_row = first_tile_row + get_group_id(0);
    int row0 = tile_row * TILE;
    int column0 = (diagonal - tile_row) * TILE;
    int column = column0 + item;
    bool has_column = column < database_length;
    int rows = min(TILE, query_length - row0);

    tile[0][item + 1] = row0 > 0 && has_column ? score[(size_t)(row0 - 1) * database_length + column] : 0;
    if (item == 0)
        tile[0][0] = row0 > 0 && column0 > 0 ? score[(size_t)(row0 - 1) * database_length + column0 - 1] : 0;
    if (item < rows) {
        int row = row0 + item;
        tile[item + 1][0] = column0 > 0 ? score[(size_t)row * database_length + column0 - 1] : 0;
        left_gap[item] = column0 > 0 ? gap_at_row[row] : NO_GAP;
        tile_query[item] = query[row];
    }
    int above_gap = row0 > 0 && has_column ? gap_at_column[column] : NO_GAP;
    int best = row0 > 0 && has_column ? best_score[column] : 0;
    int best_at = row0 > 0 && has_column ? best_row[column] : 0;
    int letter = has_column ? database[column] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Each work-item goes down its column, one row behind the work-item to its left. */
    for (int step = 0; step < rows + TILE - 1; step++) {
        int row = step - item;
        if (row >= 0 && row < rows && has_column) {
            int opened = tile[row + 1][item] - gap_open;
            int extended = left_gap[row] - gap_extend;
            int query_gap = max(opened, extended);
            uchar way = extended > opened ? LONG_GAP_IN_QUERY : 0;

            opened = tile[row][item + 1] - gap_open;
            extended = above_gap - gap_extend;
            int database_gap = max(opened, extended);
            way |= extended > opened ? LONG_GAP_IN_DATABASE : 0;

            int here = tile[row][item] + similarity[tile_query[row] * letters + letter];
            uchar source = MATCH;
            if (query_gap > here) {
                here = query_gap;
                source = GAP_IN_QUERY;
            }
            if (database_gap > here) {
                here = database_gap;
                source = GAP_IN_DATABASE;
            }
            if (here <= 0) {
                here = 0;
                source = STOP;
            }
            if (here > best) {
                best = here;
                best_at = row0 + row;
            }
            tile[row + 1][item + 1] = here;
            left_gap[row] = query_gap;
            above_gap = database_gap;
            from[row][item] = way | source;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (item < rows)
        gap_at_row[row0 + item] = left_gap[item];
    if (has_column) {
        gap_at_column[column] = above_gap;
        best_score[column] = best;
        best_row[column] = best_at;
        /* Written row by row at the end, so that neighbouring work-items write neighbouring cells. */
        for (int row = 0; row < rows; row++) {
            size_t cell = (size_t)(row0 + row) * database_length + column;
            score[cell] = tile[row + 1][item + 1];
            path[cell] = from[row][item];
        }
    }
}

/* One work-item walks from the best cell back to where its alignment begins, and writes the alignment,
 * last letter first, as pairs of positions (-1 is a gap). summary: score, length. */
__kernel void trace_back2(__global const uchar *path, int database_length,
                          __global const int *best_score, __global const int *best_row,
                          __global int *query_positions, __global int *database_positions,
                          __global int *summary)
{
    int best = 0, row = -1, column = -1;
    for (int j = 0; j < database_length; j++)
        if (best_score[j] > best) {
            best = best_score[j];
            row = best_row[j];
            column = j;
        }

    int length = 0;
    int in_gap = 0; /* the kind of gap that the walk is in */
    while (row >= 0 && column >= 0) {
        uchar cell = path[(size_t)row * database_length + column];
        int way = in_gap ? in_gap : cell & FROM_MASK;
        if (way == STOP)
            break;
        query_positions[length] = way == GAP_IN_QUERY ? -1 : row;
        database_positions[length] = way == GAP_IN_DATABASE ? -1 : column;
        length++;
        in_gap = 0;
        if ((way == GAP_IN_QUERY && (cell & LONG_GAP_IN_QUERY))
            || (way == GAP_IN_DATABASE && (cell & LONG_GAP_IN_DATABASE)))
            in_gap = way;
        row -= way != GAP_IN_QUERY;
        column -= way != GAP_IN_DATABASE;
    }
    summary[0] = best;
    summary[1] = length;
}
