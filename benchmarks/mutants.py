"""Thirty small faults, each of which the fast tests must find: ``python -m benchmarks.mutants [WORD...]``.

`mutants.toml` has them: each changes one place of a copy of the package, on which the tests of that place are
run. WORDs choose faults by their file. Printed is a line a fault; the exit status is 0 if all were caught. A
place that is no longer in the source as it is written there is stale, which counts as not caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crosscast"
TABLE = Path(__file__).with_suffix(".toml")
_TIMEOUT_S = 600.0


class Mutant(NamedTuple):
    """A fault: what is in a file once, what stands there instead, and the tests that must fail."""

    file: str
    old: str
    new: str
    tests: str


def main() -> int:
    """Try the faults and return the exit status."""
    words = sys.argv[1:]
    chosen = [each for each in mutants() if not words or any(word in each.file for word in words)]
    fates = []
    for mutant in chosen:
        fates.append(fate_of(mutant))
        change = mutant.new.splitlines()[-1].strip()
        print(f"{fates[-1]:8}  {mutant.file}: {change}", flush=True)
    print(f"{fates.count('caught')} of {len(fates)} caught")
    return 0 if all(fate == "caught" for fate in fates) else 1


def mutants() -> Iterator[Mutant]:
    """Faults of the table."""
    for place, changes in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        file, tests = place.split()
        for old, new in changes.items():
            yield Mutant(file, old, new, tests)


def fate_of(mutant: Mutant) -> str:
    """What becomes of a fault: ``caught``, ``survived``, ``endless``, or ``stale`` if that source is gone."""
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return "stale"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "crosscast"
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE, copy, copy_function=os.symlink, ignore=skipped)
        path = copy / mutant.file
        path.unlink()
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    f"tests/{mutant.tests}",
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": folder},
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return "endless"
    # Any other status is no verdict of a test: a file that is not there, or one that cannot be imported.
    fates = {0: "survived", 1: "caught"}
    return fates.get(done.returncode, f"stale: pytest ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
