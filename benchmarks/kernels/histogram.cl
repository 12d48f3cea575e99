kernel void histogram(global const uchar *data, global uint *bins) {
  atomic_inc(&bins[data[get_global_id(0)]]);
}
