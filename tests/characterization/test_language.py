"""What OpenCL C and LLVM IR can say and `test_sub_groups` cannot interpret, run end to end."""

import numpy as np
import pytest

import crosscast
from crosscast.characterization import frontend, toolchain
from crosscast.errors import UnsupportedError
from crosscast.kernel import Image, Kernel, Program, Sampler
from support.examples import one_in
from support.launching import LEVELS, ints, launch, zeros
from support.refusals import refusals

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


@pytest.mark.parametrize("name", ["r", "x0", "wi0", "row0", "ok", "loopx0", "c0"])
def test_arguments_may_have_any_name(name: str) -> None:
    source = f"""kernel void k(global int *o, global const int *{name}, int n) {{
      int i = get_global_id(0);
      for (int j = 0; j < n; j++) o[i] += {name}[i * n + j];
    }}"""
    out = zeros(8)
    launch(source, 8, 4, out, ints(64), np.int32(8))
    np.testing.assert_array_equal(out, ints(64).reshape(8, 8).sum(axis=1))


@pytest.mark.parametrize("width", ["", "3", "16"])
def test_a_parameter_of_a_typedef_has_the_type_that_it_stands_for(width: str) -> None:
    source = f"""typedef float{width} a; typedef a b; typedef ulong{width} c;
    typedef struct {{ float re; }} d;
    kernel void k(global b *p, b v, global c *q, c w, global d *s) {{}}"""
    found = [each.type_name for each in frontend.parameters(Program(source.encode()), "k")]
    assert found == [f"float{width}*", f"float{width}", f"ulong{width}*", f"ulong{width}", "d*"]
