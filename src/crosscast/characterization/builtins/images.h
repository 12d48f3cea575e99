/* Images and samplers: how a texel is found, filtered, read and written.
 *
 * Sections 8.2 and 8.3 of the OpenCL 1.2 specification. An image is a descriptor in memory, a
 * sampler the bit mask of the CLK_ constants. Arrays of images keep their layers where 3D images
 * keep their slices. Whatever a kernel asks for, memory outside of the image is never touched.
 */

typedef struct {
    global uchar *data;
    ulong row_pitch;   /* bytes */
    ulong slice_pitch; /* bytes; of a slice or of a layer */
    uint width;
    uint height;
    uint depth;
    uint layers;
    uint channel_order;
    uint channel_type;
    uint channels;
    uint channel_size; /* bytes */
} cc_image;

/* The engine counts these as accesses to global memory. */
void cc_texel_read(const global void *address);
void cc_texel_write(const global void *address);

/* ---- Half precision, without the conversions that some hosts lack ---- */

static float cc_image_from_half(ushort half_bits) {
    uint magnitude = half_bits & 0x7fffu;
    /* The exponent's bias differs by 112; multiplying also makes subnormals right. */
    float value = __builtin_astype(magnitude << 13, float) * 0x1p112f;
    uint bits = __builtin_astype(value, uint);
    if (magnitude >= 0x7c00u) bits |= 0x7f800000u;
    return __builtin_astype(bits | (half_bits & 0x8000u) << 16, float);
}

static ushort cc_image_to_half(float value) {
    uint bits = __builtin_astype(value, uint);
    ushort sign = (ushort)(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits >= 0x47800000u) return sign | (bits > 0x7f800000u ? 0x7e00 : 0x7c00);
    if (bits < 0x38800000u) {
        /* Subnormal: the last place of 0.5f is that of a half, so the addition rounds. */
        float sum = __builtin_astype(bits, float) + 0.5f;
        return sign | (ushort)(__builtin_astype(sum, uint) - 0x3f000000u);
    }
    bits += 0xc8000fffu + (bits >> 13 & 1u);
    return sign | (ushort)(bits >> 13);
}

/* ---- One channel ---- */

static float cc_image_channel_float(const global uchar *p, uint type) {
    switch (type) {
    case CLK_UNORM_INT8: return (float)*p / 255.0f;
    case CLK_UNORM_INT16: return (float)*(const global ushort *)p / 65535.0f;
    case CLK_SNORM_INT8: return __builtin_elementwise_max(-1.0f, (float)*(const global char *)p / 127.0f);
    case CLK_SNORM_INT16: return __builtin_elementwise_max(-1.0f, (float)*(const global short *)p / 32767.0f);
    case CLK_HALF_FLOAT: return cc_image_from_half(*(const global ushort *)p);
    case CLK_FLOAT: return *(const global float *)p;
    case CLK_SIGNED_INT8: return (float)*(const global char *)p;
    case CLK_SIGNED_INT16: return (float)*(const global short *)p;
    case CLK_SIGNED_INT32: return (float)*(const global int *)p;
    case CLK_UNSIGNED_INT8: return (float)*p;
    case CLK_UNSIGNED_INT16: return (float)*(const global ushort *)p;
    case CLK_UNSIGNED_INT32: return (float)*(const global uint *)p;
    default: return 0.0f;
    }
}

static int cc_image_channel_int(const global uchar *p, uint type) {
    switch (type) {
    case CLK_SIGNED_INT8: case CLK_SNORM_INT8: return *(const global char *)p;
    case CLK_SIGNED_INT16: case CLK_SNORM_INT16: return *(const global short *)p;
    case CLK_UNSIGNED_INT8: case CLK_UNORM_INT8: return *p;
    case CLK_UNSIGNED_INT16: case CLK_UNORM_INT16: case CLK_HALF_FLOAT: return *(const global ushort *)p;
    case CLK_SIGNED_INT32: case CLK_UNSIGNED_INT32: return *(const global int *)p;
    case CLK_FLOAT: return __builtin_astype(*(const global float *)p, int);
    default: return 0;
    }
}

/* Saturated; of a float to the nearest integer, ties to even, and 0 of a NaN. */
static long cc_image_saturate(double value, long low, long high) {
    if (value != value) return 0;
    value = __builtin_elementwise_max((double)low, __builtin_elementwise_min(value, (double)high));
    return (long)__builtin_elementwise_rint(value);
}

static void cc_image_store_float(global uchar *p, uint type, float value) {
    switch (type) {
    case CLK_UNORM_INT8: *p = (uchar)cc_image_saturate(value * 255.0f, 0, 255); break;
    case CLK_UNORM_INT16: *(global ushort *)p = (ushort)cc_image_saturate(value * 65535.0f, 0, 65535); break;
    case CLK_SNORM_INT8: *(global char *)p = (char)cc_image_saturate(value * 127.0f, -128, 127); break;
    case CLK_SNORM_INT16: *(global short *)p = (short)cc_image_saturate(value * 32767.0f, -32768, 32767); break;
    case CLK_HALF_FLOAT: *(global ushort *)p = cc_image_to_half(value); break;
    case CLK_FLOAT: *(global float *)p = value; break;
    case CLK_SIGNED_INT8: *(global char *)p = (char)cc_image_saturate(value, -128, 127); break;
    case CLK_SIGNED_INT16: *(global short *)p = (short)cc_image_saturate(value, -32768, 32767); break;
    case CLK_SIGNED_INT32: *(global int *)p = (int)cc_image_saturate(value, INT_MIN, INT_MAX); break;
    case CLK_UNSIGNED_INT8: *p = (uchar)cc_image_saturate(value, 0, 255); break;
    case CLK_UNSIGNED_INT16: *(global ushort *)p = (ushort)cc_image_saturate(value, 0, 65535); break;
    case CLK_UNSIGNED_INT32: *(global uint *)p = (uint)cc_image_saturate(value, 0, UINT_MAX); break;
    }
}

static long cc_image_clamp_long(long value, long low, long high) {
    return value < low ? low : value > high ? high : value;
}

static void cc_image_store_int(global uchar *p, uint type, long value) {
    switch (type) {
    case CLK_SIGNED_INT8: case CLK_SNORM_INT8:
        *(global char *)p = (char)cc_image_clamp_long(value, -128, 127); break;
    case CLK_SIGNED_INT16: case CLK_SNORM_INT16:
        *(global short *)p = (short)cc_image_clamp_long(value, -32768, 32767); break;
    case CLK_SIGNED_INT32: *(global int *)p = (int)cc_image_clamp_long(value, INT_MIN, INT_MAX); break;
    case CLK_UNSIGNED_INT8: case CLK_UNORM_INT8:
        *p = (uchar)cc_image_clamp_long(value, 0, 255); break;
    case CLK_UNSIGNED_INT16: case CLK_UNORM_INT16:
        *(global ushort *)p = (ushort)cc_image_clamp_long(value, 0, 65535); break;
    case CLK_UNSIGNED_INT32: *(global uint *)p = (uint)cc_image_clamp_long(value, 0, UINT_MAX); break;
    default: cc_image_store_float(p, type, (float)value);
    }
}

/* ---- Channel order ---- */

#define CC_IMAGE_ORDER(type4, kind)                                                        \
    static type4 cc_image_order_##kind(const global cc_image *image, type4 stored) {       \
        switch (image->channel_order) {                                                    \
        case CLK_RGBA: return stored;                                                      \
        case CLK_BGRA: return stored.zyxw;                                                 \
        case CLK_RG: return (type4)(stored.xy, 0, 1);                                      \
        case CLK_A: return (type4)(0, 0, 0, stored.x);                                     \
        case CLK_INTENSITY: return stored.xxxx;                                            \
        case CLK_LUMINANCE: return (type4)(stored.xxx, 1);                                 \
        default: return (type4)(stored.x, 0, 0, 1);                                        \
        }                                                                                  \
    }
CC_IMAGE_ORDER(float4, float)
CC_IMAGE_ORDER(int4, int)

/* ---- Texels ---- */

static uint cc_image_slices(const global cc_image *image) { return image->depth * image->layers; }

static bool cc_image_inside(const global cc_image *image, int4 at) {
    return (uint)at.x < image->width && (uint)at.y < image->height && (uint)at.z < cc_image_slices(image);
}

static global uchar *cc_image_texel(const global cc_image *image, int4 at) {
    ulong offset = (ulong)at.x * (image->channels * image->channel_size);
    return image->data + offset + (ulong)at.y * image->row_pitch + (ulong)at.z * image->slice_pitch;
}

/* The border's channels are 0 as stored; the channel order makes its alpha 0 or 1. */
#define CC_IMAGE_FETCH(type4, kind)                                                        \
    static type4 cc_image_fetch_##kind(const global cc_image *image, int4 at) {            \
        type4 stored = 0;                                                                  \
        if (!cc_image_inside(image, at)) return stored;                                    \
        const global uchar *p = cc_image_texel(image, at);                                 \
        cc_texel_read(p);                                                                  \
        uint type = image->channel_type, size = image->channel_size;                       \
        stored.x = cc_image_channel_##kind(p, type);                                       \
        if (image->channels >= 2) stored.y = cc_image_channel_##kind(p + size, type);      \
        if (image->channels == 4) {                                                        \
            stored.z = cc_image_channel_##kind(p + 2 * size, type);                        \
            stored.w = cc_image_channel_##kind(p + 3 * size, type);                        \
        }                                                                                  \
        return stored;                                                                     \
    }
CC_IMAGE_FETCH(float4, float)
CC_IMAGE_FETCH(int4, int)

/* ---- Addressing modes ---- */

#define CC_IMAGE_ADDRESS(sampler) ((uint)(sampler) & 0xeu)
#define CC_IMAGE_NORMALIZED(sampler) (((uint)(sampler) & CLK_NORMALIZED_COORDS_TRUE) != 0)
#define CC_IMAGE_LINEAR(sampler) (((uint)(sampler) & CLK_FILTER_LINEAR) != 0)
#define CC_IMAGE_NO_SAMPLER (CLK_FILTER_NEAREST | CLK_ADDRESS_NONE | CLK_NORMALIZED_COORDS_FALSE)

static int cc_image_clamp(int i, int low, int high) { return i < low ? low : i > high ? high : i; }

/* Every mode but CLAMP, which lets a texel be outside, ends inside; so does NONE, where it is undefined. */
static int cc_image_address(int i, int size, uint sampler) {
    return CC_IMAGE_ADDRESS(sampler) == CLK_ADDRESS_CLAMP ? i : cc_image_clamp(i, 0, size - 1);
}

/* Coordinate in texels, brought near the image so that it fits an int; a NaN goes below. */
static float cc_image_unnormalize(float s, int size, uint sampler) {
    uint mode = CC_IMAGE_ADDRESS(sampler);
    bool wraps = mode == CLK_ADDRESS_REPEAT || mode == CLK_ADDRESS_MIRRORED_REPEAT;
    float extent = (float)size;
    if (wraps && !CC_IMAGE_NORMALIZED(sampler)) s = s / extent;
    if (mode == CLK_ADDRESS_REPEAT) {
        s = s - __builtin_elementwise_floor(s);
    } else if (mode == CLK_ADDRESS_MIRRORED_REPEAT) {
        s = __builtin_elementwise_abs(s - 2.0f * __builtin_elementwise_rint(0.5f * s));
    }
    float u = wraps || CC_IMAGE_NORMALIZED(sampler) ? s * extent : s;
    u = u > -2.0f ? u : -2.0f;
    return u < extent + 2.0f ? u : extent + 2.0f;
}

static int cc_image_nearest(float s, int size, uint sampler) {
    int i = (int)__builtin_elementwise_floor(cc_image_unnormalize(s, size, sampler));
    if (CC_IMAGE_ADDRESS(sampler) == CLK_ADDRESS_REPEAT && i > size - 1) i -= size;
    return cc_image_address(i, size, sampler);
}

/* The two texels beside a coordinate, and the weight of the second. */
typedef struct {
    int first;
    int second;
    float weight;
} cc_image_pair;

static cc_image_pair cc_image_linear(float s, int size, uint sampler) {
    float u = cc_image_unnormalize(s, size, sampler) - 0.5f;
    float below = __builtin_elementwise_floor(u);
    cc_image_pair pair = {(int)below, (int)below + 1, u - below};
    if (CC_IMAGE_ADDRESS(sampler) == CLK_ADDRESS_REPEAT) {
        if (pair.first < 0) pair.first += size;
        if (pair.second > size - 1) pair.second -= size;
    }
    pair.first = cc_image_address(pair.first, size, sampler);
    pair.second = cc_image_address(pair.second, size, sampler);
    return pair;
}

static int cc_image_integer(int i, int size, uint sampler) {
    uint mode = CC_IMAGE_ADDRESS(sampler);
    if (mode == CLK_ADDRESS_REPEAT || mode == CLK_ADDRESS_MIRRORED_REPEAT) {
        long period = mode == CLK_ADDRESS_REPEAT ? size : 2 * (long)size;
        long place = i % period;
        if (place < 0) place += period;
        return (int)(place < size ? place : period - 1 - place);
    }
    return cc_image_address(i, size, sampler);
}

/* ---- Where a read goes; `spatial` is the number of coordinates that are not a layer ---- */

static int cc_image_layer(const global cc_image *image, float w) {
    float last = (float)((int)image->layers - 1);
    w = __builtin_elementwise_rint(w);
    w = w > 0.0f ? w : 0.0f;
    return (int)(w < last ? w : last);
}

static int4 cc_image_at_int(const global cc_image *image, int4 at, int spatial, uint sampler) {
    at.x = cc_image_integer(at.x, (int)image->width, sampler);
    if (spatial > 1) at.y = cc_image_integer(at.y, (int)image->height, sampler);
    at.z = spatial > 2 ? cc_image_integer(at.z, (int)image->depth, sampler)
                       : cc_image_clamp(at.z, 0, (int)image->layers - 1);
    return at;
}

static int4 cc_image_at_float(const global cc_image *image, float4 at, int spatial, uint sampler) {
    int x = cc_image_nearest(at.x, (int)image->width, sampler);
    int y = spatial > 1 ? cc_image_nearest(at.y, (int)image->height, sampler) : 0;
    int z = spatial > 2 ? cc_image_nearest(at.z, (int)image->depth, sampler) : cc_image_layer(image, at.z);
    return (int4)(x, y, z, 0);
}

/* ---- Filters ---- */

static float4 cc_image_row(const global cc_image *image, cc_image_pair x, int y, int z) {
    float4 first = cc_image_fetch_float(image, (int4)(x.first, y, z, 0));
    float4 second = cc_image_fetch_float(image, (int4)(x.second, y, z, 0));
    return (1.0f - x.weight) * first + x.weight * second;
}

static float4 cc_image_plane(const global cc_image *image, cc_image_pair x, cc_image_pair y, int z) {
    float4 first = cc_image_row(image, x, y.first, z);
    float4 second = cc_image_row(image, x, y.second, z);
    return (1.0f - y.weight) * first + y.weight * second;
}

static float4 cc_image_filter(const global cc_image *image, float4 at, int spatial, uint sampler) {
    cc_image_pair x = cc_image_linear(at.x, (int)image->width, sampler);
    if (spatial == 1) return cc_image_row(image, x, 0, cc_image_layer(image, at.z));
    cc_image_pair y = cc_image_linear(at.y, (int)image->height, sampler);
    if (spatial == 2) return cc_image_plane(image, x, y, cc_image_layer(image, at.z));
    cc_image_pair z = cc_image_linear(at.z, (int)image->depth, sampler);
    float4 first = cc_image_plane(image, x, y, z.first);
    float4 second = cc_image_plane(image, x, y, z.second);
    return (1.0f - z.weight) * first + z.weight * second;
}

/* ---- What the functions of OpenCL C call ---- */

static float4 cc_image_read_float_at_int(const global cc_image *image, int4 at, int spatial, uint sampler) {
    at = cc_image_at_int(image, at, spatial, sampler);
    return cc_image_order_float(image, cc_image_fetch_float(image, at));
}

static float4 cc_image_read_float_at_float(const global cc_image *image, float4 at, int spatial, uint sampler) {
    float4 stored = CC_IMAGE_LINEAR(sampler)
                        ? cc_image_filter(image, at, spatial, sampler)
                        : cc_image_fetch_float(image, cc_image_at_float(image, at, spatial, sampler));
    return cc_image_order_float(image, stored);
}

static int4 cc_image_read_int_at_int(const global cc_image *image, int4 at, int spatial, uint sampler) {
    at = cc_image_at_int(image, at, spatial, sampler);
    return cc_image_order_int(image, cc_image_fetch_int(image, at));
}

static int4 cc_image_read_int_at_float(const global cc_image *image, float4 at, int spatial, uint sampler) {
    int4 texel = cc_image_at_float(image, at, spatial, sampler);
    return cc_image_order_int(image, cc_image_fetch_int(image, texel));
}

static half4 cc_image_half4(float4 v) {
    ushort4 bits = (ushort4)(cc_image_to_half(v.x), cc_image_to_half(v.y), cc_image_to_half(v.z),
                             cc_image_to_half(v.w));
    return __builtin_astype(bits, half4);
}

static float4 cc_image_float4(half4 v) {
    ushort4 bits = __builtin_astype(v, ushort4);
    return (float4)(cc_image_from_half(bits.x), cc_image_from_half(bits.y), cc_image_from_half(bits.z),
                    cc_image_from_half(bits.w));
}

static void cc_image_write_float(const global cc_image *image, int4 at, float4 colour) {
    if (!cc_image_inside(image, at)) return;
    global uchar *p = cc_image_texel(image, at);
    cc_texel_write(p);
    uint type = image->channel_type, size = image->channel_size;
    if (image->channel_order == CLK_BGRA) colour = colour.zyxw;
    if (image->channel_order == CLK_A) colour = colour.wwww;
    cc_image_store_float(p, type, colour.x);
    if (image->channels >= 2) cc_image_store_float(p + size, type, colour.y);
    if (image->channels == 4) {
        cc_image_store_float(p + 2 * size, type, colour.z);
        cc_image_store_float(p + 3 * size, type, colour.w);
    }
}

static void cc_image_write_int(const global cc_image *image, int4 at, long4 colour) {
    if (!cc_image_inside(image, at)) return;
    global uchar *p = cc_image_texel(image, at);
    cc_texel_write(p);
    uint type = image->channel_type, size = image->channel_size;
    if (image->channel_order == CLK_BGRA) colour = colour.zyxw;
    if (image->channel_order == CLK_A) colour = colour.wwww;
    cc_image_store_int(p, type, colour.x);
    if (image->channels >= 2) cc_image_store_int(p + size, type, colour.y);
    if (image->channels == 4) {
        cc_image_store_int(p + 2 * size, type, colour.z);
        cc_image_store_int(p + 3 * size, type, colour.w);
    }
}
