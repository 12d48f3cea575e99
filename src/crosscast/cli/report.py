"""``crosscast report``: a page of figures and tables about a dataset and how well it is predicted."""

from __future__ import annotations

import json as json_format
from pathlib import Path

from crosscast.cli.options import RUN, JsonFlag, Names, RunOptions, check_file, dataset_named, tell

__all__ = ["report"]


def report(
    folder: Path,
    /,
    *,
    out: Path,
    models: Names | None = None,
    application: str | None = None,
    title: str | None = None,
    run: RunOptions = RUN,
    json: JsonFlag = False,
) -> None:
    """Write an HTML page about a dataset and how well the times of its kernels are predicted.

    The page is one self-contained file: contents of the dataset, predictions for each held-out application,
    recommended devices and what they cost, and how to read the scores. docs/reporting.md shows one.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` for the one that comes with Crosscast.
    out
        The page.
    models
        Models, separated by commas, or `all`; by default the one that `crosscast train` takes. The page shows
        the one with the least error, beside the baselines.
    application
        Application that is shown in detail; by default the one with the median error.
    title
        Title of the page.
    """
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
    print(json_format.dumps(subject.to_dict(), allow_nan=False) if json else headline(subject))
