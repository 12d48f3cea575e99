"""Structures with pointers that kernels take by value: their members are arguments of their own."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Launch, Profile
from crosscast.arrays import AnyArray
from crosscast.characterization import frontend
from crosscast.errors import LaunchError
from crosscast.kernel import Argument

ITEMS = 256
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
PLAIN = f"__global__ void k(const float *x, int s, float *y, int t) {{ {INDEX} y[i * t] = 2 * x[i * s]; }}"
DECLARED = """
struct View { float *p; int stride; __device__ float &operator()(int i) const { return p[i * stride]; } };
"""


Form = Literal["cuda", "hip"]


def run(source: str, *args: Argument, form: Form = "cuda", name: str = "k") -> Profile:
    kernel = Kernel.from_source(source, name, form=form)
    return crosscast.characterize(Launch.on_grid(kernel, 2, ITEMS // 2, args))


def x() -> AnyArray:
    return np.arange(ITEMS, dtype=np.float32)


def y() -> AnyArray:
    return np.zeros(ITEMS, np.float32)


ONE = np.int32(1)


@pytest.mark.parametrize("form", ["cuda", "hip"])
def test_a_kernel_of_views_has_the_profile_of_one_of_pointers(form: Form) -> None:
    views = f"{DECLARED}__global__ void k(const View x, View y) {{ {INDEX} y(i) = 2 * x(i); }}"
    if form == "hip":
        views = f"#include <hip/hip_runtime.h>\n{views}"
    out = y()
    found, plain = run(views, x(), ONE, out, ONE, form=form), run(PLAIN, x(), ONE, y(), ONE)
    np.testing.assert_array_equal(out, 2 * x())
    assert found.metrics == plain.metrics
    names = [entry.pop("name") for entry in found.launch["arguments"]]
    assert names == ["x.p", "x.stride", "y.p", "y.stride"]
    for entry in plain.launch["arguments"]:
        del entry["name"]
    assert {**found.launch, "host": None} == {**plain.launch, "host": None}


FUNCTOR = """
template <typename F> __global__ void k(F f) { f(blockIdx.x * blockDim.x + threadIdx.x); }
struct Base { float scale; };
template <typename T, int N> struct Scaled : Base {
  T *__restrict__ to; const T *from[N]; bool on; double shift; float3 origin; static constexpr int many = N;
  __device__ void operator()(int i) const { to[i] = on ? scale * from[N - 1][i] + shift + origin.y : 0; }
};
template __global__ void k<Scaled<float, 2>>(Scaled<float, 2>);
"""


def test_members_are_those_of_bases_arrays_and_vectors_in_their_order() -> None:
    kernel = Kernel.from_source(FUNCTOR, "k<Scaled<float, 2>>", form="cuda")
    formal = frontend.parameters(kernel.program, kernel.name)
    assert [f"{each.type_name} {each.name}" for each in formal] == [
        *("float f.scale", "float* f.to", "float* f.from[0]", "float* f.from[1]", "bool f.on"),
        *("double f.shift", "float f.origin.x", "float f.origin.y", "float f.origin.z"),
    ]
    out, numbers = y(), [np.float32(value) for value in (1, 10, 3)]
    members: tuple[Argument, ...]
    members = (np.float32(3), out, y(), x(), np.bool_(True), np.float64(2), *numbers)
    run(FUNCTOR, *members, name=kernel.name)
    np.testing.assert_array_equal(out, 3 * x() + 12)


BODIES = {
    "one pointer": ("struct S { float *p; };", "s.p[i] = i;", 1),
    "an index that varies": ("struct S { float *p[2]; int n; };", "s.p[blockIdx.x][i] = i;", 2),
    "a copy": ("struct S { float *p; int n; };", "S t = s; if (t.n) t.p += i; *t.p = i;", 1),
    "a function that is not inlined": (
        "struct S { float *p; int n; };\n__device__ __noinline__ void f(S &s, int i) { s.p[i] = i * s.n; }",
        "f(s, i);",
        1,
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_structure_may_be_used_in_any_way(case: str) -> None:
    declared, body, pointers = BODIES[case]
    source = f"{declared}\n__global__ void k(S s) {{ {INDEX} {body} }}"
    outs = [y() for _ in range(pointers)]
    found = run(source, *outs, *[ONE] * ("int n" in declared))
    np.testing.assert_array_equal(sum(outs), x())
    (side,) = {each["accesses_write"] * int(width) for width, each in found.launch["sub_groups"].items()}
    assert side == ITEMS
    assert found.launch["distinct_bytes"]["global"]["written"] == x().nbytes


def test_a_structure_without_pointers_is_one_argument() -> None:
    source = f"struct S {{ int a, b; }};\n__global__ void k(float *y, S s) {{ {INDEX} y[i] = s.a + s.b; }}"
    out = y()
    run(source, out, np.array([3, 4], np.int32))
    assert (out == 7).all()


def test_members_that_lack_are_named() -> None:
    source = f"{DECLARED}__global__ void k(int n, View x) {{ {INDEX} if (i < n) x(i) = 1; }}"
    with pytest.raises(
        LaunchError, match=r"expected 3 arguments \(int n, float\* x\.p, int x\.stride\), found 2"
    ):
        run(source, ONE, x())
    with pytest.raises(LaunchError, match=r"argument 1 \(float\* x\.p\): expected an array, found a value"):
        run(source, ONE, np.float32(1), ONE)
