"""What OpenCL C and LLVM IR can say, run end to end and compared with NumPy or plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import crosscast
from crosscast.characterization import frontend, toolchain
from crosscast.errors import UnsupportedError
from crosscast.kernel import Image, Kernel, Program, Sampler
from support.examples import one_in
from support.launching import LEVELS, ints, launch, local_ints, zeros

every_level = pytest.mark.parametrize("level", one_in(3, LEVELS))
unoptimized_too = pytest.mark.parametrize("level", one_in(2, LEVELS[:2]))
later = pytest.mark.parametrize("standard", ["2.0", "3.0"])


# -- types


@pytest.mark.parametrize("width", [2, 3, 4, 8, 16])
def test_vectors_of_every_width_load_convert_swizzle_and_store(width: int) -> None:
    swizzle = "s10" + "".join(f"{k:x}" for k in range(2, width))
    source = f"""kernel void k(global float *o, global const float *a, double{width} d) {{
      size_t i = get_global_id(0);
      float{width} x = vload{width}(i, a) * 2.0f + convert_float{width}(d);
      x.s0 = x.s1 + 1;
      vstore{width}(x.{swizzle}, i, o);
    }}"""
    a = np.arange(8 * width, dtype=np.float32)
    out = zeros(8 * width, np.float32)
    launch(source, 8, 4, out, a, np.arange(width, dtype=np.float64))
    expected = 2 * a.reshape(8, width) + np.arange(width, dtype=np.float32)
    expected[:, 0] = expected[:, 1] + 1
    expected[:, [0, 1]] = expected[:, [1, 0]]
    np.testing.assert_array_equal(out.reshape(8, width), expected)


@unoptimized_too
def test_halves_compute(level: str) -> None:
    source = """#pragma OPENCL EXTENSION cl_khr_fp16 : enable
    kernel void k(global half *o, half h, double d) {
      size_t i = get_global_id(0);
      o[i] = h * (half)2.0h + (half)i + (half)(d * i);
    }"""
    out = zeros(8, np.float16)
    launch(source, 8, 4, out, np.float16(1.5), np.float64(0.3), options=[level])
    np.testing.assert_array_equal(
        out, (3 + np.arange(8, dtype=np.float16)) + (0.3 * np.arange(8)).astype(np.float16)
    )


def test_packed_structures_and_unions_alias_bytes() -> None:
    element = np.dtype([("a", "i1"), ("b", "i4")])
    buffer, out = np.zeros(8, element), zeros(8, np.uint32)
    buffer["b"] = np.arange(8)
    source = """typedef struct __attribute__((packed)) { char a; int b; } T;
    typedef union { float f; uint u; uchar c[4]; } U;
    kernel void k(global uint *o, global T *t, U u) {
      int g = get_global_id(0);
      u.c[g % 4] = g;
      o[g] = u.u;
      t[g].b += 1;
      t[g].a = g;
    }"""
    launch(source, 8, 4, out, buffer, np.float32(1.5))
    assert buffer["a"].tolist() == list(range(8))
    assert buffer["b"].tolist() == list(range(1, 9))
    for g in range(8):
        raw = bytearray(np.float32(1.5).tobytes())
        raw[g % 4] = g
        assert out[g] == int.from_bytes(raw, "little")


def test_large_arguments_are_passed_by_value() -> None:
    source = """kernel void k(global float *o, float16 v, long8 q, char c, short s, uchar3 u) {
      o[0] = v.sf + q.s7 + c + s + u.z;
    }"""
    out = zeros(1, np.float32)
    v, q, u = np.arange(16, dtype=np.float32), np.arange(8), np.array([1, 2, 3], np.uint8)
    launch(source, 1, 1, out, v, q, np.int8(-4), np.int16(300), u)
    assert out[0] == 15 + 7 - 4 + 300 + 3


def test_program_scope_constants_of_all_kinds_are_read() -> None:
    source = """typedef struct { int a; float f[2]; char s[4]; } S;
    constant int c[4] = {1, 2, 3, 4};
    constant S ss[2] = {{1, {2.5f, 3.5f}, "ab"}, {4, {5.5f, 6.5f}, "cd"}};
    constant char name[] = "hello";
    constant float m[2][3] = {{1, 2, 3}, {4, 5, 6}};
    constant double tenth = 0.1;
    constant float4 v = (float4)(1, 2, 3, 4);
    constant float zeros[9] = {0};
    kernel void k(global float *o) {
      int i = get_global_id(0);
      o[i] = c[i % 4] + ss[i % 2].a + ss[i / 2 % 2].f[i % 2] + ss[i % 2].s[1] + name[i % 5]
           + m[i % 2][i % 3] + (float)(tenth * 10) + v.z + zeros[i % 9];
    }"""
    out = zeros(16, np.float32)
    launch(source, 16, 4, out)
    f, m = [[2.5, 3.5], [5.5, 6.5]], [[1, 2, 3], [4, 5, 6]]
    expected = [
        [1, 2, 3, 4][i % 4] + [1, 4][i % 2] + f[i // 2 % 2][i % 2] + [98, 100][i % 2]
        + b"hello"[i % 5] + m[i % 2][i % 3] + 1 + 3
        for i in range(16)
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


# -- control flow


# -- private and local memory, barriers


@every_level
def test_barriers_in_helpers_nested_loops_and_uniform_conditions(level: str) -> None:
    source = """void put(local int *t, int l, int v) { t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); }
    int rotate_left(local int *t, int l, int v, int n) {
      put(t, l, v);
      int r = t[(l + 1) % n];
      barrier(CLK_LOCAL_MEM_FENCE);
      if (n > 100) return 0;
      return r;
    }
    kernel void k(global int *o, int n, local int *t) {
      int l = get_local_id(0), v = get_global_id(0), size = get_local_size(0);
      for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
          v = rotate_left(t, l, v, size);
          if ((i ^ j) & 1) { barrier(CLK_LOCAL_MEM_FENCE); v += 1; }
        }
        if (i == 2) v = rotate_left(t, l, v * 2, size);
      }
      o[get_global_id(0)] = v;
    }"""
    out = zeros(24)
    profile = launch(source, 24, 6, out, np.int32(4), local_ints(6), options=[level])
    values, barriers = np.arange(24).reshape(4, 6), 0
    for i in range(4):
        for j in range(i + 1):
            values, barriers = np.roll(values, -1, 1) + ((i ^ j) & 1), barriers + 2 + ((i ^ j) & 1)
        if i == 2:
            values, barriers = np.roll(values * 2, -1, 1), barriers + 2
    np.testing.assert_array_equal(out.reshape(4, 6), values)
    assert profile.metrics["total_barriers_hit"] == 24 * barriers


@unoptimized_too
def test_a_whole_group_may_return_before_a_barrier(level: str) -> None:
    source = """kernel void k(global int *o) {
      local int s;
      int g = get_global_id(0);
      if (get_group_id(0) == 1) return;
      if (get_local_id(0) == 0) s = g;
      barrier(CLK_LOCAL_MEM_FENCE);
      o[g] = s;
      if (g & 1) return;
      o[g] += 100;
    }"""
    out = zeros(16)
    launch(source, 16, 4, out, options=[level])
    assert out.tolist() == [0 if g // 4 == 1 else g // 4 * 4 + (0 if g & 1 else 100) for g in range(16)]


@unoptimized_too
def test_arrays_of_pointers_to_global_and_local_memory(level: str) -> None:
    source = """kernel void k(global int *o, global int *a, global int *b) {
      global int *p[2] = {a, b};
      local int t[8];
      local int *q[2] = {t, t + 4};
      int g = get_global_id(0);
      q[g >> 2][g & 3] = g * 10;
      barrier(CLK_LOCAL_MEM_FENCE);
      o[g] = p[g & 1][g] + t[7 - g];
    }"""
    out = zeros(8)
    profile = launch(source, 8, 8, out, ints(8), ints(8) * 1000, options=[level])
    assert out.tolist() == [g * (1000 if g & 1 else 1) + 10 * (7 - g) for g in range(8)]
    assert profile.metrics["local_accesses"] == 16
    assert profile.metrics["global_accesses"] == 16


# -- work-item functions


@unoptimized_too
def test_work_item_functions_with_a_variable_dimension(level: str) -> None:
    source = """kernel void k(global int *o) {
      int s = 0;
      for (uint d = 0; d < 5; d++)
        s = s * 7 + (int)(get_global_id(d) + 2 * get_local_id(d) + 3 * get_group_id(d) + 5 * get_local_size(d)
          + get_global_size(d) + get_num_groups(d) + get_global_offset(d));
      o[(get_global_id(2) - 1) * 24 + (get_global_id(1) - 2) * 4 + get_global_id(0) - 3] = s + get_work_dim();
    }"""
    out = zeros((2, 6, 4))
    extents, sizes, offsets = (4, 6, 2), (2, 3, 1), (3, 2, 1)
    launch(source, extents, sizes, out, options=[level], global_offset=offsets)
    for (z, y, x), found in np.ndenumerate(out):
        expected = 0
        for d in range(3):
            i, n, total, offset = (x, y, z)[d], sizes[d], extents[d], offsets[d]
            expected = expected * 7 + i + offset + 2 * (i % n) + 3 * (i // n) + 5 * n
            expected += total + total // n + offset
        for _ in range(2):  # dimensions that are not there: sizes 1, ids 0
            expected = expected * 7 + 5 + 1 + 1
        assert found == expected + 3


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_groups_of_one_of_odd_and_of_most_work_items(size: int) -> None:
    source = """kernel void k(global int *o) {
      size_t g = get_global_id(0), n = get_local_size(0);
      o[g] = get_local_id(0);
      barrier(CLK_GLOBAL_MEM_FENCE);
      o[g] += o[g - get_local_id(0) + (get_local_id(0) + 1) % n] * 0 + n;
    }"""
    out = zeros(2 * size)
    profile = launch(source, 2 * size, size, out)
    assert out.tolist() == [i + size for i in range(size)] * 2
    assert profile.metrics["work_groups"] == 2
    assert profile.metrics["work_items"] == 2 * size


@later
@unoptimized_too
def test_last_work_groups_may_be_smaller(standard: str, level: str) -> None:
    source = """kernel void k(global int *o) {
      local int s[7];
      int l = get_local_id(0), t = 0;
      s[l] = l;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < get_local_size(0); i++) t += s[i];
      o[get_global_id(0)] = t + 100 * get_local_size(0) + 1000 * get_enqueued_local_size(0)
                          + 10000 * get_num_groups(0);
    }"""
    out = zeros(17)
    profile = launch(source, 17, 7, out, standard=standard, options=[level])
    assert out.tolist() == [37721] * 14 + [37303] * 3
    assert profile.metrics["work_items"] == 17
    assert profile.metrics["work_groups"] == 3


def test_linear_ids_in_smaller_last_groups_of_two_dimensions() -> None:
    source = """kernel void k(global int *o) {
      o[get_global_linear_id()] = get_local_linear_id() + 10 * get_local_size(0) + 100 * get_local_size(1);
    }"""
    out = zeros((3, 5))
    launch(source, (5, 3), (2, 2), out, standard="2.0")
    for (y, x), found in np.ndenumerate(out):
        width, height = min(2, 5 - x // 2 * 2), min(2, 3 - y // 2 * 2)
        assert found == y % 2 * width + x % 2 + 10 * width + 100 * height


# -- builtins that need the engine


@unoptimized_too
def test_async_copies_move_elements_between_local_and_global_memory(level: str) -> None:
    source = """kernel void k(global int *o, global const int *a, local int *t) {
      event_t e = async_work_group_copy(t, a + get_group_id(0) * 8, 8, 0);
      wait_group_events(1, &e);
      t[get_local_id(0)] *= 2;
      prefetch(a, 8);
      barrier(CLK_LOCAL_MEM_FENCE);
      e = async_work_group_strided_copy(o + get_group_id(0) * 16, t, 8, 2, 0);
      wait_group_events(1, &e);
    }"""
    out, expected = zeros(32), zeros(32)
    launch(source, 16, 8, out, ints(16), local_ints(8), options=[level])
    expected[::2] = ints(16) * 2
    np.testing.assert_array_equal(out, expected)


@later
@unoptimized_too
def test_generic_pointers_find_their_memory(standard: str, level: str) -> None:
    source = """int get(int *p, int i) { return p[i]; }
    void put(int *p, int i, int v) { p[i] = v; }
    kernel void k(global int *o, global int *a) {
      local int t[8];
      int own[8], l = get_local_id(0), g = get_global_id(0);
      put(t, l, a[g]);
      put(own, l, g * 2);
      work_group_barrier(CLK_LOCAL_MEM_FENCE);
      int *p = g & 1 ? (int *)t : (int *)a;
      int what = (to_global(p) != 0) + 2 * (to_local(p) != 0) + 4 * (to_private(&own[0]) != 0);
      put(o, g, get(t, (l + 1) % 8) + get(own, l) + get(p, 0) + 1000 * what);
    }"""
    out = zeros(16)
    launch(source, 16, 8, out, ints(16), standard=standard, options=[level])
    for g in range(16):
        first, odd = g // 8 * 8, g & 1
        expected = first + (g % 8 + 1) % 8 + 2 * g + (first if odd else 0) + 1000 * (6 if odd else 5)
        assert out[g] == expected


@later
@unoptimized_too
def test_work_group_collectives(standard: str, level: str) -> None:
    source = """kernel void k(global int *o, global float *q) {
      int g = get_global_id(0), s = g;
      o[g] = work_group_reduce_add(g);
      o[g + 16] = work_group_scan_inclusive_max(g % 5);
      o[g + 32] = work_group_scan_exclusive_add(1);
      o[g + 48] = (work_group_all(g < 12) != 0) + 2 * (work_group_any(g == 9) != 0);
      o[g + 64] = work_group_broadcast(g, 3);
      for (int i = 0; i < 5; i++) {
        s += work_group_reduce_add(s) % 13;
        if (work_group_any(s > 45)) break;
      }
      o[g + 80] = s;
      q[g] = work_group_reduce_min((float)g) + 0.5f;
    }"""
    out, q = zeros((6, 2, 8)), zeros((2, 8), np.float32)
    launch(source, 16, 8, out, q, standard=standard, options=[level])
    for group in range(2):
        ids = [8 * group + item for item in range(8)]
        assert set(out[0, group]) == {sum(ids)}
        assert out[1, group].tolist() == [max(g % 5 for g in ids[: n + 1]) for n in range(8)]
        assert out[2, group].tolist() == list(range(8))
        assert set(out[3, group]) == {[1, 2][group]}
        assert set(out[4, group]) == {ids[3]}
        values = ids
        for _ in range(5):
            values = [value + sum(values) % 13 for value in values]
            if max(values) > 45:
                break
        assert out[5, group].tolist() == values
        assert set(q[group]) == {ids[0] + 0.5}


@later
@unoptimized_too
def test_program_scope_variables_keep_their_values(standard: str, level: str) -> None:
    source = """global int counter = 5;
    global int table[4] = {1, 2, 3, 4};
    global int *pointer = table;
    constant float halves[2] = {0.5f, 1.5f};
    kernel void k(global int *o) {
      static global int calls = 3;
      int g = get_global_id(0);
      calls += 1;
      table[g % 4] += 1;
      o[g] = atomic_add(&counter, 1) + (int)(2 * halves[g % 2]) + 100 * pointer[g % 4] + 10000 * calls;
    }"""
    out = zeros(8)
    launch(source, 8, 4, out, standard=standard, options=[level])
    assert out.tolist() == [
        5 + g + 1 + 2 * (g % 2) + 100 * (g % 4 + 2 + g // 4) + 10000 * (4 + g) for g in range(8)
    ]


def test_images_of_two_dimensions_are_sampled_and_written() -> None:
    source = """constant sampler_t own =
      CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    kernel void k(global float4 *o, read_only image2d_t m, sampler_t s, write_only image2d_t w) {
      int x = get_global_id(0), y = get_global_id(1);
      float4 v = read_imagef(m, own, (int2)(x + 1, y));
      float4 u = read_imagef(m, s, (float2)(x + 0.5f, y + 0.5f));
      o[y * 6 + x] = v + u + get_image_width(m) * 10 + get_image_height(m);
      write_imagef(w, (int2)(x, y), v);
    }"""
    texels = np.arange(96, dtype=np.float32).reshape(4, 6, 4)
    out, written = zeros((4, 6, 4), np.float32), zeros((4, 6, 4), np.float32)
    launch(source, (6, 4), (3, 2), out, Image(texels), Sampler("clamp_to_edge"), Image(written))
    right = texels[:, [1, 2, 3, 4, 5, 5]]
    np.testing.assert_array_equal(written, right)
    np.testing.assert_array_equal(out, right + texels + 64)


def test_strings_are_no_ir() -> None:
    texts = (
        "an internal error, align 4",
        "a addrspace(1) addrspacecast",
        ", !dbg !5 %%5 @llvm.x.p1 #4 private",
    )
    source = "kernel void k(global int *a) {" + "".join(f'printf("{t}\\n");' for t in texts) + "}"
    printed = launch(source, 1, 1, ints(1)).printed
    assert printed == "".join(f"{t}\n" for t in texts).replace("%%", "%")


@unoptimized_too
def test_printf_prints_in_the_order_of_execution(level: str) -> None:
    source = r"""constant char word[] = "abc";
    kernel void k(float4 v) {
      int i = get_global_id(0);
      printf("%d:%s %.1v4f %5.2f %x %c%%\n", i, i ? "xy" : "zw", v, i * 0.5, 255, 65 + i);
      if (i == 1) printf("odd %s\n", word);
      barrier(CLK_GLOBAL_MEM_FENCE);
      printf("behind %d\n", i);
    }"""
    profile = launch(source, 4, 2, np.arange(4, dtype=np.float32), options=[level], threads=2)
    vector = "0.0,1.0,2.0,3.0"
    assert profile.printed.splitlines() == [
        f"0:zw {vector}  0.00 ff A%",
        f"1:xy {vector}  0.50 ff B%",
        "odd abc",
        "behind 0",
        "behind 1",
        f"2:xy {vector}  1.00 ff C%",
        f"3:xy {vector}  1.50 ff D%",
        "behind 2",
        "behind 3",
    ]


def test_relaxed_mathematics_is_an_option() -> None:
    source = (
        "kernel void k(global float *o) { int i = get_global_id(0); o[i] = sin((float)i) / exp(0.1f * i); }"
    )
    out = zeros(8, np.float32)
    launch(source, 8, 8, out, options=["-cl-fast-relaxed-math", "-O3"])
    np.testing.assert_allclose(out, np.sin(np.arange(8)) / np.exp(0.1 * np.arange(8)), rtol=1e-5)


# -- forms of a program

_FORMS = """void add(global int *o, int i, int v) { if (v > 3) o[i] += v; }
kernel void other(global int *o) { o[0] = 1; }
kernel void k(global int *o, global const int *a) {
  int i = get_global_id(0);
  add(o, i, a[i]);
}"""


def _compiled(level: str, *form: str) -> bytes:
    arguments = ["-x", "cl", "-cl-std=CL1.2", "-target", "spir64-unknown-unknown", level]
    arguments += ["-isystem", str(toolchain.INCLUDE_DIR), "-emit-llvm", *form]
    return toolchain.clang(arguments, _FORMS.encode(), "forms")


@unoptimized_too
def test_ir_text_and_bitcode_give_the_profile_of_their_source(level: str) -> None:
    profiles = []
    for kernel in (
        Kernel.from_source(_FORMS, "k", options=[level]),
        Kernel.from_ir(_compiled(level, "-S").decode(), "k"),
        Kernel.from_ir(_compiled(level, "-c"), "k"),
    ):
        out = zeros(8)
        profiles.append(crosscast.characterize(kernel, 8, 4, [out, ints(8)]).metrics)
        assert out.tolist() == [0, 0, 0, 0, 4, 5, 6, 7]
    assert profiles[0] == profiles[1] == profiles[2]


def test_the_stub_around_an_unoptimized_kernel_does_not_count() -> None:
    text = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-n8:16:32:64-G1"
target triple = "spir64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %o) {
  call spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o)
  ret void
}
define internal spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o) {
  store i32 7, ptr addrspace(1) %o, align 4
  ret void
}
"""
    out = zeros(1)
    profile = crosscast.characterize(Kernel.from_ir(text, "k"), 3, 1, [out])
    assert out[0] == 7
    assert profile.metrics["total_instruction_count"] == 3 * 2


def test_names_that_look_like_those_of_inlined_copies_do_not_clash() -> None:
    text = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-n8:16:32:64"
target triple = "spir64"
define i32 @twice(i32 %x) noinline {
  %add = add i32 %x, %x
  ret i32 %add
}
define spir_kernel void @k(ptr addrspace(1) %out) {
  %add.i1 = call i32 @twice(i32 3)
  %add.i2 = call i32 @twice(i32 %add.i1)
  store i32 %add.i2, ptr addrspace(1) %out
  ret void
}
"""
    out = ints(1)
    crosscast.characterize(Kernel.from_ir(text, "k"), 1, 1, [out])
    assert out[0] == 12


# -- refused


@pytest.mark.parametrize(
    ("what", "line", "source"),
    [
        (
            "pipe",
            2,
            "kernel void k(read_only pipe int p, global int *a) {\n int x; read_pipe(p, &x); a[0] = x; }",
        ),
        (
            "device-side enqueue",
            2,
            "kernel void k(global int *a) {\n queue_t q = get_default_queue();\n"
            " enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ a[0] = 1; }); }",
        ),
        (
            "sub-group",
            3,
            "uint4 __attribute__((overloadable)) sub_group_ballot(int x);\n"
            "kernel void k(global int *a) {\n a[0] = sub_group_ballot(a[1]).x; }",
        ),
    ],
)
def test_constructs_that_are_left_out_are_refused_by_line(what: str, line: int, source: str) -> None:
    args = [None, ints(4)] if what == "pipe" else [ints(4)]
    with pytest.raises(UnsupportedError, match=rf"line {line}: .*{what}"):
        launch(source, 1, 1, *args, standard="2.0")


@pytest.mark.parametrize("name", ["r", "x0", "wi0", "row0", "ok", "loopx0", "c0"])
def test_arguments_may_have_any_name(name: str) -> None:
    source = f"""kernel void k(global float *o, global const float *{name}, int n) {{
      size_t i = get_global_id(0);
      float sum = 0;
      for (int j = 0; j < n; j++) sum += {name}[i * n + j];
      o[i] = sum;
    }}"""
    a, out = np.arange(64, dtype=np.float32), zeros(8, np.float32)
    launch(source, 8, 4, out, a, np.int32(8))
    np.testing.assert_array_equal(out, a.reshape(8, 8).sum(axis=1))


@pytest.mark.parametrize("width", ["", "2", "3", "4", "16"])
def test_a_parameter_of_a_typedef_has_the_type_that_it_stands_for(width: str) -> None:
    kinds = [f"{name}{width}" for name in ("float", "int", "uchar", "ulong")]
    names = "".join(f"typedef {kind} a{n}; typedef a{n} b{n};" for n, kind in enumerate(kinds))
    parts = [f"global b{n} *p{n}, b{n} v{n}" for n in range(len(kinds))]
    program = Program(f"{names} kernel void k({', '.join(parts)}) {{}}".encode())
    found = [each.type_name for each in frontend.parameters(program, "k")]
    assert found == [each for kind in kinds for each in (f"{kind}*", kind)]
    structure = Program(b"typedef struct { float re, im; } c; kernel void k(global c *p) {}")
    assert frontend.parameters(structure, "k")[0].type_name == "c*"
