// The kernels of the STREAM benchmark, a work-item an element, as BabelStream's programs launch them.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void copy(__global const REAL *a, __global REAL *c) {
    const size_t i = get_global_id(0);
    c[i] = a[i];
}

__kernel void mul(__global REAL *b, __global const REAL *c) {
    const size_t i = get_global_id(0);
    b[i] = (REAL)0.4 * c[i];
}

__kernel void add(__global const REAL *a, __global const REAL *b, __global REAL *c) {
    const size_t i = get_global_id(0);
    c[i] = a[i] + b[i];
}

__kernel void triad(__global REAL *a, __global const REAL *b, __global const REAL *c) {
    const size_t i = get_global_id(0);
    a[i] = b[i] + (REAL)0.4 * c[i];
}

// Each group adds up what its work-items meet in strides of the whole launch; the host adds the groups' sums.
__kernel void dot(__global const REAL *a, __global const REAL *b, __global REAL *sums, __local REAL *part, uint n) {
    const size_t lane = get_local_id(0);
    REAL sum = 0;
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) {
        sum += a[i] * b[i];
    }
    part[lane] = sum;
    for (size_t span = get_local_size(0) / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < span) {
            part[lane] += part[lane + span];
        }
    }
    if (lane == 0) {
        sums[get_group_id(0)] = part[0];
    }
}
