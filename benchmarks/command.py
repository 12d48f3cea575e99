"""Wall time of the whole command on the sum of two vectors, what each launch of a file costs, and importing.

``python -m benchmarks.command`` prints medians with the compile cache cold and warm, and whether they meet
the project's figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command_line import crosscast_command, environment
from benchmarks.table import Verdict, milliseconds, text_table

_LAUNCH = Path(__file__).with_name("vecadd.toml")
_COMMAND_S = {"cold": 1.2, "warm": 0.45}
_PREPARE_S = 0.4
_LAUNCHES = 300
_LAUNCH_S = 0.005
_IMPORT_S = 0.150


@dataclass(frozen=True)
class Timed:
    """One run of a command."""

    wall_s: float
    cpu_s: float  # Of it and all processes that it started
    stdout: str


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as scratch:
        warm_cache = Path(scratch) / "warm"
        _characterize(warm_cache)
        cold: list[dict[str, float]] = []
        warm: list[dict[str, float]] = []
        for index in range(options.repeat):
            cold.append(_characterize(Path(scratch) / f"cold-{index}"))
            warm.append(_characterize(warm_cache))
        launch_s = min(_launch(Path(scratch), warm_cache) for _ in range(3))
    bare, imported = _import_times(options.repeat)
    verdicts = [
        *_judge_command("cold", cold),
        *_judge_command("warm", warm),
        Verdict(
            f"CPU time of a launch beyond its run <= {1e3 * _LAUNCH_S:g} ms, in a file of {_LAUNCHES}",
            f"{1e3 * launch_s:.1f} ms",
            launch_s <= _LAUNCH_S,
        ),
        _judge(
            "import crosscast <= {limit} ms over bare Python",
            statistics.median(imported) - statistics.median(bare),
            _IMPORT_S,
        ),
    ]
    print(f"load: {os.getloadavg()[0]:.2f}, repeats: {options.repeat}; times are minimum / median in ms\n")
    print(_table(cold, warm), end="\n\n")
    print(
        text_table(
            ["python -c", "ms"], [["pass", milliseconds(bare)], ["import crosscast", milliseconds(imported)]]
        )
    )
    print("", *verdicts, sep="\n")
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command", description=__doc__)
    parser.add_argument("--repeat", type=int, default=7, help="repeats of each measurement (default: 7)")
    return parser.parse_args()


def _characterize(cache: Path) -> dict[str, float]:
    """Run the command with its cache in a folder; seconds of its phases and of all of it (``whole``)."""
    timed = _run(
        crosscast_command("characterize", str(_LAUNCH), "--json"), environment(XDG_CACHE_HOME=str(cache))
    )
    timing: dict[str, float] = json.loads(timed.stdout)["timing_s"]
    return {**timing, "whole": timed.wall_s}


def _launch(folder: Path, cache: Path) -> float:
    """CPU seconds of one of many small launches of a program, without its run and metrics."""
    argument = '[[arg]]\ntype = "float"\nlength = 1024\n'
    head = f'source = "{_LAUNCH.parent / "kernels" / "vecadd.cl"}"\nkernel = "vecadd"\nglobal = 1024\n'
    beyond: list[float] = []
    for count in (1, _LAUNCHES):
        path = folder / "launches.toml"
        path.write_text(head + "local = 64\n" + 3 * argument + count * "[[launch]]\n", encoding="utf-8")
        ran = _run(
            crosscast_command("characterize", str(path), "--json"), environment(XDG_CACHE_HOME=str(cache))
        )
        timings: list[dict[str, float]] = [json.loads(line)["timing_s"] for line in ran.stdout.splitlines()]
        beyond.append(ran.cpu_s - sum(timing["run_cpu"] + timing["metrics_cpu"] for timing in timings))
    return (beyond[1] - beyond[0]) / (_LAUNCHES - 1)


def _import_times(repeat: int) -> tuple[list[float], list[float]]:
    """Seconds of bare Python and of importing the package, measured in turns."""
    bare, imported = [], []
    _run([sys.executable, "-c", "import crosscast"], environment())
    for _ in range(repeat):
        bare.append(_run([sys.executable, "-c", "pass"], environment()).wall_s)
        imported.append(_run([sys.executable, "-c", "import crosscast"], environment()).wall_s)
    return bare, imported


def _run(command: Sequence[str], variables: Mapping[str, str]) -> Timed:
    """Run a command that must succeed."""
    start, cpu = time.perf_counter(), _cpu_of_children()
    done = subprocess.run(command, env=dict(variables), capture_output=True, text=True, check=False)
    wall_s, cpu_s = time.perf_counter() - start, _cpu_of_children() - cpu
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return Timed(wall_s, cpu_s, done.stdout)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _judge_command(cache: str, runs: Sequence[Mapping[str, float]]) -> list[Verdict]:
    whole = statistics.median(run["whole"] for run in runs)
    prepare = statistics.median(run["compile"] + run["instrument"] for run in runs)
    return [
        _judge(f"whole command <= {{limit}} ms, {cache} cache", whole, _COMMAND_S[cache]),
        _judge(f"compile and instrument <= {{limit}} ms, {cache} cache", prepare, _PREPARE_S),
    ]


def _judge(title: str, found_s: float, limit_s: float) -> Verdict:
    return Verdict(
        title.format(limit=f"{1e3 * limit_s:g}"), f"median {1e3 * found_s:.0f} ms", found_s <= limit_s
    )


def _table(cold: Sequence[Mapping[str, float]], warm: Sequence[Mapping[str, float]]) -> str:
    head = ["cache", "whole", "compile", "instrument", "run", "metrics"]
    body = [
        [label, *(milliseconds([run[phase] for run in runs]) for phase in head[1:])]
        for label, runs in (("cold", cold), ("warm", warm))
    ]
    return text_table(head, body)


if __name__ == "__main__":
    sys.exit(main())
