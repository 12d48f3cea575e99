"""``crosscast capture`` and ``report``: record a program's use of OpenCL; reports on it and on datasets."""

from __future__ import annotations

import shlex

from crosscast.cli.options import RUN
from crosscast.cli.profiles import Capture, WriteReport
from crosscast.commands.launch import replay_trace
from crosscast.commands.output import check_file, fitting, print_json, say, show, tell
from crosscast.data.dataset import dataset_named
from crosscast.errors import CrosscastError, InputError
from crosscast.forecasting import ApplicationForecast, forecast_application
from crosscast.report.document import require_matplotlib
from crosscast.report.measured import application_report, capture_figures, headline, to_dict
from crosscast.report.page import write_report
from crosscast.tracing.program import TraceRecording, layer_library, run, runnable
from crosscast.tracing.summary import Trace, summary_of, write_timeline
from crosscast.tracing.trace import is_trace


def capture(options: Capture) -> int:
    """Run ``crosscast capture``."""
    out, command = options.out, options.command
    if not command:
        raise InputError.of(
            where="capture", expected="a program after --, such as crosscast capture -- ./app", found="none"
        )
    if options.runs not in (1, 2):
        raise InputError.of(where="--runs", expected="1 or 2", found=f"{options.runs}")
    if options.perfetto is not None:
        check_file("--perfetto", options.perfetto)
    recording = TraceRecording(out, options.select, options.max_bytes, options.max_seconds, options.check)
    runnable(command)
    layer_library(say)
    existed = out.exists()
    recording.prepare()
    code, undisturbed = 0, None
    if options.runs == 2:
        undisturbed = TraceRecording(out / "times", "none")
        undisturbed.prepare()
        code = run(command, undisturbed)
    # A program that ends with an error ran, too; one that is stopped is not started again.
    if code >= 0:
        last = run(command, recording)
        code = code or last
    if is_trace(out):
        trace = Trace(out)
        summary = summary_of(trace)
        say(f"{summary.application}: {headline(summary)}")
        for doubt in summary.doubts:
            say(f"note: {doubt}")
        if options.perfetto is not None:
            write_timeline(trace, options.perfetto)
            tell(f"wrote {options.perfetto}")
        tell(f"wrote {out}; {shlex.join(['crosscast', 'report', str(out)])} shows where its time goes")
    else:
        if undisturbed is not None:
            undisturbed.discard()
        recording.discard(keep=existed)
        say(f"the program {'was stopped' if code < 0 else 'used no OpenCL that could be recorded'}")
    return code if code >= 0 else 128 - code


def report(options: WriteReport) -> None:
    """Run ``crosscast report``."""
    kind, idle = "dataset", {"--devices": options.devices is not None}
    if is_trace(options.folder):
        kind, idle = "recorded program", {"--models": options.models is not None}
        idle |= {"--application": options.application is not None, "--seed and --jobs": options.run != RUN}
    for option, is_given in idle.items():
        if is_given:
            raise InputError.of(
                where=option, problem=f"nothing in the report on a {kind} depends on it; leave it out"
            )
    if is_trace(options.folder):
        _of_trace(options)
        return
    # Raises where the folder has neither a trace nor a dataset.
    dataset, page = dataset_named(options.folder), options.output.html
    if page is None:
        raise InputError("--html is missing, expected the page about a dataset, such as --html page.html")
    require_matplotlib()
    with fitting(options.run) as keywords:
        subject = write_report(dataset, page, options.models, application=options.application, **keywords)
    tell(f"wrote {page}")
    if options.output.json:
        print_json(subject.to_dict())
    else:
        print(subject.headline)


def _of_trace(options: WriteReport) -> None:
    """Report on a recorded program."""
    summary, replayed = replay_trace(options.folder)
    forecast: ApplicationForecast | str
    try:
        forecast = forecast_application(summary, replayed, devices=options.devices)
    except CrosscastError as error:
        if options.devices is not None and any(replay.profile for replay in replayed):
            raise
        forecast = str(error)
    show(
        options.output,
        lambda: to_dict(summary, replayed, forecast),
        lambda: application_report(summary, replayed, forecast),
        lambda: capture_figures(summary),
    )
