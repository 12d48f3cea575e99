"""``crosscast capture``: run a program, and record what it does with OpenCL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import Flag, Whole

__all__ = ["capture"]
_OUT = Path("crosscast-trace")


@runs(lambda: commands.capture.capture)
def capture(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    out: Path = _OUT,
    select: str = "spread",
    max_bytes: str = "4 GiB",
    max_seconds: Whole = 60,
    check: Flag = False,
    trace_only: Flag = False,
    runs: Whole = 1,
    perfetto: Path | None = None,
) -> None:
    """Run a program, unchanged, and record its kernel launches and transfers.

    The program comes after two hyphens, `crosscast capture -- ./app --size 1000`. Its input, output and exit
    code are its own. `crosscast report`, `characterize` and `predict` take the folder of the trace
    (docs/capture.md).

    Parameters
    ----------
    command
        The program and its arguments.
    out
        Folder of the trace, new or empty.
    select
        Launches whose memory is kept, so that they can be characterized: `spread` (the 1st, 2nd, 3rd, 5th,
        9th, ... of a kernel and its sizes), `all`, `none`, `first:N` or `every:N`.
    max_bytes
        Most memory of launches that is kept.
    max_seconds
        Most time that the program waits for its memory to be read.
    check
        Also keep what these launches leave in memory, so that `crosscast report` compares.
    trace_only
        Keep no memory: times only.
    runs
        2 runs the program twice: first for undisturbed times, then for memory.
    perfetto
        Also write a timeline for ui.perfetto.dev.
    """
