#define GROUP 256

kernel void bitonic(global uint *data) {
  local uint block[GROUP];
  uint id = get_local_id(0);
  block[id] = data[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint size = 2; size <= GROUP; size <<= 1) {
    for (uint stride = size >> 1; stride > 0; stride >>= 1) {
      uint partner = id ^ stride;
      if (partner > id) {
        bool ascending = (id & size) == 0;
        uint mine = block[id];
        uint theirs = block[partner];
        if ((mine > theirs) == ascending) {
          block[id] = theirs;
          block[partner] = mine;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  data[get_global_id(0)] = block[id];
}
