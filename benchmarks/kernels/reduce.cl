kernel void reduce(global const float *in, global float *sums, local float *partial) {
  uint id = get_local_id(0);
  partial[id] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
    if (id < half_size)
      partial[id] += partial[id + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (id == 0)
    sums[get_group_id(0)] = partial[0];
}
