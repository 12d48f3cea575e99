"""`crosscast characterize` on CUDA kernels: options of grids, and those that are OpenCL's."""

import json
from pathlib import Path

import pytest

from crosscast.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
ARGUMENTS = ("--arg", "int=1024", "--arg", "float=2", "--arg", "float:1024:uniform", "--arg", "float:1024")


def test_a_kernel_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--kernel", "saxpy<float>", "--grid", "4", "--block", "256", "--json")
    assert main(["characterize", str(EXAMPLE), *words, *ARGUMENTS]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["program"]["form"] == "cuda"
    assert profile["metrics"]["work_items"] == 1024


def test_the_output_says_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["characterize", str(EXAMPLE), "--grid", "4", "--block", "256", "--all", *ARGUMENTS]) == 0
    assert "CUDA, c++17" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("__global__ void k(__nv_bfloat16 *x) {}", "none that can be compiled (k: "),
        ("__device__ int f() { return 1; }", "none\n"),
        ("template <int N> __global__ void k(int *x) {}", "none but templates"),
    ],
)
def test_it_says_why_a_program_has_no_kernel(
    source: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.cu"
    path.write_text(f"#include <cuda_bf16.h>\n{source}\n")
    assert main(["characterize", str(path), "--grid", "1", "--block", "1"]) == 2
    error = capsys.readouterr().err
    assert f"expected one kernel in {path}, found {found}" in error
    assert ("headers that were not found: cuda_bf16.h" in error) == found.startswith("none that")
