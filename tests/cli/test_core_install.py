"""What works where no extra is installed: modules of extras cannot be imported here."""

from pathlib import Path

import pytest

from support.forked import Ran, run_each

ROOT = Path(__file__).parents[2]

EXTRAS = (
    *("pyarrow", "pandas", "scipy", "sklearn", "matplotlib", "joblib", "xgboost", "rustworkx", "numba"),
    *("jinja2", "pyopencl", "pynvml", "caliperreader", "networkx", "threadpoolctl", "fastapi", "uvicorn"),
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


WORKING = (
    "characterize examples/saxpy.toml",
    "predict examples/saxpy.toml --devices rtx4090 --json",
    "explain examples/saxpy.toml",
    "compare examples/saxpy.toml examples/saxpy.toml --fail-on missing",
    "compare seven-gpus xeon-to-v100",
    "models",
    "models gpu-clocks",
    "devices --catalogue",
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
    return dict(zip(lines, run_each([line.split() for line in lines], WITHOUT, ROOT), strict=True))


@pytest.mark.parametrize("line", WORKING)
def test_these_need_no_extra(ran: dict[str, Ran], line: str) -> None:
    assert ran[line].status == 0, ran[line].err
    assert ran[line].out


@pytest.mark.parametrize("line", LACKING)
def test_others_say_which_extra(ran: dict[str, Ran], line: str) -> None:
    assert ran[line].status == 2
    assert f"pip install 'crosscast[{LACKING[line]}]'" in ran[line].err.splitlines()[-1]
