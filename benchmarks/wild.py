"""Public kernels with synthesized launches: profiled, and their outputs compared with PoCL's.

``python -m benchmarks.wild`` takes the kernels of Cummins et al. 2017 (GPL-3, not part of this project) from
``$CROSSCAST_DATA``, or all ``.cl`` files of a folder. A launch is made as CLDrive makes it: buffers of random
elements, numbers of one size, local buffers; smaller numbers and larger buffers where a kernel leaves its
memory otherwise. The figure is the share of kernels with a profile among those that PoCL builds and runs.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import crosscast
from benchmarks.native_runs import NativeError, NativeRuns
from crosscast.characterization import frontend
from crosscast.characterization.synthesis import Shape, characterize_synthesized, synthesize
from crosscast.errors import CrosscastError, KernelFault
from crosscast.kernel import Kernel, Launch, Program

_ASKED = 0.995
_TIMEOUT_S = 20.0
_TOLERANCE = 2e-3

_SHAPES = [
    Shape(*shape)
    for shape in (
        *((32, 1 << 16, 64), (8, 1 << 16, 64), (16, 1 << 20, 256)),
        *((2, 1 << 16, 64), (1, 1 << 16, 16), (1, 1 << 16, 4)),
    )
]


def sources(folder: Path | None) -> Iterator[tuple[str, Program]]:
    """Programs by name."""
    if folder is not None:
        for path in sorted(folder.rglob("*.cl")):
            yield str(path.relative_to(folder)), Program.from_file(path)
        return
    root = Path(os.environ.get("CROSSCAST_DATA", "data"))
    with gzip.open(root / "device_mapping" / "cgo17_sources.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            yield row["benchmark"], Program(row["src"].encode(), "opencl-c", standard="1.2")


@dataclass(frozen=True)
class Outcome:
    """What came of one kernel."""

    kind: str
    detail: str = ""
    native: bool = True  # PoCL builds and runs it
    profile: bool = True


def try_kernel(kernel: Kernel, pocl: NativeRuns) -> Outcome:
    """Characterize a kernel in the first launch that stays inside its memory, and compare outputs."""
    try:
        frontend.load_kernel(kernel)
    except CrosscastError as error:
        return Outcome("refused", str(error), profile=False)
    last = ""
    for shape in _SHAPES:
        try:
            characterize_synthesized(kernel, [shape], _TIMEOUT_S)
            launch = synthesize(kernel, shape)
            crosscast.characterize(launch, timeout_s=_TIMEOUT_S)
        except KernelFault as error:
            last = str(error)
            continue
        except CrosscastError as error:
            if "can be made up" in str(error):
                return Outcome("no launch", str(error), native=False, profile=False)
            return _natively(Outcome("refused", str(error), profile=False), kernel, pocl)
        except Exception:  # noqa: BLE001 - a traceback is what this looks for
            return Outcome("traceback", traceback.format_exc(limit=-3), profile=False)
        return _compare(launch, functools.partial(synthesize, kernel, shape), pocl)
    return Outcome("no launch", last, native=False, profile=False)


def _natively(outcome: Outcome, kernel: Kernel, pocl: NativeRuns) -> Outcome:
    try:
        pocl.run(synthesize(kernel, _SHAPES[0]))
    except NativeError as error:
        return Outcome(outcome.kind, f"{outcome.detail} (PoCL: {error})", native=False, profile=False)
    return outcome


def _compare(launch: Launch, fresh: Callable[[], Launch], pocl: NativeRuns) -> Outcome:
    """Compare what a launch left with what PoCL leaves."""
    again = fresh()
    try:
        pocl.run(again)
    except NativeError as error:
        return Outcome("PoCL fails", str(error), native=False)
    rounded = False
    for position, (own, theirs) in enumerate(zip(launch.args, again.args, strict=True)):
        if not isinstance(own, np.ndarray) or not isinstance(theirs, np.ndarray):
            continue
        if own.tobytes() == theirs.tobytes():
            continue
        differ = np.flatnonzero(~np.isclose(own, theirs, rtol=_TOLERANCE, atol=1e-6, equal_nan=True))
        if differ.size:
            at = int(differ[0])
            detail = f"argument {position}: {differ.size} elements, first {at}: {own[at]} and {theirs[at]}"
            if not _agrees_with_itself(again, fresh, pocl):
                return Outcome("undefined", detail)
            return Outcome(
                "groups race" if _agree_in_one_group(fresh(), fresh(), pocl) else "differs", detail
            )
        rounded = True
    return Outcome("within rounding" if rounded else "equal")


def _agrees_with_itself(launch: Launch, fresh: Callable[[], Launch], pocl: NativeRuns) -> bool:
    """Whether PoCL leaves the same again, without optimization, and with work-items in another order.

    A kernel of which it does not depends on undefined values, or its work-items race.
    """
    kernel = launch.kernel
    plain = replace(kernel, program=replace(kernel.program, options=("-cl-opt-disable",)))
    others = [replace(fresh(), kernel=plain), *(fresh() for _ in range(4))]
    if not re.search(rb"get_(local|group|num|enqueued)|barrier|local", kernel.program.content):
        others.append(replace(fresh(), local_size=(1,) * len(launch.local_size)))
    try:
        for other in others:
            pocl.run(other)
    except NativeError:
        return True
    return all(_same(launch, other) for other in others)


def _agree_in_one_group(own: Launch, theirs: Launch, pocl: NativeRuns) -> bool:
    """Whether a launch of one work-group leaves the same in both: then its work-groups race."""
    own, theirs = (replace(launch, global_size=launch.local_size) for launch in (own, theirs))
    try:
        crosscast.characterize(own, timeout_s=_TIMEOUT_S)
        pocl.run(theirs)
    except (CrosscastError, NativeError):
        return False
    return _same(own, theirs)


def _same(a: Launch, b: Launch) -> bool:
    pairs = zip(a.args, b.args, strict=True)
    return all(
        np.allclose(x, y, rtol=_TOLERANCE, atol=1e-6, equal_nan=True)
        for x, y in pairs
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    )


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="folder of .cl files instead of Cummins et al. 2017")
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    native = profiled = 0
    with NativeRuns() as pocl:
        for name, program in sources(options.folder):
            if options.only not in name:
                continue
            try:
                kernels = frontend.load(program).kernel_names
            except CrosscastError as error:
                built = pocl.builds(program)
                outcomes["refused" if built else "refused by both"] += 1
                native += built
                if built:
                    print(f"{name}: refused: {error}")
                continue
            for kernel in kernels:
                outcome = try_kernel(Kernel(program, kernel), pocl)
                outcomes[outcome.kind] += 1
                native += outcome.native
                profiled += outcome.native and outcome.profile
                if outcome.kind not in ("equal", "within rounding"):
                    print(f"{name}: {kernel}: {outcome.kind}: {outcome.detail}", flush=True)
                else:
                    print(f"{name}: {kernel}: {outcome.kind}", file=sys.stderr)
    share = profiled / max(native, 1)
    print("\n".join(f"{count:5} {kind}" for kind, count in outcomes.most_common()))
    wrong = outcomes["differs"]
    met = share >= _ASKED and not wrong
    print(
        f"{'PASS' if met else 'FAIL'}  profile where PoCL builds and runs: {profiled} of {native} "
        f"({share:.1%}, asked {_ASKED:.1%}); outputs that differ: {wrong} (asked 0)"
    )
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
