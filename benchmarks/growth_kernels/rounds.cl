// A fixed number of addresses, as many instructions as asked for.
kernel void rounds(global uint *out, uint count) {
  uint value = get_global_id(0);
  for (uint i = 0; i < count; i++)
    value = (value ^ (value >> 15)) * 2246822519u + i;
  out[get_global_id(0)] = value;
}
