"""What is not needed is not imported: checked in a fresh interpreter."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "llvmlite",
    "rich",
    "matplotlib",
    "pyarrow",
    "cyclopts",
    "ziglang",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "pyopencl",
    "pynvml",
    "numba",
    "xgboost",
    "caliperreader",
    "hatchet",
    "rustworkx",
    "networkx",
)


COMMANDS = (
    "characterize",
    "choose configuration",
    "colocate",
    "corun profile",
    "embed",
    "evaluate relative",
    "measure",
    "predict time",
    "report",
    "reproduce johnston2018",
    "simulate policies",
    "train corun",
)


def modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_import_crosscast_brings_nothing_heavy() -> None:
    assert modules_after("import crosscast").isdisjoint(HEAVY)


def test_a_launch_needs_no_compiler() -> None:
    code = "import crosscast\ncrosscast.Launch(crosscast.Kernel.from_source('x', 'k'), (4,), (2,))"
    assert modules_after(code).isdisjoint(set(HEAVY) - {"numpy"})


@pytest.mark.parametrize("words", [["--help"], *([*name.split(), "--help"] for name in COMMANDS)])
def test_help_brings_no_engine(words: list[str]) -> None:
    loaded = modules_after(f"from crosscast.cli import main\nmain({words!r})")
    assert loaded.isdisjoint(set(HEAVY) - {"rich", "cyclopts"})
