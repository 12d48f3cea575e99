"""``crosscast train``: a model as a folder of data, with what it was trained on and its honest errors."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path

from crosscast.cli.datasets import dataset_named
from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.cli.places import cache_folder, check_place
from crosscast.cli.whole import Whole
from crosscast.cli.words import words_of

__all__ = ["train"]


def train(
    folder: Path,
    /,
    *,
    out: Path,
    model: str | None = None,
    without: str | None = None,
    seed: Whole = 0,
    jobs: Whole | None = None,
    no_cache: Flag = False,
    json: Flag = False,
) -> None:
    """Train a model, measure it on applications that it has not seen, and keep it.

    The model is fitted to the whole dataset. Before, each application is left out in turn, and predicted by
    the model fitted to the others; these errors go on the model's card, beside those of trivial baselines
    (docs/predicting.md).

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` for the one that comes with Crosscast.
    out
        Folder of the model; one that is there is replaced.
    model
        Name of the model; the best by default. `crosscast evaluate` compares them.
    without
        Applications, separated by commas, that are left out of all this, to be predicted later.
    seed
        Start of all random numbers.
    jobs
        Processes that work at the same time; by default one for each processor.
    no_cache
        Use and keep no forecasts of `crosscast evaluate`.
    json
        Print the card.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.evaluate.training import train as fit
    from crosscast.predict.artefact import check_folder, save_model
    from crosscast.predict.registry import DEFAULT_MODEL
    from crosscast.report.training import print_training
    from crosscast.tables.selecting import without_applications

    # What cannot be written is refused before the work.
    check_folder(out)
    check_place("--out", out)
    cache = cache_folder(None, no_cache)
    dataset = dataset_named(folder)
    with option_names():
        dataset = without_applications(dataset, words_of("--without", without) if without is not None else [])
    with FitStatus() as status, option_names():
        trained = fit(
            dataset,
            DEFAULT_MODEL if model is None else model,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=processors() if jobs is None else jobs,
        )
    save_model(trained.predictor, out, trained.card)
    if json:
        print(json_format.dumps(trained.card.to_dict(), allow_nan=False))
    else:
        print_training(trained.card, out, sys.stdout)
