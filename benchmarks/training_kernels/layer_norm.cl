// Layer norm of single precision: a group of 32 x 4 work-items for each row of `width` elements, read as vectors of
// four, once for the mean and variance (Welford 1962, joined after Chan et al. 1979), once for the result.

#define LANES 128

// One element of a running mean `m` and sum of squares `s`.
#define TAKE(value)              \
    do {                         \
        const float v = value;   \
        const float off = v - m; \
        count += 1;              \
        m += off / count;        \
        s += off * (v - m);      \
    } while (0)

__kernel void layer_norm(int width, float epsilon, __global const float *x, __global const float *gamma,
                         __global const float *beta, __global float *mean, __global float *inverse_deviation,
                         __global float *y) {
    __local float means[LANES], squares[LANES], counts[LANES];
    const int lane = get_local_id(1) * 32 + get_local_id(0);
    const size_t row = get_group_id(0);
    __global const float4 *in = (__global const float4 *)(x + row * width);
    __global float4 *out = (__global float4 *)(y + row * width);
    float m = 0, s = 0, count = 0;
    for (int i = lane; i < width / 4; i += LANES) {
        const float4 vector = in[i];
        TAKE(vector.x);
        TAKE(vector.y);
        TAKE(vector.z);
        TAKE(vector.w);
    }
    means[lane] = m;
    squares[lane] = s;
    counts[lane] = count;
    for (int span = LANES / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < span && counts[lane + span] > 0) {
            const float other = counts[lane + span], all = counts[lane] + other;
            const float off = means[lane + span] - means[lane];
            means[lane] += off * other / all;
            squares[lane] += squares[lane + span] + off * off * counts[lane] * other / all;
            counts[lane] = all;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float centre = means[0], scale = rsqrt(squares[0] / width + epsilon);
    for (int i = lane; i < width / 4; i += LANES) {
        const float4 g = ((__global const float4 *)gamma)[i], b = ((__global const float4 *)beta)[i];
        out[i] = g * (scale * (in[i] - centre)) + b;
    }
    if (lane == 0) {
        mean[row] = centre;
        inverse_deviation[row] = scale;
    }
}
