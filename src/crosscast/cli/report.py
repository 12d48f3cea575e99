"""``crosscast report``: a page of figures and tables about a dataset and how well it is predicted."""

from __future__ import annotations

from pathlib import Path

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, RUN, Names, Output, RunOptions

__all__ = ["report"]


@runs(lambda: commands.report.report)
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
