"""The command with the real engine: the examples, and what a kernel can do wrong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crosscast.cli import main
from support.commands import Output
from support.examples import one_in

ROOT = Path(__file__).parents[2]

SOURCE = """
kernel void show(global float *a) { printf("%d: %.1f\\n", (int)get_global_id(0), a[get_global_id(0)]); }
kernel void wait(global volatile float *a) { while (a[0] == 0) a[1] += 1; }
"""


@pytest.mark.parametrize("name", one_in(4, ["matmul", "vecadd", "reduce", "histogram"]))
def test_the_examples_run_within_bounds(name: str, capsys: Output) -> None:
    assert main(["characterize", str(ROOT / f"examples/{name}.toml"), "--check-bounds", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        row = json.loads(line)
        metrics = row["metrics"]
        assert metrics["total_memory_footprint"] <= metrics["total_reads"] + metrics["total_writes"]
        assert {"compile", "instrument", "run", "metrics"} <= set(row["timing_s"])


def test_interruption_stops_the_kernel_and_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text(SOURCE)
    (tmp_path / "k.toml").write_text(
        'source = "k.cl"\nkernel = "show"\nglobal = 1\n[[arg]]\ntype = "float"\nlength = 2\n'
        '[[launch]]\n[[launch]]\nkernel = "wait"\n'
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "crosscast", "characterize", "k.toml", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    first = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGINT)
    rest, errors = child.communicate(timeout=30)
    assert first["kernel"] == "show"
    assert (rest, errors, child.returncode) == ("", "crosscast: interrupted\n", 130)
