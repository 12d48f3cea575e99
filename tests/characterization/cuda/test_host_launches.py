"""Launches in host code are found as far as its constants tell them."""

import json
from pathlib import Path

import pytest

from crosscast.characterization.cuda.compiler import preprocess
from crosscast.characterization.cuda.launches import HostLaunch, argument_texts, find_launches
from crosscast.characterization.frontend import parameters
from crosscast.kernel import Program
from support.commands import Command, Output

RUN = Command.of("characterize")

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


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(SOURCE.encode(), "cuda")


@pytest.fixture(scope="module")
def launches(program: Program) -> list[HostLaunch]:
    return find_launches(preprocess(program))


def test_constants_tell_sizes(launches: list[HostLaunch]) -> None:
    assert [(each.line, each.kernel, each.grid, each.block, each.shared) for each in launches] == [
        (14, "saxpy<float>", (8,), (128,), None),
        (16, "mm", (32, 2), (32, 8), 12),
        (17, "mm", None, (64,), None),
        (18, "mm", (4, 16), (64,), None),
    ]
    assert [each.unknown for each in launches] == [(), (), ("n",), ()]


def test_allocations_and_constants_tell_arguments(program: Program, launches: list[HostLaunch]) -> None:
    found = [argument_texts(each, parameters(program, each.kernel)) for each in launches]
    assert found == [
        ["float:1024:uniform", "float:2048:uniform", "float=2.0", "int=1024"],
        ["float:1024:uniform", "float:2048:uniform", None],
        ["float:1024:uniform", None, None],
        ["float:1024:uniform", "float:2048:uniform", "int=-1"],
    ]


def test_a_first_profile_needs_no_launch_file(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "app.cu"
    path.write_text(SOURCE)
    rows = [json.loads(line) for line in RUN.text(capsys, path, "--json").splitlines()]
    assert [(row["kernel"], row["launch"]["global_size"]) for row in rows] == [
        ("saxpy<float>", [1024]),
        ("mm", [256, 16]),
    ]
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
    assert "  --kernel mm --grid 32,2 --block 32,8 --shared 12 --arg float:1024:uniform" in listed
    assert "  not known: n, unknown, steps" in listed
    rows = RUN.answer(capsys, path, "--launches")
    assert rows[2]["grid"] is None
    assert rows[3]["unknown"] == []
