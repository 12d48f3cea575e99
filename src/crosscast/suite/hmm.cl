/* One Baum-Welch iteration of a hidden Markov model with discrete symbols.
 *
 * Forward and backward variables are scaled at each time step so that the forward ones of a step sum
 * to one; the scale factors stay on the device. The steps are launches of small kernels: matrix-vector
 * products, a dot product, and element-wise kernels between them.
 *
 * Matrices are stored row after row. The transition matrix `a` has a row for each state that is left;
 * the emission matrix `b` has a row for each symbol, so that neighbouring work-items, which have
 * neighbouring states, read neighbouring elements. `alpha`, `beta`, `weighted` and `gamma` have a row
 * for each time step.
 */

__kernel void init_ones_dev(__global float *ones, int count)
{
    int i = get_global_id(0);
    if (i < count)
        ones[i] = 1.0f;
}

__kernel void init_alpha_dev(__global const float *pi, __global const float *b,
                             __global const int *symbols, __global float *alpha, int states)
{
    int i = get_global_id(0);
    if (i < states)
        alpha[i] = pi[i] * b[symbols[0] * states + i];
}

/* alpha holds the matrix-vector product of step t; what is missing is the emission. */
__kernel void calc_alpha_dev(__global float *alpha, __global const float *b,
                             __global const int *symbols, int t, int states)
{
    int i = get_global_id(0);
    if (i < states)
        alpha[t * states + i] *= b[symbols[t] * states + i];
}

__kernel void scale_alpha_dev(__global float *alpha, __global const float *scale, int t, int states)
{
    int i = get_global_id(0);
    if (i < states)
        alpha[t * states + i] /= scale[t];
}

/* One work-group: each work-item adds up every so many products, a tree adds up the work-items. The
 * size of the work-group must be a power of two. */
__kernel void s_dot_kernel_naive(__global const float *x, int x_offset, __global const float *y, int count,
                                 __global float *result, int result_index, __local float *partial)
{
    int item = get_local_id(0);
    int items = get_local_size(0);
    float sum = 0.0f;
    for (int i = item; i < count; i += items)
        sum += x[x_offset + i] * y[i];
    partial[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = items / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            partial[item] += partial[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        result[result_index] = partial[0];
}

/* y = matrix * x, a work-item for each row. */
__kernel void mvm_non_kernel_naive(__global const float *matrix, int rows, int columns,
                                   __global const float *x, int x_offset,
                                   __global float *y, int y_offset)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int column = 0; column < columns; column++)
        sum += matrix[row * columns + column] * x[x_offset + column];
    y[y_offset + row] = sum;
}

/* y = transposed matrix * x, a work-item for each column. x and y may be rows of one buffer. */
__kernel void mvm_trans_kernel_naive(__global const float *matrix, int rows, int columns,
                                     __global const float *x, int x_offset,
                                     __global float *y, int y_offset)
{
    int column = get_global_id(0);
    if (column >= columns)
        return;
    float sum = 0.0f;
    for (int row = 0; row < rows; row++)
        sum += matrix[row * columns + column] * x[x_offset + row];
    y[y_offset + column] = sum;
}

__kernel void init_beta_dev(__global float *beta, int t, int states)
{
    int i = get_global_id(0);
    if (i < states)
        beta[t * states + i] = 1.0f;
}

/* Backward variables of step t times emissions, scaled: what the step before is made from. */
__kernel void calc_beta_dev(__global const float *beta, __global const float *b,
                            __global const int *symbols, __global const float *scale,
                            __global float *weighted, int t, int states)
{
    int i = get_global_id(0);
    if (i < states)
        weighted[t * states + i] = b[symbols[t] * states + i] * beta[t * states + i] / scale[t];
}

/* Probability of each state at each step. */
__kernel void calc_gamma_dev(__global const float *alpha, __global const float *beta,
                             __global float *gamma, int count)
{
    int i = get_global_id(0);
    if (i < count)
        gamma[i] = alpha[i] * beta[i];
}

/* Expected number of transitions between each two states. */
__kernel void calc_xi_dev(__global const float *alpha, __global const float *a,
                          __global const float *weighted, __global float *xi_sum,
                          int steps, int states)
{
    int to = get_global_id(0);
    int from = get_global_id(1);
    if (to >= states || from >= states)
        return;
    float sum = 0.0f;
    for (int t = 0; t < steps - 1; t++)
        sum += alpha[t * states + from] * weighted[(t + 1) * states + to];
    xi_sum[from * states + to] = sum * a[from * states + to];
}

__kernel void est_pi_dev(__global const float *gamma, __global float *pi, int states)
{
    int i = get_global_id(0);
    if (i < states)
        pi[i] = gamma[i];
}

__kernel void est_a_dev(__global float *a, __global const float *gamma_sum, int states)
{
    int to = get_global_id(0);
    int from = get_global_id(1);
    if (to < states && from < states)
        a[from * states + to] /= gamma_sum[from];
}

/* Rounding makes the rows' sums leave one, and would do so further with each iteration. */
__kernel void scale_a_dev(__global float *a, __global const float *row_sum, int states)
{
    int to = get_global_id(0);
    int from = get_global_id(1);
    if (to < states && from < states)
        a[from * states + to] /= row_sum[from];
}

/* Expected number of times that each state emits each symbol. */
__kernel void acc_b_dev(__global const float *gamma, __global const int *symbols, __global float *b,
                        int steps, int states, int symbol_count)
{
    int state = get_global_id(0);
    int symbol = get_global_id(1);
    if (state >= states || symbol >= symbol_count)
        return;
    float sum = 0.0f;
    for (int t = 0; t < steps; t++)
        if (symbols[t] == symbol)
            sum += gamma[t * states + state];
    b[symbol * states + state] = sum;
}

__kernel void est_b_dev(__global float *b, __global const float *gamma_sum, int states, int symbol_count)
{
    int state = get_global_id(0);
    int symbol = get_global_id(1);
    if (state < states && symbol < symbol_count)
        b[symbol * states + state] /= gamma_sum[state];
}

__kernel void scale_b_dev(__global float *b, __global const float *state_sum, int states, int symbol_count)
{
    int state = get_global_id(0);
    int symbol = get_global_id(1);
    if (state < states && symbol < symbol_count)
        b[symbol * states + state] /= state_sum[state];
}
