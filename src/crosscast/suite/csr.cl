// csr: product of a sparse matrix and a vector, the matrix in compressed sparse rows. One work-item a
// row; the last work-group may have more work-items than there are rows.

kernel void csr(int n_rows, global const int *row_starts, global const int *columns, global const float *values,
                global const float *x, global float *y)
{
    int row = get_global_id(0);
    if (row >= n_rows)
        return;
    int end = row_starts[row + 1];
    float sum = 0.0f;
    for (int k = row_starts[row]; k < end; k++)
        sum += values[k] * x[columns[k]];
    y[row] = sum;
}
