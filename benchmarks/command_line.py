"""How the benchmarks start the command line of the Crosscast that they import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import crosscast

__all__ = ["crosscast_command", "environment"]


def crosscast_command(*arguments: str) -> list[str]:
    """Command that runs ``crosscast`` with these arguments.

    The installed command where there is one beside this Python, or else the same entry point.
    """
    installed = Path(sys.executable).with_name("crosscast")
    if installed.is_file():
        return [str(installed), *arguments]
    return [sys.executable, "-c", "from crosscast.cli import main; main()", *arguments]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment, in which the same Crosscast is found, and these variables."""
    package = Path(crosscast.__file__).parent.parent
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **variables}
