kernel void spmv(global const int *row_start, global const int *columns, global const float *values,
                 global const float *x, global float *y) {
  int row = get_global_id(0);
  int end = row_start[row + 1];
  float sum = 0.0f;
  for (int k = row_start[row]; k < end; k++)
    sum += values[k] * x[columns[k]];
  y[row] = sum;
}
