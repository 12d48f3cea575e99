"""Code around kernels does not matter, one bad kernel refuses itself alone, and the dialect is nvcc's.

Launches in host code are found as far as its constants tell them.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.characterization.cuda.launches import HostLaunch, argument_texts, find_launches
from crosscast.characterization.frontend import load, parameters
from crosscast.cli import main
from crosscast.errors import CrosscastError
from crosscast.kernel import Kernel, Launch, Program
from support.commands import Command, Output
from support.examples import one_in

KERNEL = "__global__ void k(P *p) { p[threadIdx.x].w = 1; }"
TYPES = (
    '#include <vector>\n#include "no/such.h"\nstruct P { float w; };\nstd::vector<P> all() { return {}; }\n'
)
WHOLE = f'#include "types.h"\n{KERNEL}\n'
HOSTS = {
    "a header that includes missing ones": WHOLE,
    "a launch": f"{WHOLE}void host(P *p) {{ k<<<1, 32>>>(p); missing(); }}",
    "a namespace": f"""#include "types.h"
      namespace a {{ namespace b {{ {KERNEL} void f(P *p) {{ k<<<1, 1>>>(p); }} }} }}""",
    'extern "C"': f'extern "C" {{\n#include <stdlib.h>\n{WHOLE}}}',
    "many missing headers": "".join(f"#include <missing{n}>\n" for n in range(20)) + WHOLE,
    "brackets": f"{WHOLE}static void f(int n[2]) {{ if (n) {{ missing(); }}}}\nvoid g() {{ no(); }}",
    "a declaration first": f"{WHOLE.split('{')[0]};\nvoid f(int n[2]) {{ missing(); }}\n{KERNEL}",
    "an error in a header": f'#include "broken.h"\n{WHOLE}',
    "a class of the host": f"""struct P {{
        float w; P() : w(std::sqrt(2)) {{ std::cout << w; }}
        std::string name() const {{ return "P"; }}
        bool operator<(const P &o) const {{ return w < o.w; }} }};
      class Host {{ std::map<int, P> m; public: Host() {{ m.clear(); }} }};
      {KERNEL}
      Host h;""",
    "a macro that makes kernels": f"#define MAKE(NAME) {KERNEL.replace('k(', 'NAME(')}\n"
    '#include "types.h"\nMAKE(k)',
}


@pytest.mark.parametrize("text", one_in(2, HOSTS.values()))
def test_code_around_a_kernel_does_not_matter(text: str, tmp_path: Path) -> None:
    (tmp_path / "types.h").write_text(TYPES)
    (tmp_path / "broken.h").write_text(
        "#error no\ntemplate <class T> struct Q : Missing<T> {};\nint x = y;\n"
    )
    (tmp_path / "k.cu").write_text(text)
    p = np.zeros(4, np.float32)
    characterize(Launch.on_grid(Kernel.from_file(tmp_path / "k.cu", "k"), 1, 4, (p.view("V4"),)))
    assert p[0] == 1


FILE = """#include <vector>
struct Pair { std::vector<int> p; };
__device__ float bad(float x) { return undefined_thing(x); }
__device__ float calls_bad(float x) { return bad(x) + 1; }
float of_host(float x) { return x; }
__global__ void good(float *x) { x[0] = 1; }
__global__ void calls(float *x) { x[0] = calls_bad(x[1]); }
__global__ void pairs(float *x, Pair *p) { p[0] = p[1]; }
__global__ void host(float *x) { x[0] = of_host(x[0]); }
__global__ void made(float *x) { int *p = new int; x[0] = *p; }
template <class T> __global__ void field(T *x) { x->field = 1; }
template <class T, int n> __global__ void put(T *x) { x[0] = n; }
template <class T> void launches(T *x) { put<T, 7><<<1, 1>>>(x); }
struct Reader { __device__ float operator()(int i) const { return i + 3; } };
template <class T, class R> __global__ void reads(T *x) { R read; x[0] = read(2); }
template <class R> void tests() { reads<float, R><<<1, 1>>>(nullptr); } void all() { tests<Reader>(); }
__device__ float five(float x) { return 5; }
template <float (*f)(float)> __global__ void applies(float *x) { x[0] = f(x[1]); }
template <class T> __global__ void both(T *x) { x[0] = 1; }
template <class T> __global__ void both(T *x, T *y) { x[0] = y[0]; }
template <class T> __global__ void broken(T *x) { x[0] = undefined_thing; }
int main() { launches<float>(nullptr); field<int><<<1, 1>>>(nullptr); }
"""
REFUSALS = {
    "calls": "k.cu:3: error: use of undeclared identifier 'undefined_thing'",
    "pairs": "Pair was left out: k.cu:2: error: no template named 'vector' in namespace 'std' "
    "(headers that were not found: vector)",
    "host": "k.cu:9: error: use of undeclared identifier 'of_host' (of_host is a function of the host)",
    "made": "line 10: allocating memory in a kernel (malloc, new) is not supported",
    "field<int>": "k.cu:11: error: member reference base type 'int' is not a structure or union",
    "put<int>": "expected a value for each of put<T, n>",
    "both<int>": "2 kernel templates are named both: expected parameters of one, as in both<int>(int*)",
    "both<int>(long*)": "2 kernel templates are named both: expected parameters of one, as in",
    "broken<int>": "k.cu:21: error: use of undeclared identifier 'undefined_thing'",
    "none": "named with their arguments: field<T>, put<T, n>, reads<T, R>, applies<f>, both<T>, broken<T>; "
    "headers that were not found: vector",
}


PROGRAM = Program(FILE.encode(), "cuda", Path("k.cu"))


@pytest.mark.parametrize(("name", "message"), REFUSALS.items())
def test_a_bad_kernel_is_refused_with_its_reason(name: str, message: str) -> None:
    arguments = (np.zeros(8, np.float32), np.zeros(8, np.float32))[: 2 if name == "pairs" else 1]
    with pytest.raises(CrosscastError) as caught:
        characterize(Launch.on_grid(Kernel(PROGRAM, name), 1, 1, arguments))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("good", 1),
        ("put<float, 7>", 7),
        ("put", 7),
        ("reads", 5),
        ("applies<five>", 5),
        ("both<float>(float*)", 1),
    ],
)
def test_the_others_of_a_file_run(name: str, value: int) -> None:
    x = np.zeros(1, np.float32)
    characterize(Launch.on_grid(Kernel(PROGRAM, name), 1, 1, (x,)))
    assert x[0] == value
    assert "put<float, 7>" in load(PROGRAM).kernel_names


DIALECT = {
    "register float a = 2; x[0] = a;": 2,
    "uint4 v = {3, 4, 5, 6}; uchar4 c = {v.x, v.y, v.z, v.w}; x[0] = c.y;": 4,
    'printf("a: "F"\\n", 1); x[0] = 1;': 1,
    "x[0] = UINT_MAX > INT_MAX ? 1 : 2;": 1,
    "x[0] = floor(M_PI) + FLT_MIN;": 3,
    "x[0] = sqrt(4) + sqrt(x[0] + 4.0f) + pow(2, 2) + max(1, 2u) + abs(-1.5f);": 11.5,
    "x[threadIdx.x] = __shfl_down(threadIdx.x, 1) + __shfl_xor(threadIdx.x, 2) + __shfl(threadIdx.x, 3);": 6,
    "x[0] = N;": 5,
    "x[0] = twice(8);": 16,
    "x[0] = search * ftz * fmad;": 60,  # Macros with names of options
    "half2 h = __floats2half2_rn(1.5f, 2); x[0] = __low2float(__hadd2(h, h));": 3,
    "x[0] = 0;\n#pragma unroll COUNT\n for (int i = 0; i < COUNT; i++) x[0] += i;": 6,
}


@pytest.mark.parametrize(
    ("standard", "body"), one_in(12, product(["c++03", "c++11", "c++14", "c++17", "c++20"], DIALECT))
)
def test_what_nvcc_takes_is_taken(body: str, standard: str) -> None:
    source = f"""// caf\xe9
#define F "%d"
#define COUNT 4
enum {{ N = 5 }};
static __forceinline__ __device__ __host__ int twice(int n) {{ return 2 * n; }}
__global__ void __launch_bounds__(256, 2) k(float *x) {{ if (threadIdx.x < 4) {{ {body} }} }}
"""
    options = ("-Dsearch=3", "-Dftz=4", "-Dfmad=5")
    program = Program(source.encode("latin-1"), "cuda", options=options, standard=standard)
    x = np.zeros(4, np.float32)
    characterize(Launch.on_grid(Kernel(program, "k"), 1, 1 if "shfl" not in body else 4, (x,)))
    assert x[0] == DIALECT[body]


def test_a_refusal_names_the_included_file(tmp_path: Path) -> None:
    (tmp_path / "time.cuh").write_text("\n__device__ int now(int x) { return clock() + x; }\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "time.cuh"\n__global__ void k(int *x) { x[0] = now(1); }')
    with pytest.raises(CrosscastError, match=r"k: .*time\.cuh: line 2: reading a clock is not supported"):
        characterize(Launch.on_grid(Kernel(Program.from_file(path), "k"), 1, 1, (np.zeros(1, np.int32),)))


def test_a_source_in_latin_1_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_bytes("kernel void k() {} // \xe9".encode("latin-1"))
    assert load(Program.from_file(tmp_path / "k.cl")).kernel_names == ("k",)


RUN, PREDICT = Command.of("characterize"), Command.of("predict time")

SOURCE = """#include <missing.h>
#define N 1024
#define BLOCK 128
#define CHECK(call) { cudaError_t e = call; if (e) exit(1); }
const int M = N * 2;
template <class T> __global__ void saxpy(T *x, T *y, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
__global__ void mm(const float *a, float *b, int n) { b[threadIdx.x] = a[threadIdx.y] + n; }
int main(int argc, char **argv) {
  float *x, *y; size_t size = N * sizeof(float); int n = atoi(argv[1]), steps = 0;
  CHECK(cudaMalloc((void **)&x, size)); cudaMalloc(&y, M * sizeof(float));
  saxpy<float><<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(x, y, 2.0f, N);
  dim3 grid((size_t)ceil((float)N / 32), 2), block(32, 8);
  mm<<<grid, block, 3 * sizeof(int), 0>>>(x, y, n);
  for (steps = 0; steps < 3; steps++) mm<<<n / 2, 64>>>(x, unknown, steps);
  mm<<<dim3(1 << 2, 0x10), dim3(BLOCK / 2)>>>(x, y, -7 % 3);
}
"""
HOST = Program(SOURCE.encode(), "cuda")


@pytest.fixture(scope="module")
def launches() -> list[HostLaunch]:
    return find_launches(HOST)


def test_constants_tell_sizes_and_allocations_arguments(launches: list[HostLaunch]) -> None:
    assert [(each.line, each.kernel, each.grid, each.block, each.shared) for each in launches] == [
        (14, "saxpy<float>", (8,), (128,), None),
        (16, "mm", (32, 2), (32, 8), 12),
        (17, "mm", None, (64,), None),
        (18, "mm", (4, 16), (64,), None),
    ]
    assert [each.unknown for each in launches] == [(), (), ("n",), ()]
    buffers = ["float:1024:uniform", "float:2048:uniform"]
    assert [argument_texts(each, parameters(HOST, each.kernel)) for each in launches] == [
        [*buffers, "float=2.0", "int=1024"],
        [*buffers, None],
        [buffers[0], None, None],
        [*buffers, "int=-1"],
    ]


def test_a_first_profile_needs_no_launch_file(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "app.cu"
    path.write_text(SOURCE)
    rows = [json.loads(line) for line in RUN.text(capsys, path, "--json").splitlines()]
    assert [(row["kernel"], row["launch"]["global_size"]) for row in rows] == [
        ("saxpy<float>", [1024]),
        ("mm", [256, 16]),
    ]
    forecast = PREDICT.answer(capsys, path, "--devices", "gtx1080")
    assert [each["kernel"] for each in forecast["kernels"]] == ["saxpy<float>", "mm"]
    assert [each["application"] for each in forecast["applications"]] == ["app"]
    assert main(["predict", "time", str(path), "--devices", "gtx1080", "--kernel", "mm"]) == 0
    assert "left out of the launches in host code: line 16: mm (n); line 17: mm (" in capsys.readouterr().err
    path.write_text(SOURCE.replace("-7 % 3", "n").replace("2.0f, N", "2.0f, n"))
    refusal = RUN.refusal(capsys, path)
    assert "not known of the launches in host code: line 14: saxpy<float> (n); line 16: mm (n)" in refusal
    arguments = ("--arg", "float:64", "--arg", "float:64", "--arg", "int=1")
    assert "1,024 x 16 work-items" in RUN.text(capsys, path, "--kernel", "mm", *arguments)


def test_launches_are_listed(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "app.cu"
    path.write_text(SOURCE)
    listed = RUN.text(capsys, path, "--launches")
    assert "app.cu:16: mm<<<grid, block, 3 * sizeof(int), 0>>>(x, y, n)" in listed
    assert "mm<<<dim3(1 << 2, 0x10)," in listed
    assert "  --kernel mm --grid 32,2 --block 32,8 --shared 12 --arg float:1024:uniform" in listed
    assert "  not known: n, unknown, steps" in listed
    assert RUN.answer(capsys, path, "--launches")[2]["grid"] is None
