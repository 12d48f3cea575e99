"""Public programs under ``crosscast capture``: what each showed, as a table (benchmarks/wild.md).

``python -m benchmarks.wild_capture --results wild.jsonl`` runs each program of `wild_programs` that is
installed on PoCL, without and with ``crosscast capture --check``. It compares their output and exit code, the
number of launches with that of PoCL's own trace, and the memory that a launch of each class leaves when it is
run again with what the device left there. A program that is in the results already is not run again;
``--table benchmarks/wild.md`` writes the table of the results.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.wild_programs import KNOWN, Program, programs
from crosscast.characterization.run import Options, characterize_launch
from crosscast.kernel import Launch
from crosscast.profile import Profile
from crosscast.tracing.summary import Trace, replayed, summary_of

_ASKED_PROGRAMS = 60
_ASKED_SHARE = 0.97
_REPLAY_S = 60.0
_MOST_WALL = 8  # Times the limit of CPU time: other programs may run, too
_NDRANGE = re.compile(rb"ndrange_kernel \| queued")


@dataclass
class Row:
    """What one program showed."""

    name: str
    group: str
    runs: bool  # On PoCL at all, without the layer
    why: str = ""  # It does not, or what went wrong
    same: bool = False  # Output and exit code with and without the layer
    launches: int = 0
    launched: int = 0  # By PoCL's count
    kernels: int = 0
    classes: int = 0
    equal: int = 0
    rounding: int = 0
    different: list[str] = field(default_factory=list)  # Kernels
    refused: dict[str, int] = field(default_factory=dict)
    without: int = 0  # Classes that write nothing
    doubts: list[str] = field(default_factory=list)
    ratio: float = 0.0  # Wall time with the layer over that without

    @property
    def accounted(self) -> bool:
        """Whether each launch is in the trace."""
        return self.launches == self.launched

    @property
    def good(self) -> bool:
        """Whether all is as it should be."""
        wrong = (self.different or self.refused) and self.name not in KNOWN
        return self.same and self.accounted and not wrong and not self.why


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("wild.jsonl"), help="a line a program")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--table", type=Path, help="write the table of the results")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a CPU for a run of a program")
    parser.add_argument("--ratios", action="store_true", help="compare wall times, on a quiet machine")
    parser.add_argument("--try-one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.try_one:
        program = next(each for each in programs() if each.name == given.try_one)
        print(json.dumps(asdict(_tried(program, given.limit, ratios=given.ratios))))
        return 0
    known = _read(given.results)
    wanted = [each for each in programs() if given.only in each.name and each.name not in known]
    for program in wanted:
        row = _apart(program, given.limit, given.ratios)
        with given.results.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")
        print(_line(row), flush=True)
    rows = list(_read(given.results).values())
    text, met = _table(rows)
    if given.table:
        given.table.write_text(text)
    print("\n\n".join(text.split("\n\n")[2:4]))
    return int(not met)


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    rows = (Row(**json.loads(line)) for line in path.read_text().splitlines())
    return {row.name: row for row in rows}


def _apart(program: Program, limit: int, ratios: bool) -> Row:
    """Try a program in a process of its own: a replay that crashes ends no other."""
    command = [sys.executable, "-m", "benchmarks.wild_capture", "--try-one", program.name]
    options = ["--limit", str(limit), *(["--ratios"] if ratios else [])]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, errors="replace")
    try:
        return Row(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        last = (done.stderr.splitlines() or [""])[-1]
        return Row(program.name, program.group, True, f"the replay ended with {done.returncode}: {last}")


def _tried(program: Program, limit: int, *, ratios: bool) -> Row:
    with tempfile.TemporaryDirectory(prefix="crosscast-") as folder:
        place = Path(folder)
        row = Row(program.name, program.group, True)
        if not program.installed():
            return Row(program.name, program.group, False, "not installed")
        # The first run fills PoCL's cache of compiled kernels, and counts.
        counted = place / "pocl.log"
        first = _run(program, place, limit, POCL_TRACING="text", POCL_TRACING_OPT=str(counted))
        if first is None or first.code != program.code:
            row.runs = False
            row.why = "no end in time" if first is None else f"exit code {first.code}: {first.last}"
            return row
        row.launched = len(_NDRANGE.findall(counted.read_bytes())) if counted.exists() else 0
        if not row.launched:
            row.runs, row.why = False, "it launches no kernel there"
            return row
        trace = place / "trace"
        under = (
            sys.executable,
            "-m",
            "crosscast",
            "capture",
            "--check",
            "--max-seconds",
            "600",
            "--out",
            str(trace),
            "--",
        )
        recorded = _run(program, place, 3 * limit, *under)
        if recorded is None:
            row.why = "no end in time with the layer"
            return row
        row.same = (recorded.code, recorded.text) == (first.code, first.text)
        if ratios or not row.same:
            plain = _run(program, place, limit)
            if plain is None:
                row.why = "no end in time"
                return row
            row.same = recorded.code == plain.code and _agree(recorded.text, plain.text, first.text)
            row.ratio = recorded.seconds / plain.seconds if ratios else 0.0
        if not any(trace.glob("trace-*.jsonl")):
            row.why = "no OpenCL was recorded"
            return row
        _replay(row, Trace(trace))
        return row


@dataclass(frozen=True)
class _Done:
    code: int
    text: str
    last: str  # Line of its errors
    seconds: float


def _run(program: Program, place: Path, limit: int, *under: str, **environment: str) -> _Done | None:
    """Run a program in a folder of its own; none if it does not end."""
    folder = place / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            [*under, *program.command],
            cwd=folder,
            env={**os.environ, **program.environment, "PYOPENCL_NO_CACHE": "1", **environment},
            capture_output=True,
            timeout=_MOST_WALL * limit,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    seconds = time.perf_counter() - begun
    made = [path for path in sorted(folder.rglob("*")) if path.suffix in program.compared]
    text = done.stdout.decode(errors="replace") + "".join(str(hash(path.read_bytes())) for path in made)
    errors = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return _Done(done.returncode, text, (errors or [""])[-1][:200], seconds)


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)


def _agree(text: str, plain: str, again: str) -> bool:
    """Whether a text is as without the layer; where two runs without it differ, as times do, it may, too."""
    if text == plain:
        return True
    rows = [[_NUMBER.split(each), _NUMBER.findall(each)] for each in (text, plain, again)]
    words = [words for words, _ in rows]
    numbers = [numbers for _, numbers in rows]
    if words[1] != words[2] or len(numbers[1]) != len(numbers[2]):
        return plain != again  # its output is never the same
    same = [one == two for one, two in zip(numbers[1], numbers[2], strict=True)]
    return words[0] == words[1] and all(
        here == there for fixed, here, there in zip(same, numbers[0], numbers[1], strict=True) if fixed
    )


def _replay(row: Row, trace: Trace) -> None:
    summary = summary_of(trace)
    row.launches, row.classes = summary.launches, len(summary.classes)
    row.kernels = len({each.kernel for each in summary.classes})
    row.doubts = list(summary.doubts)

    def characterized(launch: Launch, number: int) -> Profile:
        return characterize_launch(launch, invocation=number, options=Options(timeout_s=_REPLAY_S))

    refused: Counter[str] = Counter()
    for each, found in zip(summary.classes, replayed(summary, characterized), strict=True):
        if found.profile is None:
            refused[_first(found.refused)] += 1
        elif found.comparison is None or found.comparison.verdict == "not compared":
            row.without += 1
        elif found.comparison.verdict == "different":
            name = f"{each.kernel} {each.size_label}"
            row.different.append(
                f"{name}: {found.comparison.differing} of {found.comparison.values}, "
                f"{found.comparison.largest:.1e}"
            )
        elif found.comparison.verdict == "equal":
            row.equal += 1
        else:
            row.rounding += 1
    row.refused = dict(refused)


def _first(text: str) -> str:
    """A refusal without the folder of the trace, which is gone."""
    return re.sub(r"\S*/(programs|memory)/", "", text)


def _line(row: Row) -> str:
    if not row.runs or row.why:
        return f"{row.name}: {row.why}"
    found = (
        f"{'good' if row.good else 'BAD'}, same {row.same}, {row.launches}/{row.launched} launches",
        f"{row.classes} classes: {row.equal} equal, {row.rounding} rounding, {row.without} without",
        f"different {row.different}, refused {row.refused}, doubts {row.doubts}, wall {row.ratio:.2f}",
    )
    return f"{row.name}: {'; '.join(found)}"


def _table(rows: list[Row]) -> tuple[str, bool]:
    """The page, and whether what is asked is reached."""
    run = [row for row in rows if row.runs]
    good = [row for row in run if row.good]
    share = len(good) / max(1, len(run))
    met = len(run) >= _ASKED_PROGRAMS and share >= _ASKED_SHARE
    ratios = [row.ratio for row in run if row.ratio]
    counts = {
        what: sum(each)
        for what, each in {
            "launches": (row.launches for row in run),
            "classes": (row.classes for row in run),
            "equal": (row.equal for row in run),
            "within rounding": (row.rounding for row in run),
            "different": (len(row.different) for row in run),
            "refused": (sum(row.refused.values()) for row in run),
            "with nothing to compare": (row.without for row in run),
        }.items()
    }
    head = f"""# Public programs under `crosscast capture`

Made by `python -m benchmarks.wild_capture --results wild.jsonl --table benchmarks/wild.md`; how each program
is obtained is in `benchmarks/wild_programs.py`.

{len(run)} programs run on PoCL (asked {_ASKED_PROGRAMS}). In {len(good)} of them ({share:.1%}, asked
{_ASKED_SHARE:.0%}) output and exit code are the same, each launch that PoCL counts is recorded, and a launch
of each class leaves the same memory when it is run again; a reason in the program why not is named below.

{"; ".join(f"{count:,} {what}" for what, count in counts.items())}.
"""
    if ratios:
        head += (
            "\nWall time with `--check` over that without, with the start of the command: geometric mean "
            f"{statistics.geometric_mean(ratios):.2f}, worst {max(ratios):.2f}.\n"
        )
    columns = ["program", "package", "output", *counts, "wall"]
    columns[9] = "nothing"
    head += "\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"
    lines = []
    for row in sorted(run, key=lambda each: (each.group, each.name)):
        launches = f"{row.launches}" if row.accounted else f"{row.launches} of {row.launched}"
        cells = [
            *(row.name, row.group, "same" if row.same else "differs", launches, row.classes, row.equal),
            *(row.rounding, len(row.different), sum(row.refused.values()), row.without),
            f"{row.ratio:.2f}" if row.ratio else "",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    parts = [head + "\n".join(lines)]
    bad = [row for row in run if not row.good or row.different or row.refused]
    if bad:
        parts.append("\n## What went wrong\n\n" + "\n".join(_complaints(row) for row in bad))
    absent = [f"- {row.name}: {row.why}" for row in rows if not row.runs]
    if absent:
        parts.append("\n## Programs that fail or launch no kernel without the layer\n\n" + "\n".join(absent))
    return "\n".join(parts) + "\n", met


def _complaints(row: Row) -> str:
    found = [KNOWN[row.name]] if row.name in KNOWN else []
    found += [row.why] if row.why else []
    found += [f"{what} ({count} classes)" for what, count in row.refused.items()]
    found += [f"{each} values differ" for each in row.different[:3]]
    if not row.accounted:
        found.append(f"{row.launches} of {row.launched} launches recorded")
    if not row.same:
        found.append("output or exit code differs")
    return f"- {row.name}: " + "; ".join(found)


if __name__ == "__main__":
    sys.exit(main())
