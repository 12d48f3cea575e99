/* Types, constants and macros of OpenCL C.
 *
 * Clang includes this file ahead of every OpenCL C source and declares the builtin functions by
 * itself; it finds their types here. It serves OpenCL C 1.0 to 3.0 on the SPIR targets.
 */
#ifndef CROSSCAST_OPENCL_C_BASE_H
#define CROSSCAST_OPENCL_C_BASE_H

/* Clang claims every extension for SPIR. Kernels that test for one must see what Crosscast runs. */
#undef cl_amd_media_ops
#undef cl_amd_media_ops2
#undef cl_intel_bfloat16_conversions
#undef cl_intel_device_side_avc_motion_estimation
#undef cl_intel_required_subgroup_size
#undef cl_intel_subgroup_buffer_prefetch
#undef cl_intel_subgroup_local_block_io
#undef cl_intel_subgroups
#undef cl_intel_subgroups_char
#undef cl_intel_subgroups_long
#undef cl_intel_subgroups_short
#undef cl_khr_extended_bit_ops
#undef cl_khr_gl_msaa_sharing
#undef cl_khr_integer_dot_product
#undef cl_khr_kernel_clock
#undef cl_khr_mipmap_image
#undef cl_khr_mipmap_image_writes
#undef cl_khr_subgroup_ballot
#undef cl_khr_subgroup_clustered_reduce
#undef cl_khr_subgroup_extended_types
#undef cl_khr_subgroup_named_barrier
#undef cl_khr_subgroup_non_uniform_arithmetic
#undef cl_khr_subgroup_non_uniform_vote
#undef cl_khr_subgroup_rotate
#undef cl_khr_subgroup_shuffle
#undef cl_khr_subgroup_shuffle_relative
#undef cl_khr_subgroups
#undef __opencl_c_integer_dot_product_input_4x8bit
#undef __opencl_c_integer_dot_product_input_4x8bit_packed
#undef __opencl_c_kernel_clock_scope_device
#undef __opencl_c_kernel_clock_scope_sub_group
#undef __opencl_c_kernel_clock_scope_work_group
#undef __opencl_c_subgroups
#if __OPENCL_C_VERSION__ >= 300
/* Optional in 3.0 and left out; in 2.0 they are part of the language and refused where used. */
#undef __opencl_c_device_enqueue
#undef __opencl_c_pipes
#endif

/* Sub-groups are there for those who use them; who asks whether they are finds what stood here before them. */
#define __opencl_subgroup_builtins 1

/* Without generic pointers, each address space has builtins of its own. */
#ifndef __opencl_c_generic_address_space
#define __opencl_c_named_address_space_builtins 1
#endif

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

/* Scalar types */
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

/* Vector types */
#define CROSSCAST_VECTORS(T)                            \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4))); \
    typedef T T##8 __attribute__((ext_vector_type(8))); \
    typedef T T##16 __attribute__((ext_vector_type(16)))
CROSSCAST_VECTORS(char);
CROSSCAST_VECTORS(uchar);
CROSSCAST_VECTORS(short);
CROSSCAST_VECTORS(ushort);
CROSSCAST_VECTORS(int);
CROSSCAST_VECTORS(uint);
CROSSCAST_VECTORS(long);
CROSSCAST_VECTORS(ulong);
CROSSCAST_VECTORS(float);
CROSSCAST_VECTORS(double);
CROSSCAST_VECTORS(half);
#undef CROSSCAST_VECTORS

#define NULL ((void *)0)

/* Limits of the integer types */
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-SCHAR_MAX - 1)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-SHRT_MAX - 1)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX 18446744073709551615UL

/* Limits of the floating-point types */
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX_10_EXP 308
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MIN_EXP (-1021)
#define DBL_RADIX 2
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1.0p-1022
#define DBL_EPSILON 0x1.0p-52
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_RADIX 2
#define HALF_MAX ((half)0x1.ffcp15f)
#define HALF_MIN ((half)0x1.0p-14f)
#define HALF_EPSILON ((half)0x1.0p-10f)

/* Special values */
#define MAXFLOAT FLT_MAX
#define HUGE_VALF (__builtin_huge_valf())
#define HUGE_VAL (__builtin_huge_val())
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MAX

/* Mathematical constants */
#define M_E_F 2.718281828459045235360287471353f
#define M_LOG2E_F 1.442695040888963407359924681002f
#define M_LOG10E_F 0.434294481903251827651128918917f
#define M_LN2_F 0.693147180559945309417232121458f
#define M_LN10_F 2.302585092994045684017991454684f
#define M_PI_F 3.141592653589793238462643383280f
#define M_PI_2_F 1.570796326794896619231321691640f
#define M_PI_4_F 0.785398163397448309615660845820f
#define M_1_PI_F 0.318309886183790671537767526745f
#define M_2_PI_F 0.636619772367581343075535053490f
#define M_2_SQRTPI_F 1.128379167095512573896158903122f
#define M_SQRT2_F 1.414213562373095048801688724210f
#define M_SQRT1_2_F 0.707106781186547524400844362105f
#define M_E 2.718281828459045235360287471353
#define M_LOG2E 1.442695040888963407359924681002
#define M_LOG10E 0.434294481903251827651128918917
#define M_LN2 0.693147180559945309417232121458
#define M_LN10 2.302585092994045684017991454684
#define M_PI 3.141592653589793238462643383280
#define M_PI_2 1.570796326794896619231321691640
#define M_PI_4 0.785398163397448309615660845820
#define M_1_PI 0.318309886183790671537767526745
#define M_2_PI 0.636619772367581343075535053490
#define M_2_SQRTPI 1.128379167095512573896158903122
#define M_SQRT2 1.414213562373095048801688724210
#define M_SQRT1_2 0.707106781186547524400844362105
#define M_E_H ((half)2.718281828459045235360287471353f)
#define M_LOG2E_H ((half)1.442695040888963407359924681002f)
#define M_LOG10E_H ((half)0.434294481903251827651128918917f)
#define M_LN2_H ((half)0.693147180559945309417232121458f)
#define M_LN10_H ((half)2.302585092994045684017991454684f)
#define M_PI_H ((half)3.141592653589793238462643383280f)
#define M_PI_2_H ((half)1.570796326794896619231321691640f)
#define M_PI_4_H ((half)0.785398163397448309615660845820f)
#define M_1_PI_H ((half)0.318309886183790671537767526745f)
#define M_2_PI_H ((half)0.636619772367581343075535053490f)
#define M_2_SQRTPI_H ((half)1.128379167095512573896158903122f)
#define M_SQRT2_H ((half)1.414213562373095048801688724210f)
#define M_SQRT1_2_H ((half)0.707106781186547524400844362105f)

/* Fences, memory orders and scopes */
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 0x01
#define CLK_GLOBAL_MEM_FENCE 0x02
#define CLK_IMAGE_MEM_FENCE 0x04

#define ATOMIC_VAR_INIT(value) (value)
#define ATOMIC_FLAG_INIT 0

#if defined(__OPENCL_CPP_VERSION__) || __OPENCL_C_VERSION__ >= 200
typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;

typedef enum memory_scope {
    memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
    memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
    memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
    memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
    memory_scope_all_devices = memory_scope_all_svm_devices,
    memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;
#endif

/* Samplers */
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20

/* Image channel orders and data types, with the host API's values */
#define CLK_R 0x10B0
#define CLK_A 0x10B1
#define CLK_RG 0x10B2
#define CLK_RA 0x10B3
#define CLK_RGB 0x10B4
#define CLK_RGBA 0x10B5
#define CLK_BGRA 0x10B6
#define CLK_ARGB 0x10B7
#define CLK_INTENSITY 0x10B8
#define CLK_LUMINANCE 0x10B9
#define CLK_Rx 0x10BA
#define CLK_RGx 0x10BB
#define CLK_RGBx 0x10BC
#define CLK_DEPTH 0x10BD
#define CLK_DEPTH_STENCIL 0x10BE
#define CLK_sRGB 0x10BF
#define CLK_sRGBx 0x10C0
#define CLK_sRGBA 0x10C1
#define CLK_sBGRA 0x10C2
#define CLK_ABGR 0x10C3
#define CLK_SNORM_INT8 0x10D0
#define CLK_SNORM_INT16 0x10D1
#define CLK_UNORM_INT8 0x10D2
#define CLK_UNORM_INT16 0x10D3
#define CLK_UNORM_SHORT_565 0x10D4
#define CLK_UNORM_SHORT_555 0x10D5
#define CLK_UNORM_INT_101010 0x10D6
#define CLK_SIGNED_INT8 0x10D7
#define CLK_SIGNED_INT16 0x10D8
#define CLK_SIGNED_INT32 0x10D9
#define CLK_UNSIGNED_INT8 0x10DA
#define CLK_UNSIGNED_INT16 0x10DB
#define CLK_UNSIGNED_INT32 0x10DC
#define CLK_HALF_FLOAT 0x10DD
#define CLK_FLOAT 0x10DE
#define CLK_UNORM_INT24 0x10DF
#define CLK_UNORM_INT_101010_2 0x10E0

/* Device-side enqueue and pipes: enough for clang to parse them, so that their use can be named */
#if defined(__OPENCL_CPP_VERSION__) || __OPENCL_C_VERSION__ >= 200
#define CLK_NULL_RESERVE_ID (__builtin_astype((void *)__SIZE_MAX__, reserve_id_t))
#define CLK_NULL_QUEUE 0
#define CLK_NULL_EVENT (__builtin_astype(__SIZE_MAX__, clk_event_t))
#define CLK_SUCCESS 0
#define CLK_ENQUEUE_FAILURE (-101)
#define CLK_INVALID_QUEUE (-102)
#define CLK_INVALID_NDRANGE (-160)
#define CLK_INVALID_EVENT_WAIT_LIST (-57)
#define CLK_DEVICE_QUEUE_FULL (-161)
#define CLK_INVALID_ARG_SIZE (-51)
#define CLK_EVENT_ALLOCATION_FAILURE (-100)
#define CLK_OUT_OF_RESOURCES (-5)
#define CL_COMPLETE 0
#define CL_RUNNING 1
#define CL_SUBMITTED 2
#define CL_QUEUED 3
#define CLK_ENQUEUE_FLAGS_NO_WAIT 0
#define CLK_ENQUEUE_FLAGS_WAIT_KERNEL 1
#define CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP 2
#define CLK_PROFILING_COMMAND_EXEC_TIME 1
#define MAX_WORK_DIM 3
typedef int kernel_enqueue_flags_t;
typedef int clk_profiling_info;
typedef struct {
    uint workDimension;
    size_t globalWorkOffset[MAX_WORK_DIM];
    size_t globalWorkSize[MAX_WORK_DIM];
    size_t localWorkSize[MAX_WORK_DIM];
} ndrange_t;
#endif

/* Function qualifiers */
#define kernel_exec(X, TYPE) \
    __kernel __attribute__((work_group_size_hint(X, 1, 1))) __attribute__((vec_type_hint(TYPE)))
#define __kernel_exec(X, TYPE) kernel_exec(X, TYPE)

#if defined(__OPENCL_CPP_VERSION__) || __OPENCL_C_VERSION__ >= 120
int printf(__constant const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif

/* Reinterpretation of a value's bits */
#define as_char(x) __builtin_astype((x), char)
#define as_char2(x) __builtin_astype((x), char2)
#define as_char3(x) __builtin_astype((x), char3)
#define as_char4(x) __builtin_astype((x), char4)
#define as_char8(x) __builtin_astype((x), char8)
#define as_char16(x) __builtin_astype((x), char16)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_uchar2(x) __builtin_astype((x), uchar2)
#define as_uchar3(x) __builtin_astype((x), uchar3)
#define as_uchar4(x) __builtin_astype((x), uchar4)
#define as_uchar8(x) __builtin_astype((x), uchar8)
#define as_uchar16(x) __builtin_astype((x), uchar16)
#define as_short(x) __builtin_astype((x), short)
#define as_short2(x) __builtin_astype((x), short2)
#define as_short3(x) __builtin_astype((x), short3)
#define as_short4(x) __builtin_astype((x), short4)
#define as_short8(x) __builtin_astype((x), short8)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_ushort2(x) __builtin_astype((x), ushort2)
#define as_ushort3(x) __builtin_astype((x), ushort3)
#define as_ushort4(x) __builtin_astype((x), ushort4)
#define as_ushort8(x) __builtin_astype((x), ushort8)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int(x) __builtin_astype((x), int)
#define as_int2(x) __builtin_astype((x), int2)
#define as_int3(x) __builtin_astype((x), int3)
#define as_int4(x) __builtin_astype((x), int4)
#define as_int8(x) __builtin_astype((x), int8)
#define as_int16(x) __builtin_astype((x), int16)
#define as_uint(x) __builtin_astype((x), uint)
#define as_uint2(x) __builtin_astype((x), uint2)
#define as_uint3(x) __builtin_astype((x), uint3)
#define as_uint4(x) __builtin_astype((x), uint4)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_uint16(x) __builtin_astype((x), uint16)
#define as_long(x) __builtin_astype((x), long)
#define as_long2(x) __builtin_astype((x), long2)
#define as_long3(x) __builtin_astype((x), long3)
#define as_long4(x) __builtin_astype((x), long4)
#define as_long8(x) __builtin_astype((x), long8)
#define as_long16(x) __builtin_astype((x), long16)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_ulong2(x) __builtin_astype((x), ulong2)
#define as_ulong3(x) __builtin_astype((x), ulong3)
#define as_ulong4(x) __builtin_astype((x), ulong4)
#define as_ulong8(x) __builtin_astype((x), ulong8)
#define as_ulong16(x) __builtin_astype((x), ulong16)
#define as_float(x) __builtin_astype((x), float)
#define as_float2(x) __builtin_astype((x), float2)
#define as_float3(x) __builtin_astype((x), float3)
#define as_float4(x) __builtin_astype((x), float4)
#define as_float8(x) __builtin_astype((x), float8)
#define as_float16(x) __builtin_astype((x), float16)
#define as_double(x) __builtin_astype((x), double)
#define as_double2(x) __builtin_astype((x), double2)
#define as_double3(x) __builtin_astype((x), double3)
#define as_double4(x) __builtin_astype((x), double4)
#define as_double8(x) __builtin_astype((x), double8)
#define as_double16(x) __builtin_astype((x), double16)
#define as_half(x) __builtin_astype((x), half)
#define as_half2(x) __builtin_astype((x), half2)
#define as_half3(x) __builtin_astype((x), half3)
#define as_half4(x) __builtin_astype((x), half4)
#define as_half8(x) __builtin_astype((x), half8)
#define as_half16(x) __builtin_astype((x), half16)
#define as_size_t(x) __builtin_astype((x), size_t)
#define as_ptrdiff_t(x) __builtin_astype((x), ptrdiff_t)
#define as_intptr_t(x) __builtin_astype((x), intptr_t)
#define as_uintptr_t(x) __builtin_astype((x), uintptr_t)

/* Shuffles of sub-groups, whose extensions are not claimed either. */
#define CROSSCAST_SHUFFLES(T)                                                        \
    T __attribute__((overloadable, convergent)) sub_group_shuffle(T, uint);          \
    T __attribute__((overloadable, convergent)) sub_group_shuffle_xor(T, uint);      \
    T __attribute__((overloadable, convergent)) sub_group_shuffle_up(T, uint);       \
    T __attribute__((overloadable, convergent)) sub_group_shuffle_down(T, uint);
CROSSCAST_SHUFFLES(int)
CROSSCAST_SHUFFLES(uint)
CROSSCAST_SHUFFLES(long)
CROSSCAST_SHUFFLES(ulong)
CROSSCAST_SHUFFLES(float)
CROSSCAST_SHUFFLES(double)
#undef CROSSCAST_SHUFFLES

/* Ballots and reductions of parts of sub-groups, by operations of warps. */
#if defined(__OPENCL_CPP_VERSION__) || __OPENCL_C_VERSION__ >= 200
uint __attribute__((overloadable, convergent)) __ballot(int);
uint __attribute__((overloadable, convergent)) __activemask(void);
#define CROSSCAST_INLINE static inline __attribute__((overloadable, convergent, always_inline, nodebug))
CROSSCAST_INLINE uint4 sub_group_ballot(int predicate) { return (uint4)(__ballot(predicate != 0), 0, 0, 0); }
CROSSCAST_INLINE int sub_group_inverse_ballot(uint4 ballot) { return ballot.x >> get_sub_group_local_id() & 1; }
CROSSCAST_INLINE int sub_group_elect(void) { return get_sub_group_local_id() == ctz(__activemask()); }
#define CROSSCAST_PARTS(T)                                                                                     \
    T __attribute__((overloadable, convergent)) cc_tile_add(T, int);                                           \
    T __attribute__((overloadable, convergent)) cc_tile_min(T, int);                                           \
    T __attribute__((overloadable, convergent)) cc_tile_max(T, int);                                           \
    CROSSCAST_INLINE T sub_group_broadcast_first(T x) { return sub_group_shuffle(x, ctz(__activemask())); }    \
    CROSSCAST_INLINE T sub_group_clustered_reduce_add(T x, uint size) { return cc_tile_add(x, (int)size); }    \
    CROSSCAST_INLINE T sub_group_clustered_reduce_min(T x, uint size) { return cc_tile_min(x, (int)size); }    \
    CROSSCAST_INLINE T sub_group_clustered_reduce_max(T x, uint size) { return cc_tile_max(x, (int)size); }
CROSSCAST_PARTS(int)
CROSSCAST_PARTS(uint)
CROSSCAST_PARTS(long)
CROSSCAST_PARTS(ulong)
CROSSCAST_PARTS(float)
CROSSCAST_PARTS(double)
#undef CROSSCAST_PARTS
#undef CROSSCAST_INLINE
#endif

#endif
