// Fourier transform of complex points by Stockham's passes, which leave the result in order. A pass of
// radix R joins R transforms of p points into one of R * p, everywhere in the signal; p is a power of
// two, 1 in the first pass and R times as large in the next.
//
// fftRadix2Kernel, fftRadix4Kernel, fftRadix8Kernel, fftRadix16Kernel   one such pass each.
//
// A work-item joins one point of each of R transforms: there are n / R work-items for n points, and n is
// a multiple of R * p.

// exp(-2 pi i k / 16) for the products of row and column that a transform of 4 by 4 points asks for.
constant float2 ROOTS[] = {
    (float2)(1.0f, 0.0f),
    (float2)(0.92387953251128676f, -0.38268343236508977f),
    (float2)(0.70710678118654752f, -0.70710678118654752f),
    (float2)(0.38268343236508977f, -0.92387953251128676f),
    (float2)(0.0f, -1.0f),
    (float2)(-0.38268343236508977f, -0.92387953251128676f),
    (float2)(-0.70710678118654752f, -0.70710678118654752f),
    (float2)(-0.92387953251128676f, -0.38268343236508977f),
    (float2)(-1.0f, 0.0f),
    (float2)(-0.92387953251128676f, 0.38268343236508977f),
};

static inline float2 multiplied(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Read a work-item's points, each turned by its place in the joined transform.
static inline void gather(global const float2 *input, float2 *u, int radix, int p)
{
    int item = get_global_id(0);
    int stride = get_global_size(0);
    // In half turns the angle is exact in single precision; in radians it would be rounded.
    float angle = -2.0f * (item & (p - 1)) / ((float)radix * p);
    u[0] = input[item];
    #pragma unroll
    for (int r = 1; r < radix; r++)
        u[r] = multiplied(input[item + r * stride], (float2)(cospi(r * angle), sinpi(r * angle)));
}

// Where a work-item's first point goes; the others follow p apart.
static inline int target(int radix, int p)
{
    int item = get_global_id(0);
    int place = item & (p - 1);
    return (item - place) * radix + place;
}

// Transforms of 2 and of 4 points in place, `step` apart.

static inline void transform2(float2 *u, int step)
{
    float2 difference = u[0] - u[step];
    u[0] += u[step];
    u[step] = difference;
}

static inline void transform4(float2 *u, int step)
{
    float2 even_sum = u[0] + u[2 * step];
    float2 even_difference = u[0] - u[2 * step];
    float2 odd_sum = u[step] + u[3 * step];
    float2 odd_difference = u[step] - u[3 * step];
    // Times -i.
    float2 turned = (float2)(odd_difference.y, -odd_difference.x);
    u[0] = even_sum + odd_sum;
    u[step] = even_difference + turned;
    u[2 * step] = even_sum - odd_sum;
    u[3 * step] = even_difference - turned;
}

kernel void fftRadix2Kernel(global const float2 *input, global float2 *output, int p)
{
    float2 u[2];
    gather(input, u, 2, p);
    transform2(u, 1);
    output += target(2, p);
    output[0] = u[0];
    output[p] = u[1];
}

kernel void fftRadix4Kernel(global const float2 *input, global float2 *output, int p)
{
    float2 u[4];
    gather(input, u, 4, p);
    transform4(u, 1);
    output += target(4, p);
    #pragma unroll
    for (int r = 0; r < 4; r++)
        output[r * p] = u[r];
}

// 8 points as 4 rows of 2: transform the columns, turn, transform the rows, and read column by column.
kernel void fftRadix8Kernel(global const float2 *input, global float2 *output, int p)
{
    float2 u[8];
    gather(input, u, 8, p);
    transform4(u, 2);
    transform4(u + 1, 2);
    output += target(8, p);
    #pragma unroll
    for (int row = 0; row < 4; row++) {
        float2 *pair = u + 2 * row;
        pair[1] = multiplied(pair[1], ROOTS[2 * row]);
        transform2(pair, 1);
        output[row * p] = pair[0];
        output[(row + 4) * p] = pair[1];
    }
}

// 16 points as 4 rows of 4, in the same way.
kernel void fftRadix16Kernel(global const float2 *input, global float2 *output, int p)
{
    float2 u[16];
    gather(input, u, 16, p);
    #pragma unroll
    for (int column = 0; column < 4; column++)
        transform4(u + column, 4);
    output += target(16, p);
    #pragma unroll
    for (int row = 0; row < 4; row++) {
        float2 *four = u + 4 * row;
        #pragma unroll
        for (int column = 1; column < 4; column++)
            four[column] = multiplied(four[column], ROOTS[row * column]);
        transform4(four, 1);
        #pragma unroll
        for (int column = 0; column < 4; column++)
            output[(row + 4 * column) * p] = four[column];
    }
}
