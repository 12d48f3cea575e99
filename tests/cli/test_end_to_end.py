"""The command with the real engine: the examples, and what a kernel can do wrong."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.cli import main
from support.commands import Output
from support.examples import one_in

ROOT = Path(__file__).parents[2]
Command = Callable[..., int]

SOURCE = """
kernel void copy(global int *a, global const int *b, int n) { a[get_global_id(0) + n] = b[get_global_id(0)]; }
kernel void split(global int *a) {
  if (get_local_id(0) < 2) barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = 1;
}
kernel void endless(global volatile int *a) { while (a[0] == 0) a[1]++; }
kernel void show(global float *a) { printf("%d: %.1f\\n", (int)get_global_id(0), a[get_global_id(0)]); }
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`crosscast characterize` with the given words, in a folder with a program."""
    monkeypatch.chdir(tmp_path)
    Path("k.cl").write_text(SOURCE)
    return lambda *words: main(["characterize", *map(str, words)])


@pytest.mark.parametrize("name", one_in(4, ["matmul", "vecadd", "reduce", "histogram"]))
def test_the_examples_run_within_bounds(name: str, capsys: Output) -> None:
    assert main(["characterize", str(ROOT / f"examples/{name}.toml"), "--check-bounds", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        row = json.loads(line)
        metrics = row["metrics"]
        assert metrics["total_memory_footprint"] <= metrics["total_reads"] + metrics["total_writes"]
        assert {"compile", "instrument", "run", "metrics"} <= set(row["timing_s"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kernel none --global 4", "the kernels there are: copy, split, endless, show"),
        ("--kernel copy --global 4 --arg int:4", "expected 3 arguments"),
        ("--kernel copy --global 4 --arg float:4 --arg int:4 --arg int=0", "argument 0 (int* a)"),
        ("--kernel copy --global 4 --arg int:4 --arg int:4 --arg float=0", "argument 2 (int n)"),
        ("--kernel copy --global 4 --arg int:4 --arg int:4 --arg int:4", "argument 2 (int n)"),
        ("--kernel copy --global 4 --arg int:4 --arg int=4 --arg int=0", "argument 1 (int* b)"),
        ("--kernel copy --global 4 --arg int:4 --arg local:4 --arg int=0", "argument 1 (int* b)"),
        (
            "--kernel copy --global 4 --arg int:4 --arg int:4 --arg int=1 --check-bounds",
            "by work-item 3 in line 2: byte offset 16 of buffer 'a'",
        ),
        ("--kernel copy --global 4 --arg null --arg int:4 --arg int=0 --check-bounds", "copy: "),
        ("--kernel copy --global 4 --arg int:4 --arg int:4 --arg int=1000000000", "copy: "),
        ("--kernel split --global 4 --local 4 --arg int:4", "barrier was not reached by all work-items"),
        ("--kernel endless --global 4 --arg int:4 --timeout 0.3", "did not end within 0.3 s"),
        ("--kernel copy --global 4 --memory-limit 1 --arg int:4 --arg int:4 --arg int=0", "memory limit"),
        ("--global 4", "found copy, split, endless, show"),
    ],
)
def test_each_mistake_is_one_sentence(command: Command, capsys: Output, words: str, message: str) -> None:
    before = sorted(Path().iterdir())
    assert command("k.cl", *words.split(), "--parquet", "p.parquet") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("crosscast: ")
    assert output.err.count("\n") == 1
    assert message in output.err
    assert sorted(Path().iterdir()) == before


def test_interruption_stops_the_kernel_and_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text(SOURCE)
    (tmp_path / "k.toml").write_text(
        'source = "k.cl"\nkernel = "show"\nglobal = 1\n[[arg]]\ntype = "float"\nlength = 2\n'
        '[[launch]]\n[[launch]]\nkernel = "wait"\n'
    )
    with (tmp_path / "k.cl").open("a") as program:
        program.write("kernel void wait(global volatile float *a) { while (a[0] == 0) a[1] += 1; }\n")
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
