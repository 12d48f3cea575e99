"""How the benchmarks start the command line of the Crosscast that they import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import crosscast


def crosscast_command(*arguments: str) -> list[str]:
    """Command that does what ``crosscast`` does with these arguments."""
    return [sys.executable, "-m", "crosscast", *arguments]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment, in which the same Crosscast is found, and these variables."""
    package = Path(crosscast.__file__).parent.parent
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **variables}
