"""``crosscast report``: one page of pictures and tables about a dataset and how well it is predicted."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path

from crosscast.cli.options import RUN, Names, RunOptions, check_place, dataset_named
from crosscast.errors import InputError

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
) -> None:
    """Write a page about a dataset, and how well the times of its kernels are predicted.

    The page is one file of HTML that needs nothing else: what the dataset holds, each application predicted
    by a model that never saw it, the device that is recommended and what it costs, and how to read all that.
    docs/reporting.md shows one.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` for the one that comes with Crosscast.
    out
        The page.
    models
        Names, separated by commas, or `all`; by default the best one alone. The page shows the one that errs
        least, and the baselines beside it.
    application
        The application that is looked at closely; by default the one whose error is in the middle.
    title
        Title of the page.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.report.page import headline, write_report

    _check(out)
    run.check_cache()
    dataset = dataset_named(folder)
    with run.fitting() as how:
        subject = write_report(dataset, out, models, application=application, title=title, **how)
    print(f"wrote {out}", file=sys.stderr)
    print(json_format.dumps(subject.to_dict(), allow_nan=False) if run.json else headline(subject))


def _check(out: Path) -> None:
    """Refuse a page that cannot be drawn or written, before a long run rather than after it."""
    from crosscast.report.figures import require_matplotlib

    require_matplotlib()
    if out.is_dir():
        raise InputError(f"--out: expected a file, found the folder {out}")
    if not out.absolute().parent.is_dir():
        raise InputError(f"--out: the folder {out.absolute().parent} does not exist")
    check_place("--out", out.absolute().parent)
