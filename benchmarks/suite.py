"""What it takes to characterize the suite, and to build a dataset of it.

``python -m benchmarks.suite`` prints the time of characterizing every application at tiny and small, and
of ``crosscast dataset build`` at tiny on one device, all with empty compile caches; with ``--large`` also
the peak memory of characterizing each application at large. It says whether they meet the project's
figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command_line import crosscast_command, environment, measure_peak, memory_limit
from benchmarks.table import Verdict, number, text_table
from crosscast.suite.application import application, names, working_set
from crosscast.suite.profiles import profiles_of

_CHARACTERIZE_S = 60.0
_BUILD_S = 180.0


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    if options.profiles:
        size, *applications = options.profiles
        print(json.dumps(_profiles(size, applications)))
        return 0
    print(f"load: {os.getloadavg()[0]:.2f}; {os.cpu_count()} CPUs; {len(names())} applications\n")
    verdicts = [_characterize(), _build(options.device)]
    if options.large:
        verdicts.append(_memory())
    print(*verdicts, sep="\n")
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    parser.add_argument("--device", default="pocl:0", help="device of the build (default: pocl:0)")
    parser.add_argument("--large", action="store_true", help="also characterize at large (minutes)")
    parser.add_argument(
        "--profiles", nargs="+", metavar=("SIZE", "APPLICATION"), help="only characterize, in this process"
    )
    return parser.parse_args()


def _characterize() -> Verdict:
    """Time of each application at tiny and small, in one process a size."""
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as cache:
        start = time.perf_counter()
        found = {size: json.loads(_run(_command(size, names()), cache)) for size in ("tiny", "small")}
        whole = time.perf_counter() - start
    rows = [[name, *(text for size in found.values() for text in _cells(size[name]))] for name in names()]
    print(text_table(["application", "tiny: launches", "s", "small: launches", "s"], rows), end="\n\n")
    title = f"suite characterized at tiny and small <= {_CHARACTERIZE_S:g} s"
    return Verdict(title, f"{whole:.1f} s, both processes whole", whole <= _CHARACTERIZE_S)


def _cells(measured: dict[str, Any]) -> list[str]:
    return [str(measured["profiles"]), number(measured["seconds"])]


def _build(device: str) -> Verdict:
    """Wall time of the command that builds the dataset."""
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as scratch:
        command = crosscast_command(
            "dataset", "build", "--out", str(Path(scratch) / "out"), "--sizes", "tiny", "--devices", device,
            "--json",
        )  # fmt: skip
        start = time.perf_counter()
        output = _run(command, scratch)
        whole = time.perf_counter() - start
    described = json.loads(output)
    cells, records = described["cells"], described["records"]
    title = f"dataset build, all applications at tiny on {device} <= {_BUILD_S:g} s"
    return Verdict(title, f"{whole:.1f} s; {cells} cells, {records:,} records", whole <= _BUILD_S)


def _memory() -> Verdict:
    """Peak memory of each application at large."""
    rows, shares = [], []
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as cache:
        for name in names():
            peak = measure_peak(_command("large", (name,)), _environment(cache))
            measured = json.loads(peak.stdout)[name]
            share = peak.nbytes / memory_limit(measured["nbytes"])
            shares.append((share, name))
            sizes = (measured["nbytes"], peak.nbytes)
            rows.append(
                [name, *_cells(measured), *(number(size / 2**20, 0) for size in sizes), number(share)]
            )
    head = ["application, large", "launches", "s", "buffers MiB", "peak MiB", "share of limit"]
    print(text_table(head, rows), end="\n\n")
    worst, name = max(shares)
    return Verdict(
        "peak memory at large <= the bound of characterize (share)", f"{worst:.2f} ({name})", worst <= 1
    )


def _command(size: str, applications: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "benchmarks.suite", "--profiles", size, *applications]


def _profiles(size: str, applications: Sequence[str]) -> dict[str, dict[str, float]]:
    """Seconds that the profiles of each application take here, their number, and bytes of its buffers."""
    found = {}
    for name in applications:
        kind = application(name)
        start = time.perf_counter()
        problem = kind(kind.fit(working_set(size)), 0)
        profiles = profiles_of(problem, size)
        seconds = time.perf_counter() - start
        found[name] = {"seconds": seconds, "profiles": len(profiles), "nbytes": problem.nbytes}
    return found


def _environment(cache: str) -> dict[str, str]:
    """An environment whose compile caches are in a folder."""
    return environment(XDG_CACHE_HOME=cache, POCL_CACHE_DIR=str(Path(cache) / "pocl"))


def _run(command: list[str], cache: str) -> str:
    """Standard output of a command, which must succeed."""
    done = subprocess.run(command, env=_environment(cache), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}: {last}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
