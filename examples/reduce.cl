// One partial sum a work-group: each work-item adds up a strided share, then they halve in local memory.
kernel void reduce(global const float *in, global float *out, local float *partial, uint n)
{
    uint id = get_local_id(0);
    float sum = 0.0f;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    partial[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (id < half_size)
            partial[id] += partial[id + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0)
        out[get_group_id(0)] = partial[0];
}
