"""Variables and textures have the values that a launch gives them by name.

Members of structures with pointers that kernels take by value are arguments of their own.
"""

import itertools
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from crosscast.arrays import AnyArray
from crosscast.characterization import characterize, frontend, launchfiles
from crosscast.errors import CrosscastError, LaunchError
from crosscast.kernel import Argument, Image, Kernel, Launch
from crosscast.profile import Profile

SOURCE = """
__constant__ int n;
__constant__ float weights[4];
namespace of { static __constant__ float scale; __device__ int counter; }
__constant__ int given = 2;
__global__ void weigh(float *x) { for (int i = 0; i < n; i++) x[threadIdx.x] += weights[i] * of::scale; }
__global__ void count(float *x) { x[threadIdx.x] = atomicAdd(&of::counter, given); }
__global__ void plain(float *x) { x[threadIdx.x] = given; }
texture<float, 1, cudaReadModeElementType> line;
static texture<float4> quads;
texture<unsigned char, 2, cudaReadModeNormalizedFloat> bytes;
texture<float, 2> smooth;
texture<float, 3> block;
void host() { smooth.filterMode = cudaFilterModeLinear; cudaBindTexture(0, line, 0); }
__device__ float fetched(int i) { return tex1Dfetch(line, i); }
__global__ void fetch(float *x) { x[threadIdx.x] = fetched(threadIdx.x); }
__global__ void fetch4(float *x) { float4 v = tex1Dfetch(quads, threadIdx.x); x[threadIdx.x] = v.x + v.w; }
__global__ void point(float *x) { x[threadIdx.x] = tex2D(bytes, threadIdx.x - 1.5f, 1.5f); }
__global__ void linear(float *x) { x[threadIdx.x] = tex2D(smooth, threadIdx.x + 1.0f, 1.0f); }
__global__ void volume(float *x) { x[threadIdx.x] = tex3D(block, 1, threadIdx.x, 1); }
__global__ void object(float *x, cudaTextureObject_t t) {
  x[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
__global__ void load(float *x, const float *t) { x[threadIdx.x] = t[(int)threadIdx.x]; }
"""
ROWS = np.arange(32, dtype=np.float32).reshape(4, 8)


def run(name: str, *more: Argument, form: Any = "cuda", **variables: Argument) -> tuple[Any, Profile]:
    x = np.zeros(8, np.float32)
    kernel = Kernel.from_source(SOURCE, name, form=form)
    profile = characterize(Launch.on_grid(kernel, 1, 8, (x, *more), variables=variables))
    return x.tolist(), profile


def test_variables_have_their_values() -> None:
    weights = np.array([1, 2, 3, 100], np.float32)
    x, profile = run("weigh", n=np.int32(3), weights=weights, scale=np.float32(2))
    assert x == [12.0] * 8
    assert profile.launch["variables"] == ["n", "scale", "weights"]
    assert "unset_variables" not in profile.launch


def test_variables_that_nothing_sets_are_told() -> None:
    assert run("weigh", n=np.int32(0))[1].launch["unset_variables"] == ["weights", "scale"]
    for name in ("count", "plain"):  # one is written by the kernel, the other has a value in the source
        assert "unset_variables" not in run(name)[1].launch
    assert run("plain", given=np.int32(7))[0] == [7.0] * 8


TEXTURES: dict[str, tuple[dict[str, Argument], list[float]]] = {
    "fetch": ({"line": ROWS.ravel()}, ROWS[0].tolist()),
    "fetch4": ({"quads": ROWS}, [8.0 * i + 3 for i in range(8)]),
    "point": (
        {"bytes": Image(ROWS.astype(np.uint8), "R")},
        [float(np.float32(8 + max(i - 2, 0)) * np.float32(1 / 255)) for i in range(8)],
    ),
    "linear": ({"smooth": Image(ROWS, "R")}, [4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.0]),
    "volume": ({"block": Image(ROWS.reshape(2, 4, 4), "R")}, [17.0, 21, 25, 29, 29, 29, 29, 29]),
}


@pytest.mark.parametrize("name", TEXTURES)
@pytest.mark.parametrize("form", ["cuda", "hip"])
def test_a_texture_has_the_texels_of_the_launch(name: str, form: Any) -> None:
    variables, expected = TEXTURES[name]
    found, profile = run(name, form=form, **variables)
    assert found == expected
    assert profile.metrics["work_groups"] == 1


def test_a_fetch_counts_as_a_load() -> None:
    x, of_object = run("object", ROWS.ravel())
    assert x == ROWS[0].tolist()
    load, fetch = run("load", ROWS.ravel())[1], run("fetch", line=ROWS.ravel())[1]
    for profile in (of_object, fetch):
        assert profile.launch["work"]["global_bytes"] == load.launch["work"]["global_bytes"]
        assert profile.metrics["total_instruction_count"] == load.metrics["total_instruction_count"]


OBJECTS = """texture<float, 2> smooth;
__global__ void flat(float *x, cudaTextureObject_t t) { x[threadIdx.x] = tex2D<float>(t, threadIdx.x %s); }
__global__ void deep(float *x, cudaTextureObject_t t) { tex3D<float>(&x[threadIdx.x], t, 1, threadIdx.x, 1); }
__global__ void fours(float *x, cudaTextureObject_t t) {
  float4 v = tex2D<float4>(t, threadIdx.x, 2);
  x[threadIdx.x] = v.x + v.w; }
__global__ void chosen(float *x, cudaTextureObject_t s, cudaTextureObject_t t) {
  x[threadIdx.x] = tex2D<float>(x[threadIdx.x] > 0 ? s : t, 0, 0); }
__global__ void refers(float *x, cudaTextureObject_t t) {
  x[threadIdx.x] = tex2D(smooth, threadIdx.x + 1, 1.0f); }
void host(cudaTextureDesc d) { smooth.filterMode = cudaFilterModeLinear; %s }
"""
FLAT = Image(ROWS, "R")
LINEAR = "d.filterMode = cudaFilterModeLinear; d.addressMode[0] = d.addressMode[1] = cudaAddressMode"
IMAGES: dict[str, tuple[str, Image, str, str, list[float]]] = {
    "point": ("flat", FLAT, "- 1.5f, 1.5f", "", [8.0, 8, 8, 9, 10, 11, 12, 13]),
    "linear": ("flat", FLAT, "+ 1.0f, 1.0f", f"{LINEAR}Clamp;", [4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.0]),
    "border": ("flat", FLAT, "+ 1.0f, 0.0f", f"{LINEAR}Border;", [0.25 + i / 2 for i in range(7)] + [1.75]),
    "zeros do not wrap": ("flat", FLAT, "+ 4, 0", "d.readMode = cudaReadModeElementType;",
                          [4.0, 5, 6, 7, 7, 7, 7, 7]),
    "zeros wrap": ("flat", FLAT, "/ 8.0f + 0.5f, 0", "d.normalizedCoords = true;",
                   [4.0, 5, 6, 7, 0, 1, 2, 3]),
    "mirror": ("flat", FLAT, "/ 8.0f + 0.5f, 0", "d.normalizedCoords = true;"
               " d.addressMode[0] = d.addressMode[1] = cudaAddressModeMirror;",
               [4.0, 5, 6, 7, 7, 6, 5, 4]),
    "bytes": ("flat", Image(ROWS.astype(np.uint8), "R"), ", 1", "d.readMode = cudaReadModeNormalizedFloat;",
              [float(np.float32(8 + i) * np.float32(1 / 255)) for i in range(8)]),
    "volume": ("deep", Image(ROWS.reshape(2, 4, 4), "R"), ", 0", "", [17.0, 21, 25, 29, 29, 29, 29, 29]),
    "of four": ("fours", Image(np.arange(128, dtype=np.float32).reshape(4, 8, 4), "RGBA"), ", 0", "",
                [131.0 + 8 * i for i in range(8)]),
}  # fmt: skip


def fetched(
    name: str, place: str, host: str, *images: Argument, form: Any = "cuda", **variables: Argument
) -> Any:
    x = np.zeros(8, np.float32)
    kernel = Kernel.from_source(OBJECTS % (place, host), name, form=form)
    profile = characterize(Launch.on_grid(kernel, 1, 8, (x, *images), variables=variables), check_bounds=True)
    return x.tolist(), profile


@pytest.mark.parametrize(("name", "form"), list(zip(IMAGES, itertools.cycle(("cuda", "hip")))))
def test_a_texture_object_has_the_texels_of_an_image(name: str, form: Any) -> None:
    kernel, image, place, host, expected = IMAGES[name]
    assert fetched(kernel, place, host, image, form=form)[0] == expected


def test_a_fetch_of_an_object_counts_as_one_of_a_reference() -> None:
    of_object = fetched("flat", "+ 1, 1.0f", f"{LINEAR}Clamp;", FLAT)[1]
    of_reference = fetched("refers", "+ 1, 1.0f", f"{LINEAR}Clamp;", None, smooth=FLAT)[1]
    assert of_object.metrics["total_instruction_count"] == of_reference.metrics["total_instruction_count"]
    assert of_object.launch["work"]["global_bytes"] == of_reference.launch["work"]["global_bytes"]


BYTES = Image(ROWS.astype(np.uint8), "R")
MODES = "d.readMode = cudaReadModeNormalizedFloat; d.readMode = cudaReadModeElementType;"


@pytest.mark.parametrize(
    ("kernel", "images", "host", "message"),
    [
        ("flat", (ROWS,), "", r"line 2: the kernel reads texels of 4 bytes .* found no image"),
        ("flat", (BYTES,), "", "line 2: .* found 1 bytes"),
        ("chosen", (FLAT, FLAT), "", "line 8: .* found no argument"),
        ("flat", (FLAT,), f"{LINEAR}Clamp; d.filterMode = cudaFilterModePoint;", "line 2: .* several set"),
        ("flat", (FLAT,), "d.normalizedCoords = unknown;", "line 2: .* several settings"),
        ("flat", (BYTES,), MODES, "line 2: .* several settings"),
    ],
)
def test_texels_that_an_object_has_not_are_refused(
    kernel: str, images: tuple[Argument, ...], host: str, message: str
) -> None:
    with pytest.raises(CrosscastError, match=message):
        fetched(kernel, ", 1", host, *images)


BAD: list[tuple[str, dict[str, Argument], str]] = [
    ("weigh", {"m": np.int32(1)}, "the program has no variable 'm'; it has n, weights"),
    ("weigh", {"n": np.int64(1)}, "variable n: expected at most 4 bytes, found 8"),
    ("fetch", {}, "line 15: the kernel reads the texture line, whose texels are missing"),
    ("weigh", {"n": None}, "variable n: expected a value, a buffer or an image"),
]


@pytest.mark.parametrize(("name", "variables", "message"), BAD)
def test_bad_values_are_refused(name: str, variables: dict[str, Argument], message: str) -> None:
    with pytest.raises(CrosscastError, match=message):
        run(name, **variables)


def test_a_launch_file_has_variables(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    text = 'source = "k.cu"\nkernel = "weigh"\ngrid = 1\nblock = 8\n[[arg]]\nlength = 8\n'
    text += '[[variable]]\nname = "n"\ntype = "int"\nvalue = 2\n'
    text += '[[variable]]\nname = "weights"\ntype = "float"\nvalues = [1, 2, 3, 4]\n'
    (tmp_path / "k.toml").write_text(text)
    [launch] = launchfiles.read(tmp_path / "k.toml")
    launchfiles.write_launch(launch, tmp_path / "again.toml")
    [again] = launchfiles.read(tmp_path / "again.toml")
    for read in (launch, again):
        assert read.variables["n"] == 2
        assert np.array_equal(np.asarray(read.variables["weights"]), [1, 2, 3, 4])
    (tmp_path / "k.toml").write_text(text.replace('type = "int"\n', ""))
    with pytest.raises(CrosscastError, match="type is missing, expected that of the variable's elements"):
        launchfiles.read(tmp_path / "k.toml")


# -- structures with pointers, by value

ITEMS = 256
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
PLAIN = f"__global__ void k(const float *x, int s, float *y, int t) {{ {INDEX} y[i * t] = 2 * x[i * s]; }}"
DECLARED = """
struct View { float *p; int stride; __device__ float &operator()(int i) const { return p[i * stride]; } };
"""


Form = Literal["cuda", "hip"]


def run_on(source: str, *args: Argument, form: Form = "cuda", name: str = "k") -> Profile:
    kernel = Kernel.from_source(source, name, form=form)
    return characterize(Launch.on_grid(kernel, 2, ITEMS // 2, args))


def filled() -> AnyArray:
    return np.arange(ITEMS, dtype=np.float32)


def empty() -> AnyArray:
    return np.zeros(ITEMS, np.float32)


ONE = np.int32(1)


@pytest.mark.parametrize("form", ["cuda", "hip"])
def test_a_kernel_of_views_has_the_profile_of_one_of_pointers(form: Form) -> None:
    views = f"{DECLARED}__global__ void k(const View x, View y) {{ {INDEX} y(i) = 2 * x(i); }}"
    if form == "hip":
        views = f"#include <hip/hip_runtime.h>\n{views}"
    out = empty()
    found, plain = (
        run_on(views, filled(), ONE, out, ONE, form=form),
        run_on(PLAIN, filled(), ONE, empty(), ONE),
    )
    np.testing.assert_array_equal(out, 2 * filled())
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
  __device__ void operator()(int i) const {
    to[i] = on ? scale * from[N - 1][i] - from[0][i] + shift + origin.y : 0; }
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
    out, numbers = empty(), [np.float32(value) for value in (1, 10, 3)]
    members: tuple[Argument, ...]
    members = (np.float32(3), out, filled() + 1, filled(), np.bool_(True), np.float64(2), *numbers)
    run_on(FUNCTOR, *members, name=kernel.name)
    np.testing.assert_array_equal(out, 2 * filled() + 11)


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
    outs = [empty() for _ in range(pointers)]
    found = run_on(source, *outs, *[ONE] * ("int n" in declared))
    np.testing.assert_array_equal(sum(outs), filled())
    (side,) = {each["accesses_write"] * int(width) for width, each in found.launch["sub_groups"].items()}
    assert side == ITEMS
    assert found.launch["distinct_bytes"]["global"]["written"] == filled().nbytes


def test_a_structure_without_pointers_is_one_argument() -> None:
    source = f"struct S {{ int a, b; }};\n__global__ void k(float *y, S s) {{ {INDEX} y[i] = s.a + s.b; }}"
    out = empty()
    run_on(source, out, np.array([3, 4], np.int32))
    assert (out == 7).all()


def test_members_that_lack_are_named() -> None:
    source = f"{DECLARED}__global__ void k(int n, View x) {{ {INDEX} if (i < n) x(i) = 1; }}"
    with pytest.raises(
        LaunchError, match=r"expected 3 arguments \(int n, float\* x\.p, int x\.stride\), found 2"
    ):
        run_on(source, ONE, filled())
    with pytest.raises(LaunchError, match=r"argument 1 \(float\* x\.p\): expected an array, found a value"):
        run_on(source, ONE, np.float32(1), ONE)
