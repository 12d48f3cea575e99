"""What OpenCL C and LLVM IR can say and `test_sub_groups` cannot interpret, run end to end.

Much was refused or wrong once, as in kernels of public collections.
"""

import numpy as np
import pytest

import crosscast
from crosscast.characterization import frontend, toolchain
from crosscast.errors import KernelTimeout, LaunchError, UnsupportedError
from crosscast.kernel import Image, Kernel, Program, Sampler
from support.examples import one_in
from support.launching import LEVELS, ints, launch, zeros
from support.refusals import refusals

every_level = pytest.mark.parametrize("level", one_in(3, LEVELS))
unoptimized_too = pytest.mark.parametrize("level", one_in(2, LEVELS[:2]))
later = pytest.mark.parametrize("standard", ["2.0", "3.0"])


# -- builtins that need the engine


@pytest.mark.parametrize("level", ["-Oz", "-O3"])
@pytest.mark.parametrize("broadcast", ["work_group_broadcast(x, 0)", "sub_group_broadcast(x, 0)"])
def test_only_the_work_item_whose_value_is_broadcast_needs_one(broadcast: str, level: str) -> None:
    first = "get_local_id(0)" if broadcast.startswith("work") else "get_sub_group_local_id()"
    source = f"""kernel void k(global int *count, global int *o) {{
      int x;
      if ({first} == 0) x = atomic_add(count, 1);
      o[get_global_id(0)] = {broadcast};
    }}"""
    count, out = zeros(1), zeros(64)
    launch(source, 64, 16, count, out, standard="3.0", options=[level])
    assert out[::16].tolist() == list(range(4)) and (out.reshape(4, 16) == out[::16, None]).all()
    assert count == 4


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
    text = "an internal error, align 4 addrspace(1) addrspacecast , !dbg !5 %%5 @llvm.x.p1 #4 private"
    printed = launch(f'kernel void k(global int *a) {{ printf("{text}\\n"); }}', 1, 1, ints(1)).printed
    assert printed == text.replace("%%", "%") + "\n"


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
        "kernel void k(global float *o) { int i = get_global_id(0); o[i] = sin(1.f * i) / exp(.1f * i); }"
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


# -- refused


@refusals("what line source")
def test_constructs_that_are_left_out_are_refused_by_line(what: str, line: int, source: str) -> None:
    args = [None, ints(4)] if what == "pipe" else [ints(4)]
    with pytest.raises(UnsupportedError, match=rf"line {line}: .*{what}"):
        launch(source, 1, 1, *args, standard="2.0")


def test_arguments_may_have_any_name() -> None:
    names = ("r", "x0", "wi0", "row0", "ok", "loopx0", "c0")
    parameters = "".join(f", global const int *{name}" for name in names)
    source = f"""kernel void k(global int *o{parameters}, int n) {{
      int i = get_global_id(0);
      for (int j = 0; j < n; j++) o[i] += {" + ".join(f"{name}[i * n + j]" for name in names)};
    }}"""
    out = zeros(8)
    launch(source, 8, 4, out, *(ints(64) for _ in names), np.int32(8))
    np.testing.assert_array_equal(out, len(names) * ints(64).reshape(8, 8).sum(axis=1))


def test_a_parameter_of_a_typedef_has_the_type_that_it_stands_for() -> None:
    source = """typedef float a; typedef a b; typedef float3 e; typedef ulong16 c;
    typedef struct { float re; } d;
    kernel void k(global b *p, b v, global e *r, global c *q, c w, global d *s) {}"""
    found = [each.type_name for each in frontend.parameters(Program(source.encode()), "k")]
    assert found == ["float*", "float", "float3*", "ulong16*", "ulong16", "d*"]


def test_what_drivers_only_warn_of_is_no_error() -> None:
    source = """kernel void k(global float2 *x, global int *o) {
      global float4 *wide = x;
      int at = &o[3];
      o[get_global_id(0)] = wide[0].w + 0 * at;
    }"""
    out = zeros(2)
    launch(source, 2, 1, np.arange(4, dtype=np.float32), out)
    assert out.tolist() == [3, 3]


# -- loops and barriers


@every_level
@refusals("body")
def test_an_endless_loop_ends_at_the_time_limit(level: str, body: str) -> None:
    source = f"kernel void k(global int *a) {{ {body} }}"
    with pytest.raises(KernelTimeout, match=r"0.5 s \(the time limit\)"):
        launch(source, 8, 4, zeros(8), options=[level], timeout_s=0.5, threads=2)


@pytest.mark.parametrize("size", [0, 4])
def test_a_buffer_may_be_empty_if_the_kernel_does_not_use_it(size: int) -> None:
    out, p = zeros(1), zeros(size)
    launch("kernel void k(global int *o, global int *p) { o[0] = 3; }", 1, 1, out, p)
    assert out[0] == 3
    if not size:
        with pytest.raises(LaunchError, match=r"argument 1 .* at least one element, as the kernel accesses"):
            launch("kernel void k(global int *o, global int *p) { o[0] = p[0]; }", 1, 1, out, p)


# -- IR that nobody compiled

_IR = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256"
target triple = "spir64-unknown-unknown"
%s
"""
_CALLS = """
define i32 @twice(i32 %x) noinline {
  %add = add i32 %x, %x
  ret i32 %add
}
define spir_kernel void @k(ptr addrspace(1) %out) {
  %add.i1 = call i32 @twice(i32 3)
  %add.i2 = call i32 @twice(i32 %add.i1)
  store i32 %add.i2, ptr addrspace(1) %out
  ret void
}"""
_DOTS = """
define spir_kernel void @k(ptr addrspace(1) %o) {
  %1 = call i32 @f(i32 4)
  %.1 = mul i32 %1, 10
  %2 = add i32 %.1, %1
  store i32 %2, ptr addrspace(1) %o
  ret void
}
define i32 @f(i32 %x) {
  %1 = add i32 %x, 1
  ret i32 %1
}"""
_STUB = """
define spir_kernel void @k(ptr addrspace(1) %o) {
  call spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o)
  ret void
}
define internal spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o) {
  store i32 7, ptr addrspace(1) %o, align 4
  ret void
}"""
_MARKERS = """
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
define spir_kernel void @k(ptr addrspace(1) %o) {
  %p = alloca i32, align 4
  call void @llvm.lifetime.start.p0(ptr %p)
  store i32 7, ptr %p, align 4
  %v = load i32, ptr %p, align 4
  call void @llvm.lifetime.end.p0(ptr %p)
  store i32 %v, ptr addrspace(1) %o, align 4
  ret void
}"""
_NUMBERS = """
@0 = addrspace(2) constant i32 7
@1 = addrspace(2) constant i32 9
define spir_func i32 @2(ptr addrspace(2) %x) {
  %v = load i32, ptr addrspace(2) %x
  ret i32 %v
}
define spir_kernel void @k(ptr addrspace(1) %o) {
  %a = call spir_func i32 @2(ptr addrspace(2) @0)
  %b = call spir_func i32 @2(ptr addrspace(2) @1)
  %s = sub i32 %b, %a
  store i32 %s, ptr addrspace(1) %o
  ret void
}"""


@pytest.mark.parametrize(
    ("text", "left", "instructions"),
    [(_CALLS, 12, 8), (_DOTS, 55, 7), (_STUB, 7, 2), (_NUMBERS, 2, 9), (_MARKERS, 7, 5)],
    ids=["names of inlined copies", "a dot and a number", "a stub", "globals by number", "markers"],
)
def test_names_in_ir_are_those_that_llvm_gives(text: str, left: int, instructions: int) -> None:
    out = zeros(1)
    profile = crosscast.characterize(Kernel.from_ir(_IR % text, "k"), 1, 1, [out])
    assert (out[0], profile.metrics["total_instruction_count"]) == (left, instructions)
