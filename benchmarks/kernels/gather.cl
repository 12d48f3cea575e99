kernel void gather(global const float *table, global const uint *index, global float *out) {
  size_t i = get_global_id(0);
  out[i] = table[index[i]];
}
