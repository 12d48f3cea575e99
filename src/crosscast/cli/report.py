"""``crosscast report``: a page of figures and tables about a dataset and how well it is predicted."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.options import (
    OUTPUT,
    RUN,
    Names,
    Output,
    RunOptions,
    check_file,
    dataset_named,
    print_json,
    tell,
)
from crosscast.errors import CrosscastError, InputError

__all__ = ["report"]


def report(
    folder: Path,
    /,
    *,
    out: Path | None = None,
    models: Names | None = None,
    application: str | None = None,
    title: str | None = None,
    devices: Names | None = None,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Report on a recorded program, or write a page about a dataset and how well its times are predicted.

    Of the trace of `crosscast capture`: where the time goes, profiles, and how long the program takes on
    other devices. Of a dataset, a page: its contents, predictions for each held-out application, recommended
    devices and what they cost, and how to read the scores. docs/reporting.md shows one.

    Parameters
    ----------
    folder
        Folder of a trace or dataset, or `bundled` for the dataset that comes with Crosscast.
    out
        The page about a dataset, as `--html`.
    models
        Models, separated by commas, or `all`; by default the one that `crosscast train` takes. The page shows
        the one with the least error, beside the baselines.
    application
        Application that is shown in detail; by default the one with the median error.
    title
        Title of the page.
    devices
        Devices of the forecast of a recorded program, separated by commas; by default all of the model.
    """
    from crosscast.tracing.trace import is_trace

    if is_trace(folder):
        _of_trace(folder, devices, output)
        return
    if out is not None and output.html is not None:
        raise InputError("--out and --html are one page about a dataset: give one of them")
    out = out or output.html
    if out is None:
        raise InputError("--html is missing, expected the page about a dataset, such as --html page.html")
    # Imported here: `--help` needs no pyarrow.
    from crosscast.report.figures import require_matplotlib
    from crosscast.report.page import write_report
    from crosscast.report.page_sections import headline

    require_matplotlib()
    check_file("--out", out)
    run.check()
    dataset = dataset_named(folder)
    with run.fitting() as how:
        subject = write_report(dataset, out, models, application=application, title=title, **how)
    tell(f"wrote {out}")
    if output.json:
        print_json(subject.to_dict())
    else:
        print(headline(subject))


def _of_trace(folder: Path, devices: Names | None, output: Output) -> None:
    """Report on a recorded program."""
    from crosscast.application_forecast import ApplicationForecast, forecast_application
    from crosscast.cli.running import replay_trace
    from crosscast.report.capture import application_report, capture_figures, to_dict

    output.check()
    summary, found = replay_trace(folder)
    forecast: ApplicationForecast | str
    try:
        forecast = forecast_application(summary, found, devices=devices)
    except CrosscastError as error:
        if devices is not None and any(each.profile for each in found):
            raise
        forecast = str(error)
    output.show(
        lambda: to_dict(summary, found, forecast),
        lambda: application_report(summary, found, forecast),
        lambda: capture_figures(summary),
    )
