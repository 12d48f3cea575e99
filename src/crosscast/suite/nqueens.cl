/* Count the ways to complete boards on which the first rows already have their queens.
 *
 * A board is three bit masks over the columns of the next row: those that have a queen, and those that
 * the diagonals of earlier queens reach, going left and going right. Each work-item searches one board
 * depth first. What it must come back to is kept in local memory, a slice a row of the board, in which
 * neighbouring work-items have neighbouring elements.
 */

__kernel void nqueens(__global const uint *columns, __global const uint *lefts, __global const uint *rights,
                      __global uint *solutions, uint boards, uint all_columns, __local uint4 *stack)
{
    uint board = get_global_id(0);
    if (board >= boards)
        return;
    __local uint4 *bottom = stack + get_local_id(0);
    __local uint4 *top = bottom;
    uint taken = columns[board];
    uint left = lefts[board];
    uint right = rights[board];
    uint open = ~(taken | left | right) & all_columns;
    uint found = 0;
    for (;;) {
        if (open == 0) {
            if (top == bottom)
                break;
            top -= get_local_size(0);
            uint4 row = *top;
            open = row.x;
            taken = row.y;
            left = row.z;
            right = row.w;
            continue;
        }
        uint queen = open & -open;
        open ^= queen;
        if ((taken | queen) == all_columns) {
            found++;
            continue;
        }
        *top = (uint4)(open, taken, left, right);
        top += get_local_size(0);
        taken |= queen;
        left = ((left | queen) << 1) & all_columns;
        right = (right | queen) >> 1;
        open = ~(taken | left | right) & all_columns;
    }
    solutions[board] = found;
}
