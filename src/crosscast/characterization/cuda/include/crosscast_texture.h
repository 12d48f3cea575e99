/* Textures: a reference is a variable that holds its texels behind 16 bytes, an object is a pointer to texels, of linear
 * memory or of an image. Sizes are known before a kernel runs, and cost nothing. A fetch computes its address and loads. */
#ifndef CROSSCAST_TEXTURE_H
#define CROSSCAST_TEXTURE_H

enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum { cudaTextureType1D = 1, cudaTextureType2D, cudaTextureType3D };
#define hipReadModeElementType cudaReadModeElementType
#define hipReadModeNormalizedFloat cudaReadModeNormalizedFloat
#define hipTextureType1D 1
#define hipTextureType2D 2
#define hipTextureType3D 3
typedef const struct cc_texels *cudaTextureObject_t;
typedef cudaTextureObject_t hipTextureObject_t;

/* What a fetch returns: the element, or a part of 1 for a whole number. */
template <class T, cudaTextureReadMode mode> struct cc_texel {
  typedef T type;
  CC_LANE_MEMBER static T read(T x) { return x; }
};
#define CC_NORMALIZED(T, MOST)                                                          \
  template <> struct cc_texel<T, cudaReadModeNormalizedFloat> {                         \
    typedef float type;                                                                 \
    CC_LANE_MEMBER static float read(T x) { return (float)x * (1.0f / MOST); }        \
  };
CC_NORMALIZED(unsigned char, 255) CC_NORMALIZED(signed char, 127) CC_NORMALIZED(char, 127)
CC_NORMALIZED(unsigned short, 65535) CC_NORMALIZED(short, 32767)
#undef CC_NORMALIZED
template <> struct cc_texel<uchar4, cudaReadModeNormalizedFloat> {
  typedef float4 type;
  CC_LANE_MEMBER static float4 read(uchar4 v) {
    return {v.x * (1.0f / 255), v.y * (1.0f / 255), v.z * (1.0f / 255), v.w * (1.0f / 255)};
  }
};

CC_DEVICE float cc_mix(float x, float y, float a) { return x + (y - x) * a; }
CC_DEVICE float2 cc_mix(float2 x, float2 y, float a) { return {cc_mix(x.x, y.x, a), cc_mix(x.y, y.y, a)}; }
CC_DEVICE float4 cc_mix(float4 x, float4 y, float a) {
  return {cc_mix(x.x, y.x, a), cc_mix(x.y, y.y, a), cc_mix(x.z, y.z, a), cc_mix(x.w, y.w, a)};
}
template <class T> CC_DEVICE T cc_mix(T x, T, float) { return cc_refused_texture(), x; }

/* Width, height or depth of a reference's or an object's image, whose texels have so many bytes (variables.py). */
CC_PURE int cc_image_size(cudaTextureObject_t, int axis, unsigned texel);

/* The bits of `how`: 1 for linear filtering, 2 for coordinates from 0 to 1, 4 for those that wrap around, 8 for zeros
 * outside, 32 for mirrors at both ends. */
template <class T, int dimensions, cudaTextureReadMode mode, int how, int before = 4> struct cc_texture {
  int unused[before];
  T texels[1];
  typedef typename cc_texel<T, mode>::type value;
  CC_LANE_MEMBER int size(int axis) const { return cc_image_size((cudaTextureObject_t)this, axis, sizeof(T)); }
  CC_LANE_MEMBER static int inside(int i, int n) {
    if (how & 4) return (i % n + n) % n;
    if (how & 32) i = (i % (2 * n) + 2 * n) % (2 * n), i = i < n ? i : 2 * n - 1 - i;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
  }
  CC_LANE_MEMBER static float scaled(float x, int n) { return how & 2 ? x * n : x; }
  CC_LANE_MEMBER value at(int i, int j, int k) const {
    if (how & 8 && (i < 0 || i >= size(0) || (dimensions > 1 && (j < 0 || j >= size(1))))) return value();
    if (how & 8 && dimensions > 2 && (k < 0 || k >= size(2))) return value();
    size_t row = inside(i, size(0));
    if (dimensions > 1) row += (size_t)inside(j, size(1)) * size(0);
    if (dimensions > 2) row += (size_t)inside(k, size(2)) * size(0) * size(1);
    return cc_texel<T, mode>::read(texels[row]);
  }
  CC_LANE_MEMBER value line(float x, int j, int k) const {
    x = scaled(x, size(0));
    if (!(how & 1)) return at((int)floor(x), j, k);
    float left = floor(x - 0.5f);
    return cc_mix(at((int)left, j, k), at((int)left + 1, j, k), x - 0.5f - left);
  }
  CC_LANE_MEMBER value plane(float x, float y, int k) const {
    y = scaled(y, size(1));
    if (!(how & 1)) return line(x, (int)floor(y), k);
    float top = floor(y - 0.5f);
    return cc_mix(line(x, (int)top, k), line(x, (int)top + 1, k), y - 0.5f - top);
  }
  CC_LANE_MEMBER value space(float x, float y, float z) const {
    z = scaled(z, size(2));
    if (!(how & 1)) return plane(x, y, (int)floor(z));
    float front = floor(z - 0.5f);
    return cc_mix(plane(x, y, (int)front), plane(x, y, (int)front + 1), z - 0.5f - front);
  }
};
#define CC_TEXTURE(NAME, HOW)                                                               \
  template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType> \
  using NAME = cc_texture<T, dimensions, mode, HOW>;
CC_TEXTURE(texture, 0) CC_TEXTURE(texture_1, 1) CC_TEXTURE(texture_2, 2) CC_TEXTURE(texture_3, 3)
CC_TEXTURE(texture_4, 4) CC_TEXTURE(texture_5, 5) CC_TEXTURE(texture_6, 6) CC_TEXTURE(texture_7, 7)
#undef CC_TEXTURE

#define CC_OF_TEXTURE template <class T, int n, cudaTextureReadMode m, int how>
#define CC_VALUE typename cc_texel<T, m>::type
CC_OF_TEXTURE CC_DEVICE CC_VALUE tex1Dfetch(const cc_texture<T, n, m, how> &t, int i) {
  return cc_texel<T, m>::read(t.texels[i]);
}
CC_OF_TEXTURE CC_DEVICE CC_VALUE tex1D(const cc_texture<T, n, m, how> &t, float x) { return t.line(x, 0, 0); }
CC_OF_TEXTURE CC_DEVICE CC_VALUE tex2D(const cc_texture<T, n, m, how> &t, float x, float y) {
  return t.plane(x, y, 0);
}
CC_OF_TEXTURE CC_DEVICE CC_VALUE tex3D(const cc_texture<T, n, m, how> &t, float x, float y, float z) {
  return t.space(x, y, z);
}
#undef CC_VALUE
#undef CC_OF_TEXTURE

template <class T> CC_DEVICE T tex1Dfetch(cudaTextureObject_t t, int i) { return ((const T *)t)[i]; }
template <class T> CC_DEVICE void tex1Dfetch(T *x, cudaTextureObject_t t, int i) { *x = ((const T *)t)[i]; }

/* An object of an image: its settings are those of host code, and bit 16 reads bytes as parts of 1 (source.py). */
enum { cc_settings = 0x00 };
template <class T, bool of_bytes> struct cc_element { typedef T type; };
template <> struct cc_element<float, true> { typedef unsigned char type; };
template <> struct cc_element<float4, true> { typedef uchar4 type; };
template <class T, int n> CC_DEVICE auto &cc_object(cudaTextureObject_t t) {
  const bool of_bytes = (cc_settings & 16) != 0;
  const auto mode = (cudaTextureReadMode)of_bytes;
  if (cc_settings & 64) cc_refused_texture();
  return *(const cc_texture<typename cc_element<T, of_bytes>::type, n, mode, cc_settings, 0> *)t;
}
template <class T> CC_DEVICE T tex1D(cudaTextureObject_t t, float x) { return cc_object<T, 1>(t).line(x, 0, 0); }
template <class T> CC_DEVICE T tex2D(cudaTextureObject_t t, float x, float y) { return cc_object<T, 2>(t).plane(x, y, 0); }
template <class T> CC_DEVICE T tex3D(cudaTextureObject_t t, float x, float y, float z) {
  return cc_object<T, 3>(t).space(x, y, z);
}
#define CC_FETCH(NAME) \
  template <class T, class... X> CC_DEVICE void NAME(T *to, cudaTextureObject_t t, X... x) { *to = NAME<T>(t, x...); }
CC_FETCH(tex1D) CC_FETCH(tex2D) CC_FETCH(tex3D)
#undef CC_FETCH

#define CC_REFUSED_FETCH(NAME)                                                                                           \
  template <class T, class... Rest> CC_DEVICE T NAME(cudaTextureObject_t, Rest...) { return cc_refused_texture(), T(); } \
  template <class T, class... Rest> CC_DEVICE void NAME(T *, cudaTextureObject_t, Rest...) { cc_refused_texture(); }
CC_REFUSED_FETCH(tex1DLod) CC_REFUSED_FETCH(tex2DLod) CC_REFUSED_FETCH(tex3DLod)
CC_REFUSED_FETCH(tex2DLayered) CC_REFUSED_FETCH(tex2Dgather) CC_REFUSED_FETCH(texCubemap)
#undef CC_REFUSED_FETCH

#endif
