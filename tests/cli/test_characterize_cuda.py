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
