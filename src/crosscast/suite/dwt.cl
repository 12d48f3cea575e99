/* Forward wavelet transform of an image, reversible (5/3, on integers), as JPEG 2000 has it.
 *
 * c_CopySrcToComponents splits a picture of red, green and blue bytes into a plane of integers each.
 * cl_fdwt53Kernel transforms a plane once: along the rows, then along the columns, each by two steps of
 * lifting. Odd samples become what they differ from their neighbours' mean (detail), then even samples
 * are corrected by the details next to them (approximation). Beyond the edge the plane is mirrored.
 */

#define PIXELS 256 /* of a work-group */
#define LEVEL_SHIFT 128

__kernel __attribute__((reqd_work_group_size(PIXELS, 1, 1))) void c_CopySrcToComponents(
    __global int *restrict red,
    __global int *restrict green,
    __global int *restrict blue,
    __global const uchar *restrict source,
    int pixels)
{
    __local uchar bytes[3 * PIXELS];
    const int item = get_local_id(0);
    const int pixel = get_global_id(0);
    const int first = get_group_id(0) * 3 * PIXELS;
    /* Neighbouring work-items load neighbouring bytes; only then they take a pixel each. */
    for (int i = item; i < 3 * PIXELS; i += PIXELS)
        if (first + i < 3 * pixels)
            bytes[i] = source[first + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (pixel >= pixels)
        return;
    red[pixel] = bytes[3 * item] - LEVEL_SHIFT;
    green[pixel] = bytes[3 * item + 1] - LEVEL_SHIFT;
    blue[pixel] = bytes[3 * item + 2] - LEVEL_SHIFT;
}

#define GROUP 16           /* work-items of a work-group, in each dimension */
#define TILE (2 * GROUP)   /* samples that a work-group transforms */
#define BEFORE 2           /* samples around them that they depend on */
#define AFTER 1
#define WIDE (BEFORE + TILE + AFTER)

/* Index of a sample up to two places beyond the edge. */
static int mirrored(int index, int extent)
{
    if (index < 0)
        index = -index;
    if (index >= extent)
        index = 2 * (extent - 1) - index;
    /* What is farther out is not needed, but must be loaded from somewhere. */
    return max(index, 0);
}

static int detail(int sample, int before, int after)
{
    return sample - ((before + after) >> 1);
}

static int approximation(int sample, int before, int after)
{
    return sample + ((before + after + 2) >> 2);
}

/* input: a plane of width x height whose rows are `input_stride` apart. The quarter of approximations goes
 * to `low`, whose rows are `low_stride` apart; details go to the other three quarters of `bands`. */
__kernel __attribute__((reqd_work_group_size(GROUP, GROUP, 1))) void cl_fdwt53Kernel(
    __global const int *input,
    int input_stride,
    __global int *low,
    int low_stride,
    __global int *bands,
    int bands_stride,
    int width,
    int height)
{
    __local int tile[WIDE][WIDE];
    const int item_x = get_local_id(0);
    const int item_y = get_local_id(1);
    const int left = get_group_id(0) * TILE;
    const int top = get_group_id(1) * TILE;

    for (int y = item_y; y < WIDE; y += GROUP) {
        const int row = mirrored(top + y - BEFORE, height);
        for (int x = item_x; x < WIDE; x += GROUP)
            tile[y][x] = input[row * input_stride + mirrored(left + x - BEFORE, width)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Along the rows, those around the tile too: even samples are at even places. */
    for (int y = item_y; y < WIDE; y += GROUP)
        for (int x = 2 * item_x + 1; x < WIDE; x += TILE)
            tile[y][x] = detail(tile[y][x], tile[y][x - 1], tile[y][x + 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = item_y; y < WIDE; y += GROUP) {
        const int x = BEFORE + 2 * item_x;
        tile[y][x] = approximation(tile[y][x], tile[y][x - 1], tile[y][x + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Along the columns, two for each work-item. */
    const int x = BEFORE + 2 * item_x;
    for (int y = 2 * item_y + 1; y < WIDE; y += TILE) {
        tile[y][x] = detail(tile[y][x], tile[y - 1][x], tile[y + 1][x]);
        tile[y][x + 1] = detail(tile[y][x + 1], tile[y - 1][x + 1], tile[y + 1][x + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int y = BEFORE + 2 * item_y;
    tile[y][x] = approximation(tile[y][x], tile[y - 1][x], tile[y + 1][x]);
    tile[y][x + 1] = approximation(tile[y][x + 1], tile[y - 1][x + 1], tile[y + 1][x + 1]);

    /* No barrier: details no longer change, and each work-item stores the approximations it made. */
    const int column = left / 2 + item_x;
    const int row = top / 2 + item_y;
    const int low_width = (width + 1) / 2;
    const int low_height = (height + 1) / 2;
    const bool has_low_column = column < low_width;
    const bool has_high_column = column < width / 2;
    if (row < low_height) {
        if (has_low_column)
            low[row * low_stride + column] = tile[y][x];
        if (has_high_column)
            bands[row * bands_stride + low_width + column] = tile[y][x + 1];
    }
    if (row < height / 2) {
        __global int *below = bands + (low_height + row) * bands_stride;
        if (has_low_column)
            below[column] = tile[y + 1][x];
        if (has_high_column)
            below[low_width + column] = tile[y + 1][x + 1];
    }
}
