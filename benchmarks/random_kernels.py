"""Random kernels at every optimization level and on several threads: their outputs and profiles.

``python -m benchmarks.random_kernels --kernels N`` makes N kernels (`support.random_kernels`, seeded) and
runs each in Python, on PoCL, and characterized at one or several levels, on one thread and on three. All
must leave the same in memory, and the profiles of a level must be equal. PoCL compiles about one of 150 of
these kernels wrongly when it optimizes: where it differs, it runs the kernel again without optimization, and
only what then still differs is a failure; the others are counted.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import crosscast
from benchmarks.native_runs import NativeError, NativeRuns
from crosscast.characterization.instrumentation import strided_code
from crosscast.errors import CrosscastError
from crosscast.kernel import Kernel, Launch
from support import random_kernels

_LEVELS = ("-Oz", "-O0", "-O1", "-O2", "-O3")


def failures(seed: int, levels: int, pocl: NativeRuns | None) -> list[str]:
    """What is wrong with the kernel of a seed."""
    made = random_kernels.make(seed, wild=True)
    strided_code.SMALLEST_SPLIT = 1 + seed % 2 * 31  # the work-groups of most are too small to be divided
    expected = made.outputs()

    def launch(*options: str) -> Launch:
        kernel = Kernel.from_source(made.source, "k", standard=made.standard, options=options)
        return Launch(kernel, made.global_size, made.local_size, tuple(made.arguments()))

    def is_right(done: Launch) -> bool:
        found = [argument for argument in done.args if isinstance(argument, np.ndarray)]
        return all(map(np.array_equal, found, expected))

    wrong = []
    for level in random.Random(seed).sample(_LEVELS, levels):
        metrics = []
        for threads in (1, 3):
            one = launch(level)
            try:
                metrics.append(crosscast.characterize(one, threads=threads).metrics)
            except CrosscastError as error:
                wrong.append(f"seed {seed} at {level}: {error}")
                continue
            if not is_right(one):
                wrong.append(f"seed {seed} at {level} on {threads} threads: another output than in Python")
        if len(metrics) == 2 and metrics[0] != metrics[1]:
            wrong.append(f"seed {seed} at {level}: another profile on three threads than on one")
    return wrong + (_of_pocl(seed, pocl, launch, is_right) if pocl is not None else [])


_MISCOMPILED = "PoCL leaves the same as Python only without optimization"


def _of_pocl(
    seed: int, pocl: NativeRuns, launch: Callable[..., Launch], is_right: Callable[[Launch], bool]
) -> list[str]:
    found = "PoCL leaves something else than Python"
    for options in ((), ("-cl-opt-disable",)):
        one = launch(*options)
        try:
            pocl.run(one)
        except NativeError as error:
            found = f"PoCL: {error}"
            continue
        if is_right(one):
            return [f"seed {seed}: {_MISCOMPILED}"] if options else []
    return [f"seed {seed}: {found}"]


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel")
    parser.add_argument("--levels", type=int, default=len(_LEVELS), help="levels for each kernel, at random")
    parser.add_argument("--no-pocl", action="store_true")
    options = parser.parse_args()
    start, count, miscompiled = time.monotonic(), 0, 0
    with NativeRuns() as pocl:
        for seed in range(options.seed, options.seed + options.kernels):
            found = failures(seed, options.levels, None if options.no_pocl else pocl)
            theirs = all(_MISCOMPILED in text for text in found)
            count += not theirs
            miscompiled += bool(found) and theirs
            for text in found:
                print(text, flush=True)
    minutes = (time.monotonic() - start) / 60
    verdict = "FAIL" if count else "PASS"
    print(
        f"{verdict}  {options.kernels} random kernels in {minutes:.1f} min: {count} with a difference, "
        f"{miscompiled} that PoCL's optimizer compiles wrongly"
    )
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
