"""``crosscast report``: one page of pictures and tables about a dataset and how well it is predicted."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.datasets import dataset_named
from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.flag import Flag
from crosscast.cli.model_names import models_named
from crosscast.cli.option_names import option_names
from crosscast.cli.places import cache_folder, check_place
from crosscast.cli.whole import Whole
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.evaluation.time_study import Study
    from crosscast.tables.dataset import Dataset

__all__ = ["report"]


def report(
    folder: Path,
    /,
    *,
    out: Path,
    models: str | None = None,
    application: str | None = None,
    title: str | None = None,
    seed: Whole = 0,
    jobs: Whole | None = None,
    cache: Path | None = None,
    no_cache: Flag = False,
    json: Flag = False,
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
    seed
        Start of all random numbers.
    jobs
        Processes that work at the same time; by default one for each processor.
    cache
        Folder that keeps the forecasts of finished folds, those of `crosscast evaluate` too; by default one
        in the user's folder for caches.
    no_cache
        Keep and use no forecasts.
    json
        Print what is in the page as one JSON object.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.predict.time.models import DEFAULT_MODEL
    from crosscast.report.page.document import write_page
    from crosscast.report.page.scores import headline
    from crosscast.report.page.subject import Subject

    _check(out)
    dataset = dataset_named(folder)
    kept = cache_folder(cache, no_cache)
    processes = processors() if jobs is None else jobs
    with option_names():
        found = _study(
            dataset, DEFAULT_MODEL if models is None else models, application, seed, kept, processes
        )
    # Whoever gets the page knows the dataset by its name, wherever it was.
    name = Path(dataset.label).resolve().name
    subject = Subject.of(dataset, replace(found, label=name), application=application, title=title)
    write_page(subject, out)
    print(f"wrote {out}", file=sys.stderr)
    print(json_format.dumps(subject.to_dict(), allow_nan=False) if json else headline(subject))


def _check(out: Path) -> None:
    """Refuse a page that cannot be drawn or written, before a long run rather than after it."""
    from crosscast.report.canvas import require_matplotlib

    require_matplotlib()
    if out.is_dir():
        raise InputError(f"--out: expected a file, found the folder {out}")
    if not out.absolute().parent.is_dir():
        raise InputError(f"--out: the folder {out.absolute().parent} does not exist")
    check_place("--out", out.absolute().parent)


def _study(
    dataset: Dataset, models: str, application: str | None, seed: int, cache: Path | None, jobs: int
) -> Study:
    from crosscast.evaluation.time_study import study
    from crosscast.predict.time.observed import grid_of
    from crosscast.report.page.subject import check_application

    chosen = models_named(models)
    if application is not None:
        check_application(grid_of(dataset), application)
    with FitStatus() as status:
        return study(dataset, chosen, seed=seed, progress=status, cache=cache, jobs=jobs)
