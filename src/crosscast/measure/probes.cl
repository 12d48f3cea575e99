// Kernels that measure what describes a device.

kernel void triad(global float *a, global const float *b, global const float *c, float s)
{
    size_t i = get_global_id(0);
    a[i] = b[i] + s * c[i];
}

kernel void empty(void)
{
}

// Ten independent chains of multiply-adds keep the units busy while each waits for its own result.
#define CHAINS(type, width)                                                                        \
    kernel void fma##width(global type *out, float x, float y)                                     \
    {                                                                                              \
        type a = (type)((float)get_global_id(0));                                                  \
        type b = a + 1, c = a + 2, d = a + 3, e = a + 4;                                           \
        type f = a + 5, g = a + 6, h = a + 7, i = a + 8, j = a + 9;                                \
        for (int n = 0; n < STEPS; n++) {                                                          \
            a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y;             \
            f = f * x + y, g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y;             \
        }                                                                                          \
        out[get_global_id(0)] = a + b + c + d + e + f + g + h + i + j;                             \
    }

CHAINS(float, 1)
CHAINS(float4, 4)
CHAINS(float8, 8)
CHAINS(float16, 16)
