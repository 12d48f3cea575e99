"""Small launches in which work-items of a sub-group do all that makes counting by sub-groups hard."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.kernel import Argument, Kernel, Launch, Local

Sizes = tuple[int, ...]
_STRUCTS = """
typedef struct __attribute__((packed)) { char a; int b; short c; } P;
typedef struct { char a; double b; float3 c; short d[3]; } S;
"""
_HEAD = "uint g = get_global_id(0), l = get_local_id(0), n = get_global_size(0), m = get_local_size(0);"
_BUFFERS = "global int *o, global const int *a, global const float *f"


@dataclass(frozen=True)
class Case:
    """A kernel and its launch; the arguments are made anew each time."""

    source: str
    global_size: Sizes = (256,)
    local_size: Sizes = (64,)
    more: Callable[[], list[Argument]] = list
    offset: Sizes = ()
    standard: str = "1.2"
    form: str = "opencl-c"
    two_buffers: bool = True
    padded: bool = False  # It writes the fourth component of vectors of three, whatever that holds

    def launch(self, level: str = "-Oz") -> Launch:
        """The launch, with fresh arguments."""
        if self.form == "llvm-ir":
            kernel = Kernel.from_ir(self.source, "k")
        else:
            kernel = Kernel.from_source(self.source, "k", standard=self.standard, options=(level,))
        generator = np.random.default_rng(7)
        given: list[Argument] = []
        if self.two_buffers:
            given = [np.zeros(4096, np.int32), generator.integers(0, 4096, 4096).astype(np.int32)]
            given.append(generator.random(4096).astype(np.float32))
        return Launch(kernel, self.global_size, self.local_size, (*given, *self.more()), self.offset)


def _sizes(size: int | Sizes) -> Sizes:
    return (size,) if isinstance(size, int) else size


def body(text: str, global_size: int | Sizes = 256, local_size: int | Sizes = 64, **more: Any) -> Case:
    """A kernel of these statements, with an output of 4096 integers and inputs of integers and reals."""
    parameters = more.pop("parameters", "")
    source = f"{more.pop('before', '')}\nkernel void k({_BUFFERS}{parameters}) {{ {_HEAD} {text} }}"
    return Case(source, _sizes(global_size), _sizes(local_size), **more)


def _array(count: int, dtype: str, seed: int = 3) -> Callable[[], list[Argument]]:
    return lambda: [np.random.default_rng(seed).integers(0, 100, count).astype(dtype)]


def typed(type_: str, text: str, dtype: str, elements: int, size: int = 96, **more: Any) -> Case:
    """Statements over `v`, a buffer of such a type."""
    made = _array(elements, dtype)
    return body(text, size, 32, parameters=f", global {type_} *v", more=made, before=_STRUCTS, **more)


def local(text: str, words: int = 2112, size: int = 64) -> Case:
    """Statements over `t`, local memory of so many words."""
    return body(text, size, size, parameters=", local int *t", more=lambda: [Local(4 * words)])


def ids(global_size: Sizes, local_size: Sizes, offset: Sizes = (), standard: str = "1.2") -> Case:
    """Work-items write and read by all of their ids, and some take another way."""
    text = """
    uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    uint at = (x + 40 * y + 300 * z) % 4096;
    if ((get_local_id(0) + get_local_id(1)) % 3 == 1) at = (at * 5) % 4096;
    for (uint j = 0; j < (x + y + z) % 4; j++) o[at] += a[(y * 64 + x + j) % 4096];
    o[at] = f[(x * 64 + y) % 4096] > 0.5f ? z : y;
    """
    return body(text, global_size, local_size, offset=offset, standard=standard)


_ATOMIC_IR = """
target triple = "spir64"
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %a) {
entry:
  %g = call spir_func i64 @_Z13get_global_idj(i32 0)
  %n = trunc i64 %g to i32
  %x = urem i64 %g, 10
  %p = getelementptr i32, ptr addrspace(1) %a, i64 %x
  %q = getelementptr i8, ptr addrspace(1) %a, i64 128
  %1 = atomicrmw umax ptr addrspace(1) %p, i32 %n seq_cst
  %2 = atomicrmw volatile sub ptr addrspace(1) %q, i32 %n monotonic
  %3 = atomicrmw min ptr addrspace(1) %p, i32 -5 seq_cst
  %pair = cmpxchg ptr addrspace(1) %q, i32 %2, i32 %1 seq_cst monotonic
  %c = getelementptr i8, ptr addrspace(1) %a, i64 %x
  %byte = atomicrmw volatile add ptr addrspace(1) %c, i8 3 monotonic
  %d = getelementptr i64, ptr addrspace(1) %a, i64 %x
  %long = load atomic i64, ptr addrspace(1) %d monotonic, align 8
  %ok = extractvalue { i32, i1 } %pair, 1
  br i1 %ok, label %then, label %end
then:
  %r = getelementptr i32, ptr addrspace(1) %a, i64 %g
  %s = getelementptr i8, ptr addrspace(1) %r, i64 1024
  store i32 %3, ptr addrspace(1) %s
  br label %end
end:
  ret void
}
"""
_UNALIGNED_IR = """
target triple = "spir64"
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %o) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr i8, ptr addrspace(1) %o, i64 %i
  store i32 7, ptr addrspace(1) %p, align 1
  %v = load i64, ptr addrspace(1) %p, align 1
  ret void
}
"""
_BITONIC = """
t[l] = a[g]; barrier(CLK_LOCAL_MEM_FENCE);
for (uint size = 2; size <= m; size *= 2)
  for (uint s = size / 2; s > 0; s /= 2) {
    uint other = l ^ s;
    if (other > l) {
      int x = t[l], y = t[other];
      if ((x > y) == ((l & size) == 0)) { t[l] = y; t[other] = x; }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
o[g] = t[l];
"""


def _strided(stride: str) -> Case:
    return local(f"t[l * {stride}] = l; barrier(CLK_LOCAL_MEM_FENCE); o[g] = t[(63 - l) * {stride}];")


_CONTROL = {
    "break and continue": body(
        "int s = 0; for (uint j = 0; j < 20; j++) { int x = a[(g * 3 + j) % 4096];"
        " if (x % 3 == 0) continue; if (x % 17 == 0) break; s += a[x]; } o[g] = s;"
    ),
    "bitonic sort": body(_BITONIC, 128, 64, parameters=", local int *t", more=lambda: [Local(256)]),
    "tiles": body(
        "local int t[8][8]; int x = get_local_id(0), y = get_local_id(1); t[y][x] = a[(y * 64 + g) % 4096];"
        " barrier(CLK_LOCAL_MEM_FENCE); for (int j = 0; j < 8; j++) o[y * 64 + g] += t[y][j] * t[j][x];",
        (32, 8),
        (8, 8),
    ),
}
"""Few: random kernels have branches, loops and barriers of all kinds."""
_ADDRESSES = {
    "copy": body("o[g] = a[g];", 1024, 128),
    "copy from an odd place": body("o[g + 5] = a[g + 3];"),
    **{f"stride of {n}": body(f"o[g * {n}] = a[(n - 1 - g) * {n}];", 128) for n in (3, 16)},
    "transposed": body("uint y = get_global_id(1); o[g * 32 + y] = a[y * 32 + g];", (32, 32), (16, 8)),
    "gather": body("o[g] = a[a[g]];"),
    "scatter": body("o[a[g]] = g;"),
    "gather of a loop": body("int s = 0; for (uint j = 0; j < 5; j++) s += a[a[g * 5 + j]]; o[g] = s;"),
    "broadcast": body("o[g] = a[0] + a[get_group_id(0)] + f[l / 16];"),
    "backwards": body("o[n - 1 - g] = f[n - 1 - g] < 0.5f;"),
    "stencil": body("o[g] = (g ? a[g - 1] : 0) + a[g] + (g < n - 1 ? a[g + 1] : 0);"),
    "windows that overlap": body("vstore4(vload4(0, a + g * 3), 0, o + g * 2);"),
    "windows that overlap by data": body(
        "if (a[g] % 3) vstore2(vload2(0, a + a[g] % 500), 0, o + a[g] % 90);"
    ),
    "one buffer of two": body("global const int *p = l % 2 ? a : (global const int *)f; o[g] = p[g];"),
    "constant table": body(
        "float s = 0; for (uint j = 0; j < 9; j++) s += w[(j + l) % 9] * f[g + j]; o[g] = s;",
        before="constant float w[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};",
    ),
    "constant buffer": body(
        "o[g] = c[g % 7] + c[a[g] % 300];", parameters=", constant int *c", more=_array(300, "i4")
    ),
}
_TYPES = {
    "char": typed("char", "v[g + 31] = v[g] + v[g * 3 + 1];", "i1", 400),
    "short": typed("short", "v[g + 15] = v[g * 2 + 1];", "i2", 400),
    "long": typed("long", "v[g + 3] = v[g * 2] * v[g];", "i8", 400),
    "double": typed("double", "if (g % 3) v[g + 1] = v[g * 3] / 2;", "f8", 400),
    "float3": typed("float3", "v[g] = v[g + 7] * 2.5f;", "f4", 512, padded=True),
    "float4": typed("float4", "v[g] = fma(v[g + 7], v[g], v[95 - g]);", "f4", 512),
    "float8 of a few": typed("float8", "if (g % 5 == 2) v[g] += v[g + 1];", "f4", 1024),
    "float16": typed("float16", "v[g] = v[g + 1] - v[g];", "f4", 2048),
    "uchar16": typed("uchar16", "v[g] = v[(g * 7) % 96].s3;", "u1", 1600),
    "vload3 at odd places": typed("float", "vstore3(vload3(g, v + 1), g, v + 401);", "f4", 800),
    "vload4 at odd places": typed("float", "vstore4(vload4(g, v + 3) * 2, g, v + 401);", "f4", 800),
    "vload16 of bytes": typed("uchar", "vstore16(vload16(g, v + 5), g, v + 1607);", "u1", 3200),
    "vload2 by data": typed("short", "vstore2(vload2(a[g] % 100, v + 1), g, v + 301);", "i2", 600),
    "packed structs": typed("P", "v[g].b = v[g].a + v[(g * 5) % 96].c;", "i1", 7 * 96),
    "structs": typed("S", "v[g].b = v[g].a + v[95 - g].d[g % 3]; v[g].c.y = 1;", "i1", 64 * 96),
    "structs copied": typed("S", "if (g % 4) v[g] = v[(g * 11) % 96];", "i1", 64 * 96),
}
_LOCAL = {
    **{f"local stride of {n}": _strided(str(n)) for n in (1, 17, 32)},
    "local, random": local("t[a[g] % 2112] = l; barrier(CLK_LOCAL_MEM_FENCE); o[g] = t[a[g + 64] % 2112];"),
    "local, broadcast": local("t[l] = l; barrier(CLK_LOCAL_MEM_FENCE); o[g] = t[7] + t[l / 8];"),
    "local bytes": local(
        "local char *b = (local char *)t; b[l] = l; barrier(CLK_LOCAL_MEM_FENCE); o[g] = b[l * 3 % 64];"
    ),
    "local vectors": local(
        "local int4 *v = (local int4 *)t; v[l] = (int4)(l); barrier(CLK_LOCAL_MEM_FENCE); int4 x = v[l ^ 5];"
        " o[g] = x.x + x.w + vload3(l, t + 1).z;"
    ),
    "local doubles": local(
        "local double *v = (local double *)t; v[l * 3] = f[g]; barrier(CLK_LOCAL_MEM_FENCE);"
        " o[g] = v[(63 - l) * 3] * 99;"
    ),
    "local array and argument": local(
        "local int w[96]; w[l + 5] = a[g]; t[l * 2] = a[g + 64]; barrier(CLK_LOCAL_MEM_FENCE);"
        " o[g] = w[68 - l] + t[l] + w[l % 3 + 5];"
    ),
    "local atomics": local(
        "if (l < 16) t[l] = 0; barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&t[a[g] % 16], 2);"
        " if (l % 3 == 0) atomic_max(&t[3], l); barrier(CLK_LOCAL_MEM_FENCE); if (l < 16) o[l] = t[l];"
    ),
}
_ATOMICS = {
    "histogram": body("atomic_inc(&o[a[g] % 20]);"),
    "exchanges": body(
        "atomic_xchg(&o[l % 10], g); int x = atomic_cmpxchg(&o[100 + l % 4], 0, g); if (!x) o[200 + l] = 1;",
    ),
    "local exchanges": local(
        "if (l < 2) t[l] = 4 * l + 1; barrier(1); o[g] = atomic_cmpxchg(&t[l % 2], l, l + 2);"
    ),
    "C11's": body(
        "atomic_fetch_add_explicit((volatile global atomic_int *)o + a[g] % 9, 2, memory_order_relaxed);"
        " atomic_fetch_or((volatile global atomic_int *)o + 32 + l / 8, 1 << (l % 8));",
        standard="2.0",
    ),
    "64 bits": typed("long", "atom_add(&v[g % 12], (long)g);", "i8", 12),
}
_SHAPES = {
    "x".join(map(str, local_size)): ids(tuple(2 * size for size in local_size), local_size)
    for local_size in ((3, 5), (16, 4), (1, 1), (33,), (128, 2), (5, 3, 7), (1, 70))
}
_SHAPES |= {
    "last group of 37": ids((101,), (64,), standard="2.0"),
    "last groups of 5x3": ids((21, 19), (16, 8), standard="2.0"),
    "offset": ids((96,), (32,), (13,)),
    "offsets": ids((20, 12), (10, 6), (3, 100)),
    "offsets of a last group": ids((50, 3), (32, 2), (7, 1), standard="2.0"),
}


def _same_twice() -> list[Argument]:
    array = np.arange(512, dtype=np.int32)
    return [array, array]


_OTHER = {
    "the same buffer twice": Case(
        "kernel void k(global int *o, global const int *a) { uint g = get_global_id(0);"
        " if (g % 3) o[g] = a[g + 200];"
        " global const int *p = g % 2 ? o : a; o[g + 256] = p[g]; }",
        more=_same_twice,
        two_buffers=False,
    ),
    "nothing": body(""),
    "structure by value": body(
        "if (g % 2) o[g] = s.b + s.d[g % 3];",
        before=_STRUCTS,
        parameters=", S s",
        more=lambda: [np.arange(48, dtype=np.uint8).tobytes()],
    ),
    "generic pointers": body(
        "local int t[64]; t[l] = a[g]; barrier(CLK_LOCAL_MEM_FENCE);"
        " const int *p = l % 3 ? (const int *)&t[63 - l] : &a[g]; o[g] = *p;",
        standard="2.0",
    ),
}
_OTHER["instructions that are not aligned"] = Case(
    _UNALIGNED_IR, (8,), (4,), lambda: [np.zeros(32, np.uint8)], two_buffers=False, form="llvm-ir"
)
_OTHER["instructions that are atomic"] = Case(
    _ATOMIC_IR,
    more=lambda: [np.arange(512, dtype=np.int32)],
    two_buffers=False,
    form="llvm-ir",
)


def repeated(text: str, groups: int = 24, left: int = 0, **more: Any) -> Case:
    """Statements over `t`, 128 words of local memory, of many groups and `w`, the number of each."""
    text = f"int w = get_group_id(0); {text}"
    return body(text, 64 * groups + left, 64, parameters=", local int *t", more=lambda: [Local(512)], **more)


_TREE = (
    "t[l] = a[g]; barrier(CLK_LOCAL_MEM_FENCE); for (int s = 32; s > least; s /= 2) {{ if (l < s) "
    "t[l] += t[{0}]; barrier(CLK_LOCAL_MEM_FENCE); }} if (l == 0) o[w] = t[0];"
)
_REPEATED = {
    "groups that repeat a tree": repeated("int least = 0; " + _TREE.format("l + s")),
    "groups of which one differs": repeated("int least = 0; " + _TREE.format("(l + s) * (w == 9 ? 2 : 1)")),
    "groups that differ now and then": repeated(
        "int least = 0; " + _TREE.format("(l + s) ^ (w % 5 == 3 ? 5 : 0)")
    ),
    "groups that all differ": repeated("int least = 0; " + _TREE.format("(l + s) ^ w"), groups=40),
    "groups that stop early": repeated("int least = w % 6 == 4 ? 4 : 0; " + _TREE.format("l + s")),
    "groups that go further": repeated("int least = w < 7 ? 8 : 0; " + _TREE.format("l + s")),
    "groups whose data decide": repeated("int least = 0; " + _TREE.format("a[g] & 127")),
    "groups, the last one smaller": repeated(
        "int least = 0; " + _TREE.format("(l + s) % m"), left=40, standard="2.0"
    ),
}
_LANGUAGE = {
    "widths of one buffer": typed(
        "uchar",
        "v[g] = g; ((global int *)v)[g + 24] = g;"
        " *(global short *)(v + 2 * g + 480) = ((global long *)v)[g];",
        "u1",
        800,
    ),
    "cleared structures": typed("S", "S zero = {0}; v[g] = zero;", "i1", 64 * 96),
    "private table": body("int w[8] = {1, 2, 3, 5, 8, 13, 21, 34}; w[g % 8] += 1; o[g] = w[g * 5 & 7];"),
    "variables of the program": body(
        "calls[g % 4] += g; o[g] = calls[g % 4] + at[g % 4];",
        before="global int calls[4] = {1, 2}; global int *at = calls;",
        standard="2.0",
    ),
    "pointers of pointers": body(
        "local int t[64]; global const int *p[2] = {a, o}; local int *q[2] = {t, t + 32};"
        " q[l >> 5][l & 31] = g * 10; barrier(CLK_LOCAL_MEM_FENCE); o[g] = p[g & 1][g] + t[63 - l];"
    ),
    "generic pointers everywhere": body(
        "local int t[8]; int own[8]; put(t, l, a[g]); put(own, l, g * 2); work_group_barrier(1);"
        " int *p = g & 1 ? (int *)t : g & 2 ? (int *)o : own;"
        " int what = (to_global(p) != 0) + 2 * (to_local(p) != 0) + 4 * (to_private(&own[0]) != 0);"
        " put(o, g, get(t, (l + 1) % 8) + get(own, l) + get(p, l) + 1000 * what);",
        16,
        8,
        before="int get(int *p, int i) { return p[i]; } void put(int *p, int i, int v) { p[i] = v; }",
        standard="2.0",
    ),
    "packed structures and a union": body(
        "u.c[g % 4] = g; o[g] = u.u; global P *p = (global P *)(o + 512); p[g].b += 1; p[g].a = g;",
        before=_STRUCTS + "typedef union { float f; uint u; uchar c[4]; } U;",
        parameters=", U u",
        more=lambda: [np.float32(1.5)],
    ),
    "large arguments": body(
        "o[g] = v.sf + q.s7 + c + s + u.z;",
        parameters=", float16 v, long8 q, char c, short s, uchar3 u",
        more=lambda: [
            *(np.arange(16, dtype=np.float32), np.arange(8)),
            *(np.int8(-4), np.int16(300), np.array([1, 2, 3], np.uint8)),
        ],
    ),
    "constants of all kinds": body(
        "o[g] = c[g % 4] + ss[g % 2].a + ss[g / 2 % 2].f[g % 2] * 10 + ss[g % 2].s[1] + name[g % 5]"
        " + rows[g % 2][g % 3] + (int)(tenth * 10) + v.z + zeros[g % 9];",
        before="typedef struct { int a; float f[2]; char s[4]; } C; constant int c[4] = {1, 2, 3, 4};"
        ' constant C ss[2] = {{1, {2.5f, 3.5f}, "ab"}, {4, {5.5f, 6.5f}, "cd"}};'
        ' constant char name[] = "hello"; constant float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};'
        " constant double tenth = 0.1; constant float4 v = (float4)(1, 2, 3, 4);"
        " constant float zeros[9] = {0};",
    ),
    "barriers in functions": body(
        "int x = g; for (int i = 0; i < 4; i++) { for (int j = 0; j <= i; j++) { x = rotated(t, l, x, m);"
        " if ((i ^ j) & 1) { barrier(CLK_LOCAL_MEM_FENCE); x += 1; } }"
        " if (i == 2) x = rotated(t, l, x * 2, m); } o[g] = x;",
        24,
        6,
        before="void put(local int *t, int l, int v) { t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); }"
        " int rotated(local int *t, int l, int v, int n) { put(t, l, v); int r = t[(l + 1) % n];"
        " barrier(CLK_LOCAL_MEM_FENCE); return n > 100 ? 0 : r; }",
        parameters=", local int *t",
        more=lambda: [Local(24)],
    ),
    "a loop longer than a history": body(
        "int s = 0; for (int j = 0; j < 99; j++) s += a[j]; o[g] = s;", 30, 15
    ),
    "groups with fewer outcomes than a history": body("if (g % 2) o[g] = 1;", 75, 15),
    "a choice that is no branch": body(
        "switch (g % 3) { case 0: o[g] = 4; break; case 1: o[g] = 9; break; default: o[g] = -g; }", 75, 15
    ),
    "cases that fall through beside barriers": body(
        "int x = g + 1, w = get_group_id(0); for (uint j = 0; j < 4; j++) switch (barrier(1), w + j) {"
        " case 1: case 2: x += g * x; barrier(1); case 3: case 4: x ^= 0x55; break;"
        " case 9: x -= 3; } o[g] = x;",
        64,
        8,
    ),
    "addresses that a switch chooses": body(
        "local int s[4][8], t[8]; for (int r = 0; r < 4; r++) s[r][l] = 10 * r + l; t[l] = -l; barrier(1);"
        " local int *p; switch (get_group_id(0)) { case 0: case 5: p = s[1]; break;"
        " case 1: case 2: p = &s[2][1]; break; default: p = t; } o[g] = p[l % 4];",
        56,
        8,
    ),
    "addresses inside one another": body(
        "local int t[4][17]; t[l][l] = l; barrier(1); int s = 0, *p = &s;"
        " p[0] += t[0][0] + 10 * t[1][1] + 100 * t[2][2] + 1000 * t[3][3]; t[3][3] += 1; o[l] = s;",
        4,
        4,
    ),
    "a barrier that no work-item reaches": body(
        "local int t[4]; t[l] = g; for (uint i = 0; i < 2 + l; i++) { t[l] += i; if (l >= m) barrier(1); }"
        " o[g] = t[l];",
        8,
        4,
    ),
    "a loop that whole groups leave before a barrier": body(
        "local int t[2]; t[l] = g; for (int i = 0; i < 9; i++) { if (i == 1 && (l == 0 || l == 1)) break;"
        " barrier(1); t[l] = i + 7; } o[g] = t[l];",
        8,
        2,
    ),
    "a barrier of the first group": body(
        "local int t[2]; t[l] = g; if (g < 2) { barrier(1); t[l] = 9; } o[g] = t[l];", 8, 2
    ),
    "a group that returns before a barrier": body(
        "local int s; if (get_group_id(0) == 1) return; if (l == 0) s = g; barrier(CLK_LOCAL_MEM_FENCE);"
        " o[g] = s; if (g & 1) return; prefetch(a, 8); o[g] += 100;",
        16,
        4,
    ),
    "any dimension": body(
        "int s = 0; for (uint d = 0; d < 5; d++) s = s * 7 + get_global_id(d) + 2 * get_local_id(d)"
        " + 3 * get_group_id(d) + 5 * get_local_size(d) + 11 * get_enqueued_local_size(d)"
        " + 13 * get_global_size(d) + 17 * get_num_groups(d) + 19 * get_global_offset(d);"
        " o[get_global_linear_id()] = s + get_work_dim() + 100 * get_local_linear_id();",
        (5, 6, 3),
        (2, 3, 2),
        offset=(3, 2, 1),
        standard="2.0",
    ),
    "most work-items": body(
        "o[g % m] = l; barrier(CLK_GLOBAL_MEM_FENCE); o[g % m] += o[(l + 1) % m];", 4096, 4096
    ),
}
_GROUPS = (_CONTROL, _ADDRESSES, _TYPES, _LOCAL, _ATOMICS, _SHAPES, _OTHER, _REPEATED)
CASES: dict[str, Case] = {name: case for group in _GROUPS for name, case in group.items()}
"""All of them, by what they are about."""
LANGUAGE: dict[str, Case] = _LANGUAGE
"""What OpenCL C can say, where neither divergence nor addresses are of interest."""
