"""What works where no extra is installed: modules of extras cannot be imported here."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

EXTRAS = (
    *("pyarrow", "pandas", "scipy", "sklearn", "matplotlib", "joblib", "xgboost", "rustworkx", "numba"),
    *("jinja2", "pyopencl", "pynvml", "caliperreader", "networkx", "threadpoolctl", "fastapi", "uvicorn"),
    "cuda",
)
WITHOUT = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
# Imported once for all lines.
import crosscast.api, crosscast.characterization.run, crosscast.commands.predict
"""

_RUN = """
import json, os, sys, tempfile
from crosscast.cli import main

def ran(words, files):
    child = os.fork()
    if not child:
        for number, file in enumerate(files, start=1):
            os.dup2(file.fileno(), number)
        status = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read())
    return [status, *texts]

for words in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        print(json.dumps(ran(words, [out, err])), flush=True)
"""


class Ran(NamedTuple):
    """How a command line ended."""

    status: int
    out: str
    err: str


def run_each(lines: Sequence[Sequence[str]]) -> list[Ran]:
    """Run command lines one after another, each in a fork of one fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}\n{_RUN}"],
        cwd=ROOT,
        input=json.dumps([list(words) for words in lines]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [Ran(*json.loads(line)) for line in done.stdout.splitlines()]


WORKING = (
    "characterize examples/saxpy.toml",
    "predict examples/saxpy.toml --devices rtx4090 --json",
    "explain examples/saxpy.toml",
    "compare examples/saxpy.toml examples/saxpy.toml --fail-on missing",
    "compare seven-gpus xeon-to-v100",
    "models",
    "models gpu-clocks",
    "devices --catalogue",
    "doctor",
    "choose sample",
)
LACKING = {
    "predict bundled": "parquet",
    "compare bundled bundled": "parquet",
    "predict examples/saxpy.toml --html page.html": "report",
    "simulate policies examples/made-cluster.swf": "cluster",
}


@pytest.fixture(scope="module")
def ran() -> dict[str, Ran]:
    lines = [*WORKING, *LACKING]
    return dict(zip(lines, run_each([line.split() for line in lines]), strict=True))


@pytest.mark.parametrize("line", WORKING)
def test_these_need_no_extra(ran: dict[str, Ran], line: str) -> None:
    assert ran[line].status == 0, ran[line].err
    assert ran[line].out


@pytest.mark.parametrize("line", LACKING)
def test_others_say_which_extra(ran: dict[str, Ran], line: str) -> None:
    assert ran[line].status == 2
    assert f"pip install 'crosscast[{LACKING[line]}]'" in ran[line].err.splitlines()[-1]
