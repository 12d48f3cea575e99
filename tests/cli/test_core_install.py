"""What works where no extra is installed: modules of extras cannot be imported here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
from crosscast.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        "characterize examples/saxpy.toml",
        "predict examples/saxpy.toml",
        "predict examples/saxpy.toml --devices rtx4090 --json",
        "explain examples/saxpy.toml",
        "compare examples/saxpy.toml examples/saxpy.toml --fail-on missing",
        "compare seven-gpus xeon-to-v100",
        "models",
        "models gpu-clocks",
        "devices --catalogue",
        "choose sample",
    ],
)
def test_these_need_no_extra(words: str) -> None:
    done = run(*words.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("predict bundled", "parquet"),
        ("compare bundled bundled", "parquet"),
        ("predict examples/saxpy.toml --html page.html", "report"),
        ("simulate policies examples/made-cluster.swf", "cluster"),
    ],
)
def test_others_say_which_extra(words: str, extra: str) -> None:
    done = run(*words.split())
    assert done.returncode == 2
    assert f"pip install 'crosscast[{extra}]'" in done.stderr.splitlines()[-1]
