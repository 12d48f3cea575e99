"""Inline PTX gives what the instructions' definition says, against NumPy, and is counted as its C++."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.errors import CrosscastError
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile

N = 64
RNG = np.random.default_rng(0)
A, B, C = RNG.integers(0, 1 << 32, (3, N), np.uint32)
F, G = RNG.uniform(0.5, 2, (2, N)).astype(np.float32)
POSITION, LENGTH = RNG.integers(0, 40, (2, N), np.uint32)
S, T = A.view(np.int32), B.view(np.int32)
WIDE = A.astype(np.uint64) * B
I = np.arange(N, dtype=np.uint32)  # noqa: E741
Array = np.ndarray[Any, Any]


def bits(x: int, at: int, n: int) -> int:
    return x >> at & ((1 << n) - 1) & (0xFFFFFFFF >> at if at < 32 else 0)


def signed_bits(x: int, at: int, n: int) -> int:
    if n == 0:
        return 0
    value, kept = int(np.int32(x)) >> at, min(n, 32 - min(at, 31))
    return (value + (1 << (kept - 1))) % (1 << kept) - (1 << (kept - 1))


def with_bits(field: int, x: int, at: int, n: int) -> int:
    mask = ((1 << n) - 1) << at & 0xFFFFFFFF
    return x & ~mask | field << at & mask


def each(function: Callable[..., int], *arrays: Array) -> Array:
    return np.array([function(*map(int, row)) & 0xFFFFFFFF for row in zip(*arrays, strict=True)], np.uint32)


IN = '"r"(a), "r"(b), "r"(c)'
CASES: dict[str, tuple[str, Array]] = {
    "add": (f'"add.s32 %0, %1, %2;" : "=r"(r) : {IN}', A + B),
    "mad": (f'"mad.lo.u32 %0, %1, %2, %3;" : "=r"(r) : {IN}', A * B + C),
    "hi": (f'"mul.hi.u32 %0, %1, %2;" : "=r"(r) : {IN}', (WIDE >> 32).astype(np.uint32)),
    "hi of signed": (f'"mul.hi.s32 %0, %1, %2;" : "=r"(r) : {IN}',
        (S.astype(np.int64) * T >> 32).astype(np.int32)),
    "wide": ('"mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(a), "r"(b)); r = (unsigned)(w >> 16',
        (WIDE >> 16).astype(np.uint32)),
    "bfe": ('"bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p), "r"(l)', each(bits, A, POSITION, LENGTH)),
    "bfe of signed": (
        '"bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p), "r"(l)', each(signed_bits, S, POSITION, LENGTH)
    ),
    "bfi": (
        '"bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(p), "r"(l)',
        each(with_bits, A, B, POSITION, LENGTH),
    ),
    "a constant field": ('"bfe.u32 %0, %1, 24, 8;" : "=r"(r) : "r"(a)', A >> 24),
    "a number": ('"and.b32 %0, %1, 0x0f000f0f;" : "=r"(r) : "r"(a)', A & np.uint32(0x0F000F0F)),
    "prmt": ('"prmt.b32 %0, %1, 0, 0x0123;" : "=r"(r) : "r"(a)', A.byteswap()),
    "bytes": ('"vabsdiff4.u32.u32.u32 %0, %1, %2, %2;" : "=r"(r) : "r"(a), "r"(b)',
        np.abs(A.view(np.uint8).astype(int) - B.view(np.uint8)).astype(np.uint8).view(np.uint32)),
    "sum of bytes": (
        f'"vabsdiff4.u32.u32.u32.add" " %0, %1, %2, %3;" : "=r"(r) : {IN}',
        C + np.abs(A.view(np.uint8).astype(int) - B.view(np.uint8)).reshape(-1, 4).sum(1).astype(np.uint32),
    ),
    "rotation": ('"shf.l.wrap.b32 %0, %1, %1, 7;" : "=r"(r) : "r"(a)', A << 7 | A >> 25),
    "shift too far": ('"shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(p)',
        each(lambda x, n: x << n, A, POSITION)),
    "signed shift": ('"shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(p)',
        each(lambda x, n: x >> n, S, POSITION)),
    "popc": ('"popc.b32 %0, %1;" : "=r"(r) : "r"(a)', np.bitwise_count(A).astype(np.uint32)),
    "bfind": ('"bfind.u32 %0, %1;" : "=r"(r) : "r"(a)', each(lambda x: x.bit_length() - 1, A)),
    "tied": ('"{ add.u32 %0, %0, %1; }" : "+r"(a) : "n"(3)); r = (a', A + np.uint32(3)),
    "named": ('"xor.b32 %[to], %[of], 0xff;" : [to] "=r"(r) : [of] "r"(a)', A ^ np.uint32(255)),
    "pointers": ('"add.u64 %0, %1, 4;" : "=l"(q) : "l"(x + i)); r = (i < 63 ? *q : x[0]', np.roll(A, -1)),
    "predicate": (
        '"{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, 1, 2, p; @!p add.u32 %0, %0, 5;\\n }"'
        f' : "=r"(r) : {IN}',
        np.where(A < B, 1, 7).astype(np.uint32),
    ),
    "halves": (
        '"{ .reg .b32 h<2>; mov.b64 {h0, h1}, %1; mov.b64 %0, {h1, h0}; }" : "=l"(w)'
        ' : "l"(((unsigned long)a << 32) | b)); r = (unsigned)(w >> 32',
        B,
    ),
    "conversion": ('"cvt.rn.f32.u32 %0, %1;" : "=f"(h) : "r"(a)); r = __float_as_uint(h',
        A.astype(np.float32).view(np.uint32)),
    "to integer": ('"cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(100 * f)', (100 * F).astype(np.int32)),
    "real": ('"fma.rn.f32 %0, %1, %2, 0f3F800000;" : "=f"(h) : "f"(f), "f"(g)); r = __float_as_uint(h',
        (F.astype(np.float64) * G + 1).astype(np.float32).astype(np.float32).view(np.uint32)),
    "bits of a real": ('"mov.b32 %0, %1;" : "=r"(r) : "f"(f)', F.view(np.uint32)),
    "half": ('"cvt.rn.f16.f32 %0, %1;" : "=h"(u) : "f"(f)); r = (u', F.astype(np.float16).view(np.uint16)),
    "lane": ('"mov.u32 %0, %%laneid;" : "=r"(r) :', I % 32),
    "thread": ('"mov.u32 %0, %tid.x;" : "=r"(r)', I),
    "warp": ('"mov.u32 %0, %%warpid;" : "=r"(r) : : "memory"', I // 32),
    "shuffle": ('"shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(r) : "r"(a)', A[I ^ 1]),
    "ballot": (
        '"{ .reg .pred p; setp.ne.b32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"'
        ' : "=r"(r) : "r"(a & 1)',
        np.packbits(A & 1, bitorder="little").view(np.uint32).repeat(32),
    ),
    "lines apart": ('"add.u32 %0, %1, 1;"' + 12 * "\n" + ': "=r"(r) : "r"(a)', A + np.uint32(1)),
    "nothing": ('"" : "+r"(a) : : "memory"); r = (a', A),
}  # fmt: skip
CASES |= {
    f"lop3 {table:#x}": (
        f'"lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : {IN}, "n"({table})',
        each(lambda x, y, z, t=table: sum(
            (x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z) for k in range(8) if t >> k & 1
        ), A, B, C),
    )
    for table in (0x96, 0xCA, 0xEA, 0x17, 0x40)
}  # fmt: skip


def ran(source: str, *arguments: Any, items: int = N, blocks: int = 1, kernel: str = "k") -> Profile:
    launched = Kernel.from_source(source, kernel, form="cuda")
    return characterize(Launch.on_grid(launched, blocks, items, arguments))


def test_instructions_do_as_defined() -> None:
    rows = "\n".join(
        f"{{ unsigned a = x[i], r; asm volatile({text}); o[{N} * {k} + i] = r; }}"
        for k, (text, _) in enumerate(CASES.values())
    )
    source = f"""__global__ void k(unsigned *x, const unsigned *y, const unsigned *z, const float *fs,
                                   const float *gs, const unsigned *at, const unsigned *ls, unsigned *o) {{
      unsigned i = threadIdx.x, b = y[i], c = z[i], p = at[i], l = ls[i], *q;
      unsigned long w; float f = fs[i], g = gs[i], h; unsigned short u;
      {rows}
    }}"""
    out = np.zeros((len(CASES), N), np.uint32)
    ran(source, A, B, C, F, G, POSITION, LENGTH, out)
    for found, (name, (_, expected)) in zip(out, CASES.items(), strict=True):
        assert found.tolist() == expected.view(f"u{expected.itemsize}").tolist(), name


def test_approximations_are_close() -> None:
    source = """__global__ void k(const float *x, float *o) {
      float y, v = x[threadIdx.x];
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v)); o[threadIdx.x] = y;
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v)); o[64 + threadIdx.x] = y;
      asm("{\\n\\t.reg .f32 t;\\n\\tlg2.approx.f32 t, %1;\\n\\tsqrt.rn.f32 %0, t;\\n\\t}"
          : "=f"(y) : "f"(v + 1));
      o[128 + threadIdx.x] = y;
    }"""
    out = np.zeros((3, N), np.float32)
    ran(source, F, out)
    assert out == pytest.approx(np.array([np.exp2(F), 1 / F, np.sqrt(np.log2(F + 1))]), rel=1e-5)


def test_carries_pass_through_an_asm() -> None:
    source = """__global__ void k(const unsigned *x, const unsigned *y, unsigned *o) {
      int i = threadIdx.x, n = blockDim.x;
      asm("add.cc.u32 %0, %4, %7;\\n\\t" "addc.cc.u32 %1, %5, %8;\\n\\t" "addc.u32 %2, %6, %9;\\n\\t"
          "mov.u32 %3, 0;"
          : "=r"(o[i]), "=r"(o[n + i]), "=r"(o[2 * n + i]), "=r"(o[9 * n + i])
          : "r"(x[i]), "r"(x[n + i]), "r"(0), "r"(y[i]), "r"(y[n + i]), "r"(0));
      asm("sub.cc.u32 %0, %3, %6; subc.cc.u32 %1, %4, %7; subc.u32 %2, %5, 0;"
          : "=r"(o[3 * n + i]), "=r"(o[4 * n + i]), "=r"(o[5 * n + i])
          : "r"(x[i]), "r"(x[n + i]), "r"(0), "r"(y[i]), "r"(y[n + i]));
      asm("mad.lo.cc.u32 %0, %3, %4, %5; madc.hi.cc.u32 %1, %3, %4, %5; addc.u32 %2, 0, 0;"
          : "=&r"(o[6 * n + i]), "=&r"(o[7 * n + i]), "=&r"(o[8 * n + i])
          : "r"(x[i]), "r"(y[i]), "r"(x[n + i]));
    }"""
    x, y = np.concatenate([A, B]), np.concatenate([C, A])
    out = np.zeros((10, N), np.uint32)
    ran(source, x, y, out)
    for i in range(N):
        first, second = (int(v[i]) | int(v[N + i]) << 32 for v in (x, y))
        product = int(A[i]) * int(C[i]) + int(B[i]) * ((1 << 32) + 1)
        for row, value in ((0, first + second), (3, first - second), (6, product)):
            assert out[row : row + 3, i].tolist() == [value >> 32 * k & 0xFFFFFFFF for k in range(3)]


BIG = """
__device__ unsigned add_cc(unsigned x, unsigned y) {
  unsigned r; asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r;
}
__device__ unsigned addc_cc(unsigned x, unsigned y) {
  unsigned r; asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r;
}
__global__ void k(const unsigned *x, const unsigned *y, unsigned *o, int most) {
  unsigned a[4], *p = o + 5 * threadIdx.x;
  a[0] = add_cc(x[4 * threadIdx.x], y[4 * threadIdx.x]);
#pragma unroll
  for (int i = 1; i < 4; i++) a[i] = addc_cc(x[4 * threadIdx.x + i], y[4 * threadIdx.x + i]);
  p[4] = addc_cc(0, 0);
  for (int i = 0; i < 4; i++) p[i] = a[i];
}
__global__ void looped(unsigned *x, int n) {
  x[0] = add_cc(x[0], 1);
  for (int i = 1; i < n; i++)
    x[i] = addc_cc(x[i], 0);
}"""


def test_carries_pass_from_asm_to_asm() -> None:
    x, y, out = np.concatenate([A, B, C, A]), np.concatenate([C, C, A, B]), np.zeros((N, 5), np.uint32)
    ran(BIG, x, y, out, np.int32(0))
    for i in range(N):
        first, second = (sum(int(w) << 32 * k for k, w in enumerate(v[4 * i : 4 * i + 4])) for v in (x, y))
        assert sum(int(word) << 32 * k for k, word in enumerate(out[i])) == first + second
    with pytest.raises(CrosscastError, match=r"looped: line 6: a carry of another block of code"):
        ran(BIG, A, np.int32(N), items=1, kernel="looped")


PLAIN = """__global__ void k(const float4 *x, float4 *y, int *h, const int *n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];
  y[i] = v;
  atomicAdd(&h[n[i] & 3], 1);
}"""
ASSEMBLY = """__global__ void k(const float4 *x, float4 *y, int *h, const int *n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, m;
  float4 v;
  asm volatile("prefetch.global.L2 [%0];" :: "l"(x + i));
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(x + i));
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};"
               ::"l"(y + i), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w));
  asm("ld.global.cg.s32 %0, [%1];" : "=r"(m) : "l"(n + i));
  asm volatile("red.global.add.u32 [%0], %1;" ::"l"(&h[m & 3]), "r"(1) : "memory");
}"""


def test_memory_is_counted_as_that_of_the_same_cpp() -> None:
    profiles = []
    for source in (PLAIN, ASSEMBLY):
        x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
        counts, of = np.zeros(4, np.int32), np.arange(256, dtype=np.int32)
        profiles.append(ran(source, x, y, counts, of, blocks=4))
        assert (y == x).all()
        assert counts.tolist() == [64] * 4
    assert profiles[0].metrics == profiles[1].metrics


@pytest.mark.parametrize(
    "tiles",
    [
        "__shared__ __align__(16) float other[64], tile[2][1024];",
        "extern __shared__ float4 s[]; auto tile = (float(*)[1024])s;",
    ],
)
def test_asynchronous_copies_find_shared_memory_by_32_bits(tiles: str) -> None:
    source = f"""__global__ void k(const float *x, float *y, int valid) {{
      {tiles}
      int t = threadIdx.x;
      unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile[1])) + 16 * t;
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\\n"
                   ::"r"(at), "l"(x + 4 * t) : "memory");
      at = (unsigned)__cvta_generic_to_shared(&tile[0][t]);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\\n"
                   ::"r"(at), "l"(x + t), "r"(t < valid ? 4 : 0));
      asm volatile("cp.async.commit_group;\\n" ::);
      asm volatile("cp.async.wait_group %0;\\n" ::"n"(0));
      __syncthreads();
      at = (unsigned)__cvta_generic_to_shared(&tile[0][512 + t / 2 * 2]);
      if (t % 2) asm volatile("st.shared.v2.f32 [%0+8], {{%1, %2}};" ::"r"(at), "f"(1.0f), "f"(x[0]));
      __syncthreads();
      float last;
      asm volatile("ld.shared.f32 %0, [%1 + 8];" : "=f"(last) : "r"(at));
      for (int i = 0; i < 4; i++) y[i * 256 + t] = tile[1][(i * 256 + t) ^ 1] + tile[0][t] * (last == 1);
    }}"""
    x, y = RNG.random(1024, np.float32), np.zeros(1024, np.float32)
    kernel = Kernel.from_source(source, "k", form="cuda")
    for check in (False, True):
        launch = Launch.on_grid(kernel, 2, 256, (x, y, np.int32(100)), shared=8192)
        profile = characterize(launch, check_bounds=check)
        near = np.where(np.arange(256) < 100, x[:256], 0)
        assert (y.reshape(4, 256) == x.reshape(-1, 2)[:, ::-1].reshape(4, 256) + near).all()
        assert profile.launch["work"]["local_bytes"] > 0


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ('asm volatile("mov.u32 %0, %%smid;" : "=r"(x[0]));', "mov.u32"),
        ('asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0}, {%1}, {%1}, {%0};"'
         ' : "+d"(y[0]) : "d"(y[1]));',
         "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ('asm volatile("bar.sync 1, 64;");', "bar.sync"),
        ('asm("add.rz.f32 %0, %1, %1;" : "=f"(*(float *)y) : "f"(1.0f));', "add.rz.f32"),
        ('asm("mov.u32 %0, 1;" : "=l"(y[0]));', "mov.u32"),
    ],
)  # fmt: skip
def test_other_instructions_are_refused_by_name(statement: str, named: str) -> None:
    source = f"// the\n__global__ void k(unsigned *x, double *y) {{\n{statement}}}"
    with pytest.raises(CrosscastError, match=rf"line 3: inline assembly \(PTX: {named}\) is not supported"):
        ran(source, A, F.astype(np.float64))
