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


HELP = [[*name.split(), "--help"] for name in COMMANDS]


def modules_after(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import crosscast", ()),
        ("import crosscast as c; c.Launch(c.Kernel.from_source('x', 'k'), (4,), (2,))", ("numpy",)),
        ("from crosscast.cli import main; assert not main([])", ()),
        ("from crosscast.cli import main; assert not main(['--help']) and not main(['--version'])", ()),
        (f"from crosscast.cli import main\nfor line in {HELP}: assert not main(line)", ("rich", "cyclopts")),
    ],
)
def test_nothing_heavy_is_imported_that_is_not_needed(code: str, needed: tuple[str, ...]) -> None:
    assert modules_after(code).isdisjoint(set(HEAVY) - set(needed))


def test_a_simulation_brings_no_other_room() -> None:
    path = str(Path(__file__).parents[1] / "examples/made-cluster.swf")
    loaded = modules_after(
        f"from crosscast.cli import main\nmain(['simulate', 'policies', {path!r}, '--json'])"
    )
    loaded = {name for name in loaded if name.startswith("crosscast")}
    assert len(loaded) <= 50
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms.isdisjoint({"characterization", "decide", "measure", "prediction", "tuning"})
    # Intervals over weeks, and where work runs, are as of all evaluations; their modules need nothing else.
    evaluation = {name for name in loaded if name.startswith("crosscast.evaluation.")}
    assert evaluation == {"crosscast.evaluation.executor", "crosscast.evaluation.resampling"}
