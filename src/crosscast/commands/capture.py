"""``crosscast capture``: run a program, and record its use of OpenCL."""

from __future__ import annotations

import shlex

from crosscast.cli.options import bytes_in
from crosscast.cli.profiles import CaptureOptions
from crosscast.commands.output import check_file, say, tell
from crosscast.errors import InputError
from crosscast.report.capture import headline
from crosscast.tracing.program import TraceRecording, layer_library, run, runnable
from crosscast.tracing.summary import Trace, summary_of, write_timeline
from crosscast.tracing.trace import is_trace


def capture(*command: str, options: CaptureOptions) -> int:
    """Run ``crosscast capture``."""
    if not command:
        raise InputError.of(
            where="capture", expected="a program after --, such as crosscast capture -- ./app", found="none"
        )
    if options.runs not in (1, 2):
        raise InputError.of(where="--runs", expected="1 or 2", found=f"{options.runs}")
    if options.perfetto is not None:
        check_file("--perfetto", options.perfetto)
    max_bytes = bytes_in("--max-bytes", options.max_bytes)
    recording = TraceRecording(options.out, options.select, max_bytes, options.max_seconds, options.check)
    runnable(command)
    layer_library(say)
    existed = options.out.exists()
    recording.prepare()
    code = 0
    if options.runs == 2:
        undisturbed = TraceRecording(options.out / "times", "none")
        undisturbed.prepare()
        code = run(command, undisturbed)
    # A program that ends with an error ran, too; one that is stopped is not started again.
    if code >= 0:
        last = run(command, recording)
        code = code or last
    trace = Trace(options.out)
    if not is_trace(options.out):
        if options.runs == 2:
            undisturbed.discard()
        recording.discard(keep=existed)
        reason = "was stopped" if code < 0 else "used no OpenCL that could be recorded"
        say(f"the program {reason}")
    else:
        summary = summary_of(trace)
        say(f"{summary.application}: {headline(summary)}")
        for doubt in summary.doubts:
            say(f"note: {doubt}")
        if options.perfetto is not None:
            write_timeline(trace, options.perfetto)
            tell(f"wrote {options.perfetto}")
        shown = shlex.join(["crosscast", "report", str(options.out)])
        tell(f"wrote {options.out}; {shown} shows where its time goes")
    return code if code >= 0 else 128 - code
