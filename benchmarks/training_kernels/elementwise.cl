// Elementwise kernels of single precision: each work-item reads and writes one vector of four elements.

#define INDEX const size_t i = get_global_id(0); if (4 * i >= n) return

__kernel void add(uint n, __global const float4 *a, __global const float4 *b, __global float4 *out, float factor) {
    INDEX;
    out[i] = a[i] + factor * b[i];
}

__kernel void addu(uint n, __global const float4 *a, __global float4 *out, float other, float factor) {
    INDEX;
    out[i] = a[i] + factor * other;
}

__kernel void mul(uint n, __global const float4 *a, __global const float4 *b, __global float4 *out) {
    INDEX;
    out[i] = a[i] * b[i];
}

__kernel void mulu(uint n, __global const float4 *a, __global float4 *out, float other) {
    INDEX;
    out[i] = a[i] * other;
}

__kernel void div(uint n, __global const float4 *a, __global const float4 *b, __global float4 *out) {
    INDEX;
    out[i] = a[i] / b[i];
}

// The inverse is computed once, before the launch.
__kernel void divu(uint n, __global const float4 *a, __global float4 *out, float inverse) {
    INDEX;
    out[i] = a[i] * inverse;
}

__kernel void relu(uint n, __global const float4 *a, __global float4 *out) {
    INDEX;
    out[i] = fmax(a[i], 0.0f);
}

__kernel void gelu(uint n, __global const float4 *a, __global float4 *out) {
    INDEX;
    const float4 x = a[i];
    out[i] = 0.5f * x * (1.0f + erf(x * 0.70710678f));
}

// What a driver's copy of a buffer is taken for.
__kernel void copy_buffer(uint n, __global const float4 *a, __global float4 *out) {
    INDEX;
    out[i] = a[i];
}
