/* Images and samplers: how a texel is found, filtered, read and written.
 *
 * Sections 8.2 and 8.3 of the OpenCL 1.2 specification. An image is a descriptor in memory, a sampler the bit mask
 * of the CLK_ constants. Arrays of images keep their layers where 3D images keep their slices. Whatever a kernel
 * asks for, memory outside of the image is never touched.
 */
#pragma once
#include "conversion.h"
#include "geometry.h"
#include "half.h"
#include "integer.h"

struct descriptor {
  global uchar *data;
  ulong row_pitch;   /* bytes */
  ulong slice_pitch; /* bytes; of a slice or of a layer */
  uint width, height, depth, layers;
  uint channel_order, channel_type, channels;
  uint channel_size; /* bytes */
};
typedef const global descriptor *picture;

/* An image of that many coordinates that are not a layer. */
template <int SPATIAL, bool LAYERS, bool DEPTHS> struct image { picture is; };

struct sampler {
  uint bits;
  uint addressing() { return bits & 0xe; }
  bool is_normalized() { return bits & CLK_NORMALIZED_COORDS_TRUE; }
  bool is_linear() { return bits & CLK_FILTER_LINEAR; }
};

/* The engine counts these as accesses to global memory. */
extern "C" void cc_texel_read(const global void *, ulong nbytes);
extern "C" void cc_texel_write(const global void *, ulong nbytes);

namespace {

/* ---- One channel ---- */

/* What stands for 1 where channels are normalized; 0 where they are not. */
float unit_of(uint type) {
  switch (type) {
  case CLK_UNORM_INT8: return 255.0f;
  case CLK_UNORM_INT16: return 65535.0f;
  case CLK_SNORM_INT8: return 127.0f;
  case CLK_SNORM_INT16: return 32767.0f;
  default: return 0.0f;
  }
}

template <class Use> __attribute__((always_inline)) auto with_type(global uchar *p, uint type, Use use) {
  switch (type) {
  case CLK_SIGNED_INT8: case CLK_SNORM_INT8: return use((global char *)p);
  case CLK_SIGNED_INT16: case CLK_SNORM_INT16: return use((global short *)p);
  case CLK_SIGNED_INT32: return use((global int *)p);
  case CLK_UNSIGNED_INT8: case CLK_UNORM_INT8: return use(p);
  case CLK_UNSIGNED_INT16: case CLK_UNORM_INT16: return use((global ushort *)p);
  case CLK_UNSIGNED_INT32: return use((global uint *)p);
  case CLK_HALF_FLOAT: return use((global half *)p);
  default: return use((global float *)p);
  }
}

/* The type that a pointer has, by decltype. */
template <class V> V pointee(global V *);

template <class S> S load_channel(global uchar *p, uint type) {
  float unit = unit_of(type);
  return with_type(p, type, [&](auto *channel) -> S {
    using V = decltype(pointee(channel));
    if constexpr (__is_same(S, float) && __is_same(V, half)) return extended(*channel);
    else if constexpr (__is_same(S, float)) return unit ? cl::fmax(-1.0f, *channel / unit) : (float)*channel;
    else if constexpr (__is_integral(V)) return (int)*channel;
    else return as<uints<V>>(*channel);
  });
}

/* Saturated; of a float to the nearest integer, ties to even, and 0 of a NaN. */
template <class S> void store_channel(global uchar *p, uint type, S value) {
  float unit = unit_of(type);
  with_type(p, type, [&](auto *channel) {
    using V = decltype(pointee(channel));
    if constexpr (__is_same(V, half)) *channel = truncated((float)value);
    else if constexpr (__is_same(V, float)) *channel = (float)value;
    else *channel = convert<V, rte, true>(__is_same(S, float) && unit ? value * (S)unit : value);
  });
}

/* ---- Texels, of float or int ---- */

template <class S> vec<S, 4> in_order(picture image, vec<S, 4> stored) {
  switch (image->channel_order) {
  case CLK_RGBA: return stored;
  case CLK_BGRA: return stored.zyxw;
  case CLK_RG: return vec<S, 4>{stored.xy, 0, 1};
  case CLK_A: return vec<S, 4>{0, 0, 0, stored.x};
  case CLK_INTENSITY: return stored.xxxx;
  case CLK_LUMINANCE: return vec<S, 4>{stored.xxx, 1};
  default: return vec<S, 4>{stored.x, 0, 0, 1};
  }
}

/* Address of a texel; null outside of the image. */
global uchar *texel(picture image, int4 at) {
  uint slices = image->depth * image->layers;
  if ((uint)at.x >= image->width || (uint)at.y >= image->height || (uint)at.z >= slices) return nullptr;
  ulong offset = (ulong)at.x * (image->channels * image->channel_size);
  return image->data + offset + (ulong)at.y * image->row_pitch + (ulong)at.z * image->slice_pitch;
}

/* The border's channels are 0 as stored; the channel order makes its alpha 0 or 1. */
template <class S> vec<S, 4> fetch(picture image, int4 at) {
  vec<S, 4> stored = 0;
  global uchar *p = texel(image, at);
  if (!p) return stored;
  uint type = image->channel_type, size = image->channel_size;
  cc_texel_read(p, image->channels * size);
  stored.x = load_channel<S>(p, type);
  if (image->channels >= 2) stored.y = load_channel<S>(p + size, type);
  if (image->channels == 4) {
    stored.z = load_channel<S>(p + 2 * size, type);
    stored.w = load_channel<S>(p + 3 * size, type);
  }
  return stored;
}

template <class S> void put(picture image, int4 at, vec<S, 4> colour) {
  global uchar *p = texel(image, at);
  if (!p) return;
  uint type = image->channel_type, size = image->channel_size;
  cc_texel_write(p, image->channels * size);
  if (image->channel_order == CLK_BGRA) colour = colour.zyxw;
  if (image->channel_order == CLK_A) colour = colour.wwww;
  store_channel<S>(p, type, colour.x);
  if (image->channels >= 2) store_channel<S>(p + size, type, colour.y);
  if (image->channels == 4) {
    store_channel<S>(p + 2 * size, type, colour.z);
    store_channel<S>(p + 3 * size, type, colour.w);
  }
}

/* ---- Addressing modes ---- */

/* Every mode but CLAMP, which lets a texel be outside, ends inside; so does NONE, where it is undefined. */
int inside(int i, int size, sampler s) {
  return s.addressing() == CLK_ADDRESS_CLAMP ? i : cl::clamp(i, 0, size - 1);
}

/* Coordinate in texels, brought near the image so that it fits an int; a NaN goes below. */
float in_texels(float at, int size, sampler s) {
  uint mode = s.addressing();
  bool wraps = mode == CLK_ADDRESS_REPEAT || mode == CLK_ADDRESS_MIRRORED_REPEAT;
  float extent = (float)size;
  if (wraps && !s.is_normalized()) at = at / extent;
  if (mode == CLK_ADDRESS_REPEAT) at = at - cl::floor(at);
  else if (mode == CLK_ADDRESS_MIRRORED_REPEAT) at = cl::fabs(at - 2.0f * cl::rint(0.5f * at));
  float u = wraps || s.is_normalized() ? at * extent : at;
  u = u > -2.0f ? u : -2.0f;
  return u < extent + 2.0f ? u : extent + 2.0f;
}

int nearest(float at, int size, sampler s) {
  int i = (int)cl::floor(in_texels(at, size, s));
  if (s.addressing() == CLK_ADDRESS_REPEAT && i > size - 1) i -= size;
  return inside(i, size, s);
}

int nearest(int i, int size, sampler s) {
  uint mode = s.addressing();
  if (mode != CLK_ADDRESS_REPEAT && mode != CLK_ADDRESS_MIRRORED_REPEAT) return inside(i, size, s);
  long period = mode == CLK_ADDRESS_REPEAT ? size : 2 * (long)size;
  long place = i % period;
  if (place < 0) place += period;
  return (int)(place < size ? place : period - 1 - place);
}

/* The two texels beside a coordinate, and the weight of the second. */
struct neighbours {
  int first, second;
  float weight;
};

neighbours beside(float at, int size, sampler s) {
  float u = in_texels(at, size, s) - 0.5f, below = cl::floor(u);
  int first = (int)below, second = first + 1;
  if (s.addressing() == CLK_ADDRESS_REPEAT) {
    if (first < 0) first += size;
    if (second > size - 1) second -= size;
  }
  return {inside(first, size, s), inside(second, size, s), u - below};
}

int layer(picture image, float at) {
  at = cl::rint(at);
  return (int)cl::min(at > 0.0f ? at : 0.0f, (float)((int)image->layers - 1));
}
int layer(picture image, int at) { return cl::clamp(at, 0, (int)image->layers - 1); }

template <int SPATIAL, class S> int4 nearest(picture image, vec<S, 4> at, sampler s) {
  int y = SPATIAL > 1 ? nearest(at.y, (int)image->height, s) : 0;
  int z = SPATIAL > 2 ? nearest(at.z, (int)image->depth, s) : layer(image, at.z);
  return (int4)(nearest(at.x, (int)image->width, s), y, z, 0);
}

/* ---- Filters ---- */

float4 row(picture image, neighbours x, int y, int z) {
  float4 first = fetch<float>(image, (int4)(x.first, y, z, 0));
  float4 second = fetch<float>(image, (int4)(x.second, y, z, 0));
  return (1.0f - x.weight) * first + x.weight * second;
}

float4 plane(picture image, neighbours x, neighbours y, int z) {
  float4 first = row(image, x, y.first, z), second = row(image, x, y.second, z);
  return (1.0f - y.weight) * first + y.weight * second;
}

template <int SPATIAL> float4 filtered(picture image, float4 at, sampler s) {
  neighbours x = beside(at.x, (int)image->width, s);
  if constexpr (SPATIAL == 1) return row(image, x, 0, layer(image, at.z));
  neighbours y = beside(at.y, (int)image->height, s);
  if constexpr (SPATIAL == 2) return plane(image, x, y, layer(image, at.z));
  neighbours z = beside(at.z, (int)image->depth, s);
  float4 first = plane(image, x, y, z.first), second = plane(image, x, y, z.second);
  return (1.0f - z.weight) * first + z.weight * second;
}

/* A coordinate as four elements: x, y, and z, which is the layer in an array of images. */
template <bool LAYERS, class C> auto widened(C at) {
  using wide = vec<element<C>, 4>;
  if constexpr (shape<C>::width == 1) return wide{at, 0, 0, 0};
  else if constexpr (shape<C>::width == 4) return at;
  else if constexpr (LAYERS) return wide{at.x, 0, at.y, 0};
  else return wide{at, 0, 0};
}

template <class S, int SPATIAL, bool LAYERS, bool DEPTHS, class C>
auto read(image<SPATIAL, LAYERS, DEPTHS> from, sampler s, C coordinate) {
  auto at = widened<LAYERS>(coordinate);
  vec<S, 4> stored;
  if (__is_same(S, float) && __is_same(element<C>, float) && s.is_linear())
    stored = cast<vec<S, 4>>(filtered<SPATIAL>(from.is, cast<float4>(at), s));
  else stored = fetch<S>(from.is, nearest<SPATIAL>(from.is, at, s));
  stored = in_order(from.is, stored);
  if constexpr (DEPTHS) return stored.x;
  else return stored;
}

}

#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
namespace cl {

#define READ(NAME, S, RESULT)                                                                            \
  template <int N, bool L, bool D, class C> auto NAME(image<N, L, D> from, sampler s, C at) {            \
    auto value = read<S>(from, s, at);                                                                   \
    return RESULT;                                                                                       \
  }                                                                                                      \
  template <int N, bool L, bool D, class C> auto NAME(image<N, L, D> from, C at) {                       \
    return NAME(from, sampler{CLK_FILTER_NEAREST | CLK_ADDRESS_NONE | CLK_NORMALIZED_COORDS_FALSE}, at); \
  }
READ(read_imagef, float, value) READ(read_imagei, int, value) READ(read_imageui, int, as<uint4>(value))
READ(read_imageh, float, each<half4>([&](int k) { return truncated(value[k]); }))

#define WRITE(NAME, S, COLOUR)                                                                      \
  template <int N, bool L, bool D, class C, class V> void NAME(image<N, L, D> to, C at, V colour) { \
    static_assert(__is_same(element<C>, int));                                                      \
    put<S>(to.is, widened<L>(at), COLOUR);                                                          \
  }
WRITE(write_imagef, float, (float4)colour) WRITE(write_imagei, long, cast<long4>(colour))
WRITE(write_imageui, long, cast<long4>(colour))
WRITE(write_imageh, float, each<float4>([&](int k) { return extended(colour[k]); }))

#define QUERY(NAME, TYPE, VALUE) \
  template <int N, bool L, bool D> TYPE get_image_##NAME(image<N, L, D> of) { return (TYPE)VALUE; }
QUERY(width, int, of.is->width) QUERY(height, int, of.is->height) QUERY(depth, int, of.is->depth)
QUERY(channel_data_type, int, of.is->channel_type) QUERY(channel_order, int, of.is->channel_order)
QUERY(array_size, size_t, of.is->layers) QUERY(num_mip_levels, int, 1)
template <bool L, bool D> int2 get_image_dim(image<2, L, D> of) {
  return (int2)((int)of.is->width, (int)of.is->height);
}
template <bool L, bool D> int4 get_image_dim(image<3, L, D> of) {
  return (int4)((int)of.is->width, (int)of.is->height, (int)of.is->depth, 0);
}

}
#pragma clang attribute pop
