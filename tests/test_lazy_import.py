"""What is not needed is not imported: checked in a fresh interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "numpy llvmlite rich matplotlib pyarrow cyclopts ziglang scipy sklearn threadpoolctl pyopencl pynvml "
    "cuda numba xgboost caliperreader hatchet rustworkx networkx fastapi uvicorn prometheus_client"
).split()
COMMANDS = (
    "characterize, choose configuration, colocate, corun profile, embed, evaluate relative, measure, "
    "predict time, report, serve, reproduce johnston2018, simulate policies, train corun"
).split(", ")


def modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_import_crosscast_brings_nothing_heavy() -> None:
    assert modules_after("import crosscast").isdisjoint(HEAVY)


def test_a_launch_needs_no_compiler() -> None:
    code = "import crosscast\ncrosscast.Launch(crosscast.Kernel.from_source('x', 'k'), (4,), (2,))"
    assert modules_after(code).isdisjoint(set(HEAVY) - {"numpy"})


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"]])
def test_the_list_of_commands_needs_no_parser(words: list[str]) -> None:
    loaded = modules_after(f"from crosscast.cli import main\nassert main({words!r}) == 0")
    assert loaded.isdisjoint(HEAVY)


def test_help_brings_no_engine() -> None:
    lines = [[*name.split(), "--help"] for name in COMMANDS]
    loaded = modules_after(f"from crosscast.cli import main\nfor line in {lines}: assert main(line) == 0")
    assert loaded.isdisjoint(set(HEAVY) - {"rich", "cyclopts"})


def test_a_simulation_brings_no_other_room() -> None:
    path = str(Path(__file__).parents[1] / "examples/made-cluster.swf")
    code = f"from crosscast.cli import main\nmain(['simulate', 'policies', {path!r}, '--json'])"
    script = (
        f"import sys\n{code}\nprint(*(n for n in sys.modules if n.startswith('crosscast')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stderr.splitlines()[-1].split()
    assert len(loaded) <= 50
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms.isdisjoint({"characterization", "decide", "measure", "prediction", "tuning"})
    # Intervals over weeks, and where work runs, are as of all evaluations; their modules need nothing else.
    assert {name for name in loaded if name.startswith("crosscast.evaluation.")} == {
        "crosscast.evaluation.executor",
        "crosscast.evaluation.resampling",
    }
