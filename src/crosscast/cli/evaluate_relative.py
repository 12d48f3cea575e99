"""``crosscast evaluate --target relative``: how well models predict relative performance."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.evaluate_jobs import JobOptions
from crosscast.cli.fits import FitStatus
from crosscast.cli.option_names import option_names
from crosscast.cli.relative_vectors import relative_vectors
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.predict.relative.data import RelativeModel
    from crosscast.tables.dataset import Dataset

__all__ = ["ONLY_RELATIVE", "RELATIVE", "RelativeOptions", "Weights", "evaluate_relative_of", "is_relative"]

Weights = Literal["rows", "kernels", "applications"]

ONLY_RELATIVE = ("leave-configuration-out", "leave-machine-out", "leave-scale-out")
"""Protocols that there are for relative performance alone."""

RELATIVE = (*ONLY_RELATIVE, "leave-application-out", "leave-kernel-out", "published")
"""Protocols that there are for relative performance."""


@dataclass(frozen=True)
class RelativeOptions:
    """What was typed; ``None`` or false where nothing was.

    Parameters
    ----------
    sources, weights, studies
        As `crosscast.cli.evaluate.evaluate` has them.
    job_types
        What was typed of jobs to be written.
    """

    sources: str | None = None
    weights: Weights | None = None
    studies: bool = False
    job_types: JobOptions = field(default_factory=JobOptions)

    def given(self) -> list[str]:
        """Options that were typed."""
        found = {
            "--sources": self.sources,
            "--weights": self.weights,
            "--studies": self.studies or None,
        }
        typed = [option for option, value in found.items() if value is not None]
        return [*typed, *self.job_types.given()]


def is_relative(dataset: Dataset, protocol: str, target: str | None, options: RelativeOptions) -> bool:
    """Whether relative performance is to be evaluated, rather than times.

    Where it was not said: if the protocol or an option has no other meaning, or the dataset has counters and
    no profiles.

    Raises
    ------
    InputError
        If what was said cannot be evaluated with the protocol.
    """
    if target == "relative" and protocol not in RELATIVE:
        raise InputError(f"--target: expected time with {protocol}, found relative")
    if target == "time" and protocol in ONLY_RELATIVE:
        raise InputError(f"--target: expected relative with {protocol}, found time")
    if target is not None or protocol not in RELATIVE:
        return target == "relative"
    if protocol in ONLY_RELATIVE or options.given():
        return True
    from crosscast.predict.relative.observed import has_counters

    return dataset.profiles.num_rows == 0 and has_counters(dataset)


def evaluate_relative_of(
    dataset: Dataset,
    protocol: str,
    options: RelativeOptions,
    *,
    models: str | None,
    devices: str | None,
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
        Runs with counters, or profiles, and times of the same work on several devices.
    protocol
        What is left out.
    options
        What else was typed.
    models, devices, seed, jobs, cache, figures, json
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
    from crosscast.report.relative_evaluation import print_relative_evaluation
    from crosscast.studies.nichols2024 import study_relative

    with FitStatus() as status, option_names():
        wanted = _models(models)
        shape = options.job_types.shape()
        vectors = relative_vectors(dataset, devices, options.sources)
        if shape is not None:
            # Not only when all is fitted.
            shape.check(vectors.observations, vectors.devices)
        study = study_relative(
            dataset.label,
            vectors,
            wanted,
            protocol,
            weighting=options.weights,
            studies=options.studies,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=jobs,
        )
        if shape is not None:
            options.job_types.write(study.evaluation, shape)
    paths = []
    if figures is not None:
        from crosscast.report.relative_figures.all_figures import write_relative_figures

        paths = write_relative_figures(study, figures)
    if json:
        print(json_format.dumps(study.to_dict(), allow_nan=False))
    else:
        print_relative_evaluation(study, sys.stdout)
    return paths


def _models(text: str | None) -> list[RelativeModel]:
    """The models that are asked for, and the baselines after them."""
    from crosscast.predict.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named

    if text == "all":
        return models_named([*MODELS])
    names = [DEFAULT_MODEL] if text is None else words_of("--models", text)
    for name in names:
        if name not in MODELS:
            raise InputError(f"--models: expected all or some of {', '.join(MODELS)}, found {name!r}")
    return models_named([*names, *BASELINES])
