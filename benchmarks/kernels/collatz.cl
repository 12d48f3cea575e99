kernel void collatz(global uint *steps) {
  size_t i = get_global_id(0);
  uint value = (uint)i + 1;
  uint count = 0;
  while (value != 1) {
    if (value & 1)
      value = 3 * value + 1;
    else
      value >>= 1;
    count++;
  }
  steps[i] = count;
}
