"""``crosscast capture``: run a program, and record what it does with OpenCL."""

from __future__ import annotations

import shlex
from pathlib import Path

from crosscast.commands.options import say, tell
from crosscast.commands.output import check_file
from crosscast.errors import InputError
from crosscast.report.capture import headline
from crosscast.tracing.program import Recording, layer_library, run, runnable
from crosscast.tracing.summary import Trace, summary_of, write_timeline
from crosscast.tracing.trace import is_trace
from crosscast.units import parse_bytes


def capture(
    *command: str,
    out: Path,
    select: str,
    max_bytes: str,
    max_seconds: int,
    check: bool,
    runs: int,
    perfetto: Path | None,
) -> int:
    """Run ``crosscast capture``."""
    if not command:
        raise InputError.of(
            where="capture", expected="a program after --, such as crosscast capture -- ./app", found="none"
        )
    if runs not in (1, 2):
        raise InputError.of(where="--runs", expected="1 or 2", found=f"{runs}")
    if perfetto is not None:
        check_file("--perfetto", perfetto)
    recording = Recording(out, select, parse_bytes(max_bytes), max_seconds, check)
    runnable(command)
    layer_library(say)
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
        say("the program used no OpenCL that could be recorded")
    else:
        summary = summary_of(trace)
        say(f"{summary.application}: {headline(summary)}")
        for doubt in summary.doubts:
            say(f"note: {doubt}")
        if perfetto is not None:
            write_timeline(trace, perfetto)
            tell(f"wrote {perfetto}")
        shown = shlex.join(["crosscast", "report", str(out)])
        tell(f"wrote {out}; {shown} shows where its time goes")
    return code if code >= 0 else 128 - code
