// What is measured on a device.
// WIDE is set for CPUs: a work-item has a piece of each array to itself, and vectors of 8 numbers.

#define SPREAD(x) ((words)(x))
#if WIDE
typedef float8 words;
#define PART(i, k) (4u * (i) + k)
#define SUM(v) ((v).s0 + (v).s3 + (v).s7)
#define EACH(i, count)                                                                             \
    size_t piece_ = ((count) + get_global_size(0) - 1) / get_global_size(0);                       \
    size_t first_ = get_global_id(0) * piece_;                                                     \
    size_t end_ = first_ + piece_ < (count) ? first_ + piece_ : (count);                           \
    for (size_t i = first_; i < end_; i++)
#else
typedef float4 words;
#define PART(i, k) ((i) + k * (count / 4u))
#define SUM(v) ((v).x + (v).y + (v).z + (v).w)
#define EACH(i, count) for (size_t i = get_global_id(0); i < (count); i += get_global_size(0))
#endif

kernel void empty(void)
{
}

// For many groups with little to do.
kernel void one_word(global float *out)
{
    out[get_group_id(0) & 1023u] = 1.0f;
}

// One chain, as kernels are written: whether a compiler takes several work-items at once is its own business.
kernel void chain(global float *out, uint steps, float xf, float yf)
{
    float a = get_global_id(0);
    for (uint n = 0; n < steps; n++) {
        a = a * xf + yf;
    }
    out[get_global_id(0)] = a;
}

// Straight code behind a condition, as most kernels have it: compilers take several work-items at once at a price,
// or one at a time. Rows repeat the work in a cache, as a loop would hide the condition; a few that follow each other
// do so in the same part of the array, and threads take many at once.
#define OF_ROW (out + (get_global_id(1) / 8u) % PARTS * count)
#define FURTHER a = a * xf + yf
#define GUARDED(name, further)                                                                     \
    kernel void name(global float *out, uint count, float xf, float yf)                            \
    {                                                                                              \
        global float *row = OF_ROW;                                                                \
        size_t i = get_global_id(0);                                                               \
        if (i < count) {                                                                           \
            float a = row[i];                                                                      \
            further;                                                                               \
            row[i] = a;                                                                            \
        }                                                                                          \
    }
#define FURTHER_8 FURTHER, FURTHER, FURTHER, FURTHER, FURTHER, FURTHER, FURTHER, FURTHER

GUARDED(guarded_item, FURTHER)
GUARDED(guarded, FURTHER_8; FURTHER_8)

// Behind a barrier, on two sides of which a compiler for CPUs has a loop over the group.
kernel void fenced(global float *out, uint count, float xf, float yf)
{
    local float shared[CHAIN_GROUP];
    global float *row = OF_ROW;
    size_t i = get_global_id(0), own = get_local_id(0);
    shared[own] = row[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    float a = shared[CHAIN_GROUP - 1 - own];
    FURTHER_8;
    FURTHER_8;
    row[i] = a;
}

// Four sums, as each addition waits for the one before it.
kernel void read_words(global const words *a, global float *out, uint count, uint passes)
{
    words p = SPREAD(0.0f), q = p, r = p, s = p;
    for (uint pass = 0; pass < passes; pass++) {
        EACH(i, count / 4u) { p += a[PART(i, 0)], q += a[PART(i, 1)], r += a[PART(i, 2)], s += a[PART(i, 3)]; }
    }
    p += q + r + s;
    out[get_global_id(0)] = SUM(p);
}

kernel void write_words(global words *a, global float *out, uint count, uint passes)
{
    for (uint pass = 0; pass < passes; pass++) {
        words v = SPREAD((float)pass + out[0]);
        EACH(i, count) { a[i] = v; }
    }
}

// `count` words at the beginning are copied behind themselves.
kernel void copy_words(global words *a, global float *out, uint count, uint passes)
{
    for (uint pass = 0; pass < passes; pass++) {
        EACH(i, count) { a[count + i] = a[i]; }
    }
}

kernel void scattered_words(global const float *a, global float *out, uint count, uint passes)
{
    uint place = get_global_id(0) * 2654435761u + 1u;
    float sum = 0;
    for (uint pass = 0; pass < passes; pass++) {
        place = place * 1664525u + 1013904223u;
        sum += a[(place >> 4) & (count - 1u)];
    }
    out[get_global_id(0)] = sum;
}

#define CHAINS(name, type, first, step, last)                                                      \
    kernel void name(global float *out, uint steps, float xf, float yf)                            \
    {                                                                                              \
        type x = first(xf), y = first(yf), t = first(get_global_id(0));                            \
        type a = t, b = t + x, c = b + x, d = c + x, e = d + x, f = e + x, g = f + x, h = g + x;   \
        type k = h + x, l = k + x;                                                                 \
        for (uint n = 0; n < steps; n++) {                                                         \
            a = step(a), b = step(b), c = step(c), d = step(d), e = step(e);                       \
            f = step(f), g = step(g), h = step(h), k = step(k), l = step(l);                       \
        }                                                                                          \
        t = a + b + c + d + e + f + g + h + k + l;                                                 \
        out[get_global_id(0)] = last(t);                                                           \
    }
#define MULTIPLY_ADD(v) ((v) * x + y)
#define ADD(v) (((v) + y) ^ x)
#if WIDE
#define LAST(v) ((float)(v).s0 + (float)(v).s3)
#define FLOATS float8
#define DOUBLES double4
#define INTEGERS uint8
#define AS_FLOATS(v) ((float8)((float)(v)))
#define AS_DOUBLES(v) ((double4)((double)(v)))
#define AS_INTEGERS(v) ((uint8)((uint)(v)))
#else
#define LAST(v) ((float)(v))
#define FLOATS float
#define DOUBLES double
#define INTEGERS uint
#define AS_FLOATS(v) ((float)(v))
#define AS_DOUBLES(v) ((double)(v))
#define AS_INTEGERS(v) ((uint)(v))
#endif
#define EXPONENTIAL(v) exp((v) * x)

CHAINS(fp32, FLOATS, AS_FLOATS, MULTIPLY_ADD, LAST)
CHAINS(int32, INTEGERS, AS_INTEGERS, MULTIPLY_ADD, LAST)
CHAINS(int32_add, INTEGERS, AS_INTEGERS, ADD, LAST)
// As kernels are written: whether a compiler calls it for several work-items at once is its own business.
CHAINS(transcendental, float, (float), EXPONENTIAL, (float))
#if WIDE
#define WHOLE(v) ((uint)(v)*2654435769u)
#define LONG(v) ((ulong)(v)*11400714819323198485ul)
#define ONE(v) ((float)(v))
#define QUOTIENT(v) ((x / ((v) | 1u)) ^ y)
CHAINS(int32_div, uint, WHOLE, QUOTIENT, ONE)
CHAINS(int64_div, ulong, LONG, QUOTIENT, ONE)
#endif
#if HAS_FP64
CHAINS(fp64, DOUBLES, AS_DOUBLES, MULTIPLY_ADD, LAST)
#endif
#if HAS_FP16
#define HALVES half2
#define AS_HALVES(v) ((half2)((half)(v)))
#undef LAST
#define LAST(v) ((float)(v).x)
CHAINS(fp16, HALVES, AS_HALVES, MULTIPLY_ADD, LAST)
#endif

kernel void local_words(global float *out, uint steps, float xf, float yf)
{
    local float shared[1024];
    uint at = get_local_id(0);
    for (uint i = at; i < 1024u; i += get_local_size(0)) {
        shared[i] = xf + i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = yf;
    for (uint n = 0; n < steps; n++) {
        sum += shared[at] + shared[(at + 256u) & 1023u] + shared[(at + 512u) & 1023u];
        at = (at + 33u) & 1023u; // A word is not read again in the next steps
    }
    out[get_global_id(0)] = sum;
}

kernel void atomics(global int *counts, uint steps, float xf, float yf)
{
    for (uint n = 0; n < steps; n++) {
        atomic_add(&counts[get_global_id(0) * 16u], 1);
    }
}
