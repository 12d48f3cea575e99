"""``crosscast report``: a page about a dataset and its evaluation, or a report on a recorded program."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.options import RUN, Names, Output
from crosscast.cli.service import ReportOptions
from crosscast.commands.launch import replay_trace
from crosscast.commands.output import check_file, check_output, check_run, fitting, print_json, show, tell
from crosscast.data.dataset import dataset_named
from crosscast.errors import CrosscastError, InputError
from crosscast.forecasting.application import ApplicationForecast, forecast_application
from crosscast.report.capture import application_report, capture_figures, to_dict
from crosscast.report.page import write_report
from crosscast.report.pictures import require_matplotlib
from crosscast.tracing.trace import is_trace


def report(folder: Path, /, *, options: ReportOptions) -> None:
    """Run ``crosscast report``."""
    of_trace = is_trace(folder)
    idle = (
        {"--models": options.models, "--application": options.application, "--seed and --jobs": options.run}
        if of_trace
        else {"--devices": options.devices}
    )
    for option, value in idle.items():
        if value not in (None, RUN):
            kind = "recorded program" if of_trace else "dataset"
            raise InputError(f"{option}: nothing in the report on a {kind} depends on it; leave it out")
    if of_trace:
        _of_trace(folder, options.devices, options.output)
        return
    page = options.output.html
    if page is None:
        # Raises where the folder has neither a trace nor a dataset.
        dataset_named(folder)
        raise InputError("--html is missing, expected the page about a dataset, such as --html page.html")

    require_matplotlib()
    check_file("--html", page)
    check_run(options.run)
    dataset = dataset_named(folder)
    with fitting(options.run) as keywords:
        subject = write_report(dataset, page, options.models, application=options.application, **keywords)
    tell(f"wrote {page}")
    if options.output.json:
        print_json(subject.to_dict())
    else:
        print(subject.headline)


def _of_trace(folder: Path, devices: Names | None, output: Output) -> None:
    """Report on a recorded program."""
    check_output(output)
    summary, replayed = replay_trace(folder)
    forecast: ApplicationForecast | str
    try:
        forecast = forecast_application(summary, replayed, devices=devices)
    except CrosscastError as error:
        if devices is not None and any(replay.profile for replay in replayed):
            raise
        forecast = str(error)
    show(
        output,
        lambda: to_dict(summary, replayed, forecast),
        lambda: application_report(summary, replayed, forecast),
        lambda: capture_figures(summary),
    )
