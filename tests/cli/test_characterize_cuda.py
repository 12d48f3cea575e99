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
    ("words", "message"),
    [
        (("--grid", "4"), "--block is missing, expected grid and block, such as --grid 4096 --block 256"),
        (("--block", "4"), "--grid is missing"),
        (("--global", "4"), "--global is not for CUDA (C++17), expected --grid, --block, --shared"),
        (("--grid", "4", "--block", "4", "--local", "4"), "--local is not for CUDA"),
        (("--grid", "4", "--block", "4", "--offset", "4"), "--offset is not for CUDA"),
        (("--grid", "4", "--block", "0"), "block must be 1 to 3 numbers of at least 1, found (0,)"),
        (("--grid", "4", "--block", "2048"), "a block has at most 1024 threads"),
        (("--grid", "4", "--block", "4", "--shared", "-1"), "shared must be at least 0 bytes"),
        (
            ("--grid", "4", "--block", "4", "--std", "1.2"),
            "C++ standard must be one of c++03, c++11, c++14, c++17, c++20",
        ),
        (
            ("--grid", "4", "--block", "4", "--option=-cl-mad-enable"),
            "option '-cl-mad-enable' is not accepted",
        ),
        (("--grid", "x", "--block", "4"), "--grid: expected 1 to 3 whole numbers"),
    ],
)
def test_what_does_not_fit_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["characterize", str(EXAMPLE), "--kernel", "saxpy<float>", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--grid", "--block", "--shared"])
def test_opencl_has_no_grids(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cl").write_text("kernel void k(global int *a) { a[0] = 1; }")
    assert main(["characterize", str(tmp_path / "k.cl"), flag, "4"]) == 2
    assert f"{flag} is not for OpenCL C 1.2, expected --global" in capsys.readouterr().err
