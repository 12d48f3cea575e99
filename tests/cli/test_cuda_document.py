"""What the page on CUDA shows runs."""

import re
import shlex
from pathlib import Path

import pytest

from crosscast.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cuda.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.exists():
        pytest.skip("no checkout")
    return PAGE.read_text(encoding="utf-8")


def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for source in re.findall(r"```cuda\n(.*?)```", page, re.DOTALL):
        (tmp_path / source.split()[1]).write_text(source)
    commands = re.findall(r"^crosscast (.*)$", page, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0


def test_the_python_runs(page: str) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(text, names)
    assert (names["x"] == 2).all()  # type: ignore[attr-defined]


def test_options_of_the_table_are_taken(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        "template <int N> __global__ void k(int *o) { o[hipThreadIdx_x] = N + warpSize + __CUDA_ARCH__; }"
    )
    options = "--option=-use_fast_math --option=-fmad=false --option=-mwavefrontsize64 -D__CUDA_ARCH__=7"
    words = f"--kernel k<3> --grid 1 --block 64 --std c++20 --arg int:64 {options}"
    assert main(["characterize", str(tmp_path / "k.hip"), *words.split()]) == 0
