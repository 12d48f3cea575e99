// Kernels that are in no training data: some move memory, some compute, and some do both.

kernel void copy(global const float *a, global float *b) { b[get_global_id(0)] = a[get_global_id(0)]; }

kernel void triad(global const float *a, global const float *b, global float *c) {
    size_t i = get_global_id(0);
    c[i] = a[i] + 3.0f * b[i];
}

kernel void strided(global const float *a, global float *b, int stride, int n) {
    int i = get_global_id(0);
    b[i] = a[(int)(((long)i * stride) % n)];
}

kernel void polynomial(global const float *a, global float *b, int terms) {
    float x = a[get_global_id(0)], sum = x;
    for (int i = 0; i < terms; i++) sum = sum * x + 0.5f;
    b[get_global_id(0)] = sum;
}

kernel void orbits(global float *out, int steps) {
    float cx = get_global_id(0) * 1e-6f - 0.5f, cy = 0.3f, x = 0, y = 0;
    for (int i = 0; i < steps; i++) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
    }
    out[get_global_id(0)] = x + y;
}

kernel void dot_rows(global const float *a, global const float *x, global float *y, int n) {
    int row = get_global_id(0);
    float sum = 0;
    for (int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
    y[row] = sum;
}

kernel void stencil(global const float *a, global float *b, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        b[i * n + j] = 0.2f * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i - 1) * n + j] + a[(i + 1) * n + j]);
}

kernel void product(global const float *a, global const float *b, global float *c, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
}

kernel void hashes(global uint *out, int rounds) {
    uint h = get_global_id(0);
    for (int i = 0; i < rounds; i++) {
        h ^= h >> 16, h *= 0x7feb352du;
        h ^= h >> 15, h *= 0x846ca68bu;
    }
    out[get_global_id(0)] = h;
}

kernel void bodies(global const float4 *p, global float4 *force, int n) {
    float4 own = p[get_global_id(0)], sum = 0;
    for (int j = 0; j < n; j++) {
        float4 d = p[j] - own;
        float r = rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + 0.01f);
        sum += d * (p[j].w * r * r * r);
    }
    force[get_global_id(0)] = sum;
}
