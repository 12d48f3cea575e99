// Each work-item reads and writes an address of its own.
kernel void touch(global uint *data) {
  data[get_global_id(0)] += 1;
}
