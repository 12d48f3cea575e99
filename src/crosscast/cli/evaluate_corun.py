"""``crosscast evaluate`` of applications that share a device."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.evaluate_partition import evaluate_partition_of
from crosscast.cli.fits import FitStatus
from crosscast.cli.option_names import option_names
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.predict.corun.forecast import CoRunModel
    from crosscast.tables.dataset import Dataset

__all__ = ["CORUN", "ONLY_CORUN", "corun_device", "corun_models", "evaluate_corun_of", "is_corun"]

CORUN = ("leave-benchmark-out", "leave-bag-out", "random-80-20")
"""Protocols that there are for bags."""

ONLY_CORUN = ("leave-bag-out", "random-80-20")
"""Those that there are for bags alone."""


def is_corun(dataset: Dataset, target: str | None) -> bool:
    """Whether bags are to be evaluated: if that was said, or the dataset has them and no records."""
    if target is not None:
        return target == "corun"
    return bool(dataset.bags.num_rows and not dataset.records.num_rows)


def evaluate_corun_of(
    dataset: Dataset,
    protocol: str,
    *,
    models: str | None,
    devices: str | None,
    probes: list[int],
    level: float,
    studies: bool,
    seed: int,
    jobs: int,
    cache: Path | None,
    figures: Path | None,
    json: bool,
) -> list[Path]:
    """Evaluate, print and draw.

    Parameters
    ----------
    dataset
        Solo runs and bags.
    protocol
        What is left out.
    models, devices, probes, level, studies, seed, jobs, cache, figures, json
        As `crosscast.cli.evaluate.evaluate` has them.

    Returns
    -------
    list of Path
        Pictures that were written.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected, or a file cannot be written.
    """
    from crosscast.predict.corun.models import BASELINES, models_named
    from crosscast.report.corun_evaluation import print_corun_evaluation
    from crosscast.studies.corun import study_corun
    from crosscast.tables.corun.mixes import has_mixes
    from crosscast.tables.corun.view import co_runs

    if has_mixes(dataset.bags):
        return evaluate_partition_of(
            dataset,
            protocol,
            models=models,
            device=corun_device(devices),
            probes=probes,
            level=level,
            studies=studies,
            seed=seed,
            jobs=jobs,
            cache=cache,
            figures=figures,
            json=json,
        )
    if protocol not in CORUN:
        raise InputError(
            f"--protocol: expected one of {', '.join(CORUN)} where applications share a device, found "
            f"{protocol}"
        )
    wanted = corun_models(models)
    with FitStatus() as status, option_names():
        study = study_corun(
            co_runs(dataset),
            wanted,
            protocol,
            baselines=models_named(BASELINES),
            device=corun_device(devices),
            probes=probes,
            level=level,
            studies=studies,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=jobs,
        )
    paths = []
    if figures is not None:
        from crosscast.report.corun_figures.all_figures import write_corun_figures

        paths = write_corun_figures(study, figures)
    if json:
        print(json_format.dumps(study.to_dict(), allow_nan=False))
    else:
        print_corun_evaluation(study, sys.stdout)
    return paths


def corun_device(text: str | None) -> str | None:
    """The device that was named; ``None`` if none was."""
    if text is None:
        return None
    names = words_of("--devices", text)
    if len(names) != 1:
        raise InputError(f"--devices: expected one device, which bags share, found {', '.join(names)}")
    return names[0]


def corun_models(text: str | None) -> list[CoRunModel]:
    """The models that are asked for, without the baselines."""
    from crosscast.predict.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named

    if text == "all":
        return models_named([name for name in MODELS if name not in BASELINES])
    names = [DEFAULT_MODEL] if text is None else words_of("--models", text)
    for name in names:
        if name not in MODELS:
            raise InputError(f"--models: expected all or some of {', '.join(MODELS)}, found {name!r}")
    return models_named([name for name in names if name not in BASELINES])
