// Kernels in the style of PolyBench (Pouchet 2012) as ported to OpenCL by Grauer-Gray et al. (2012): a work-item for
// each element, row or column of what is computed. Written anew for Crosscast; matrices are n by n, row by row.

kernel void gemm(global const float *a, global const float *b, global float *c, float alpha, float beta, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = alpha * sum + beta * c[i * n + j];
}

kernel void product(global const float *a, global const float *b, global float *c, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    c[i * n + j] = 0;
    for (int k = 0; k < n; k++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

kernel void rows(global const float *a, global const float *x, global float *y, int n) {
    int i = get_global_id(0);
    for (int j = 0; j < n; j++) y[i] += a[i * n + j] * x[j];
}

kernel void columns(global const float *a, global const float *x, global float *y, int n) {
    int j = get_global_id(0);
    for (int i = 0; i < n; i++) y[j] += a[i * n + j] * x[i];
}

kernel void gesummv(global const float *a, global const float *b, global const float *x, global float *y, float alpha,
                    float beta, int n) {
    int i = get_global_id(0);
    float left = 0, right = 0;
    for (int j = 0; j < n; j++) {
        left += a[i * n + j] * x[j];
        right += b[i * n + j] * x[j];
    }
    y[i] = alpha * left + beta * right;
}

kernel void rank_two(global float *a, global const float *u1, global const float *v1, global const float *u2,
                     global const float *v2, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    a[i * n + j] += u1[i] * v1[j] + u2[i] * v2[j];
}

kernel void add(global float *x, global const float *z) { x[get_global_id(0)] += z[get_global_id(0)]; }

kernel void syrk(global const float *a, global float *c, float alpha, float beta, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    c[i * n + j] *= beta;
    for (int k = 0; k < n; k++) c[i * n + j] += alpha * a[i * n + k] * a[j * n + k];
}

kernel void syr2k(global const float *a, global const float *b, global float *c, float alpha, float beta, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    c[i * n + j] *= beta;
    for (int k = 0; k < n; k++)
        c[i * n + j] += alpha * a[i * n + k] * b[j * n + k] + alpha * b[i * n + k] * a[j * n + k];
}

kernel void mean(global const float *data, global float *means, int n) {
    int j = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < n; i++) sum += data[i * n + j];
    means[j] = sum / n;
}

kernel void deviation(global const float *data, global const float *means, global float *deviations, int n) {
    int j = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < n; i++) sum += (data[i * n + j] - means[j]) * (data[i * n + j] - means[j]);
    float found = sqrt(sum / n);
    deviations[j] = found <= 0.005f ? 1.0f : found;
}

kernel void centre(global float *data, global const float *means, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    data[i * n + j] -= means[j];
}

kernel void standardize(global float *data, global const float *means, global const float *deviations, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    data[i * n + j] = (data[i * n + j] - means[j]) / (sqrt((float)n) * deviations[j]);
}

kernel void pairs(global const float *data, global float *matrix, int n) {
    int j = get_global_id(0);
    for (int other = j; other < n; other++) {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += data[i * n + j] * data[i * n + other];
        matrix[j * n + other] = sum;
        matrix[other * n + j] = sum;
    }
}

kernel void doitgen(global const float *a, global const float *c4, global float *sums, int n, int r) {
    int p = get_global_id(0), q = get_global_id(1);
    float sum = 0;
    for (int s = 0; s < n; s++) sum += a[(r * n + q) * n + s] * c4[s * n + p];
    sums[(r * n + q) * n + p] = sum;
}

kernel void slice(global float *a, global const float *sums, int n, int r) {
    int p = get_global_id(0), q = get_global_id(1);
    a[(r * n + q) * n + p] = sums[(r * n + q) * n + p];
}

kernel void field_y(global const float *source, global float *ey, global const float *hz, int n, int t) {
    int j = get_global_id(0), i = get_global_id(1);
    ey[i * n + j] = i == 0 ? source[t] : ey[i * n + j] - 0.5f * (hz[i * n + j] - hz[(i - 1) * n + j]);
}

kernel void field_x(global float *ex, global const float *hz, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (j > 0) ex[i * n + j] -= 0.5f * (hz[i * n + j] - hz[i * n + j - 1]);
}

kernel void field_z(global const float *ex, global const float *ey, global float *hz, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i < n - 1 && j < n - 1)
        hz[i * n + j] -= 0.7f * (ex[i * n + j + 1] - ex[i * n + j] + ey[(i + 1) * n + j] - ey[i * n + j]);
}

kernel void norm(global const float *a, global float *r, int n, int k) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += a[i * n + k] * a[i * n + k];
    r[k * n + k] = sqrt(sum);
}

kernel void unit(global const float *a, global const float *r, global float *q, int n, int k) {
    int i = get_global_id(0);
    q[i * n + k] = a[i * n + k] / r[k * n + k];
}

kernel void orthogonal(global float *a, global float *r, global const float *q, int n, int k) {
    int j = get_global_id(0);
    if (j <= k) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += q[i * n + k] * a[i * n + j];
    r[k * n + j] = sum;
    for (int i = 0; i < n; i++) a[i * n + j] -= q[i * n + k] * sum;
}

kernel void smooth_line(global const float *a, global float *b, int n) {
    int i = get_global_id(0);
    if (i > 0 && i < n - 1) b[i] = 0.33333f * (a[i - 1] + a[i] + a[i + 1]);
}

kernel void copy_line(global float *a, global const float *b, int n) {
    int i = get_global_id(0);
    if (i > 0 && i < n - 1) a[i] = b[i];
}

kernel void smooth(global const float *a, global float *b, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
        b[i * n + j] =
            0.2f * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j] + a[(i - 1) * n + j]);
}

kernel void convolve(global const float *a, global float *b, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i == 0 || i == n - 1 || j == 0 || j == n - 1) return;
    b[i * n + j] = 0.2f * a[(i - 1) * n + j - 1] - 0.3f * a[(i - 1) * n + j] + 0.4f * a[(i - 1) * n + j + 1] +
                   0.5f * a[i * n + j - 1] + 0.6f * a[i * n + j] + 0.7f * a[i * n + j + 1] -
                   0.8f * a[(i + 1) * n + j - 1] - 0.9f * a[(i + 1) * n + j] + 0.1f * a[(i + 1) * n + j + 1];
}

kernel void convolve_layer(global const float *a, global float *b, int n, int i) {
    int k = get_global_id(0), j = get_global_id(1);
    if (j == 0 || j == n - 1 || k == 0 || k == n - 1) return;
    int m = n * n, at = i * m + j * n + k;
    b[at] = 2 * a[at - m - n - 1] + 5 * a[at - m - n + 1] - 8 * a[at - m + n - 1] + 3 * a[at - n] - 6 * a[at] -
            9 * a[at + n] + 4 * a[at + m - n] + 7 * a[at + m] + 10 * a[at + m + n + 1];
}
