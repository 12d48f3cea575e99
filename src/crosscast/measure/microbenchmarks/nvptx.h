// What kernels.cl has of OpenCL C, as C for NVIDIA's GPUs: clang makes PTX of the two, which CUDA's drivers read.

#define kernel __attribute__((device_kernel))
#define global __attribute__((address_space(1)))
#define local static __attribute__((address_space(3)))
typedef unsigned int uint;
typedef unsigned long size_t;
typedef float float4 __attribute__((ext_vector_type(4)));
typedef _Float16 half, half2 __attribute__((ext_vector_type(2)));

#define get_local_id(dimension) __nvvm_read_ptx_sreg_tid_x()
#define get_local_size(dimension) __nvvm_read_ptx_sreg_ntid_x()
#define get_group_id(dimension) __nvvm_read_ptx_sreg_ctaid_x()
#define get_global_id(dimension) (get_group_id(0) * get_local_size(0) + get_local_id(0))
#define get_global_size(dimension) (__nvvm_read_ptx_sreg_nctaid_x() * get_local_size(0))
#define barrier(fence) __nvvm_bar_sync(0)
#define atomic_add(at, value)                                                                      \
    __scoped_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)

// The instructions of CUDA's expf.
static inline float exp(float v)
{
    float near = __nvvm_saturate_f(__nvvm_fma_rn_f(v, 0x1.77313ap-8f, 0.5f));
    float scale = __nvvm_fma_rm_f(near, 252.0f, 12582913.0f);
    float rest = v * 0x1.715476p+0f - (scale - 12583039.0f);
    float power = __nvvm_ex2_approx_ftz_f(v * 0x1.4ae0cp-26f + rest);
    return power * __builtin_bit_cast(float, __builtin_bit_cast(uint, scale) << 23);
}
