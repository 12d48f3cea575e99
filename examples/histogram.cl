// How often each byte occurs: counted in local memory, then added to the global counts.
kernel void histogram(global const uchar *data, global uint *counts, int n)
{
    local uint group_counts[256];
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0))
        group_counts[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&group_counts[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0))
        atomic_add(&counts[bin], group_counts[bin]);
}
