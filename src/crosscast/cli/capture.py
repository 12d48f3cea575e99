"""``crosscast capture``: run a program, and record what it does with OpenCL."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole, check_file, tell
from crosscast.errors import InputError

__all__ = ["capture"]

_OUT = Path("crosscast-trace")


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
) -> int:
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
    # Imported here: `--help` needs no NumPy.
    from crosscast.report.capture import headline
    from crosscast.tracing.program import Recording, layer_library, run, runnable
    from crosscast.tracing.summary import Trace, summary_of, write_timeline
    from crosscast.tracing.trace import is_trace
    from crosscast.units import parse_bytes

    if not command:
        raise InputError(
            "capture: expected a program after --, such as crosscast capture -- ./app, found none"
        )
    if runs not in (1, 2):
        raise InputError(f"--runs: expected 1 or 2, found {runs}")
    if perfetto is not None:
        check_file("--perfetto", perfetto)
    chosen = "none" if trace_only else select
    recording = Recording(out, chosen, parse_bytes(max_bytes), max_seconds, check)
    runnable(command)
    layer_library(tell)
    was_there = out.exists()
    recording.prepare()
    code = 0
    if runs == 2:
        undisturbed = Recording(out / "times", "none")
        undisturbed.prepare()
        code = run(command, undisturbed)
    code = code or run(command, recording)
    trace = Trace(out)
    if not is_trace(out):
        if runs == 2:
            undisturbed.discard()
        recording.discard(keep=was_there)
        tell("crosscast: the program used no OpenCL that could be recorded")
    else:
        summary = summary_of(trace)
        tell(f"crosscast: {summary.application}: {headline(summary)}")
        for doubt in summary.doubts:
            tell(f"crosscast: note: {doubt}")
        if perfetto is not None:
            write_timeline(trace, perfetto)
            tell(f"wrote {perfetto}")
        show = shlex.join(["crosscast", "report", str(out)])
        tell(f"wrote {out}; {show} shows where its time goes")
    return code if code >= 0 else 128 - code
