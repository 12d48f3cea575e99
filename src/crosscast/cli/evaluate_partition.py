"""``crosscast evaluate`` of jobs on parts of a GPU, from mixes at levels of MPS."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.fits import FitStatus
from crosscast.cli.option_names import option_names
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["evaluate_partition_of"]


def evaluate_partition_of(
    dataset: Dataset,
    protocol: str,
    *,
    models: str | None,
    device: str | None,
    probes: Sequence[int],
    level: float,
    studies: bool,
    seed: int,
    jobs: int,
    cache: Path | None,
    figures: Path | None,
    json: bool,
) -> list[Path]:
    """Evaluate and print; there are no pictures.

    Parameters
    ----------
    dataset
        Bags at levels of MPS, and their members on parts.
    device
        Key of the device; the one with the most rows by default.
    protocol, models, probes, level, studies, seed, jobs, cache, figures, json
        As `crosscast.cli.evaluate.evaluate` has them.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected.
    """
    from crosscast.evaluation.partition import MIX_SPLITS, study_partitions
    from crosscast.report.corun_partition import print_partition_study
    from crosscast.tables.corun.mixes import mixes_of

    if protocol not in MIX_SPLITS:
        raise InputError(
            f"--protocol: expected one of {', '.join(MIX_SPLITS)} for mixes on parts of a GPU, found "
            f"{protocol}"
        )
    given = {"--probes": list(probes) != [0], "--studies": studies, "--figures": figures is not None}
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option}: has nothing to say about mixes on parts of a GPU; leave it out")
    with FitStatus() as status, option_names():
        study = study_partitions(
            mixes_of(dataset, device),
            _models(models),
            protocol,
            level=level,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=jobs,
        )
    if json:
        print(json_format.dumps(study.to_dict(), allow_nan=False))
    else:
        print_partition_study(study, sys.stdout)
    return []


def _models(text: str | None) -> list[str]:
    """Models by name, all where none is named, with the baseline."""
    from crosscast.predict.corun.partition import PARTITION_BASELINES, PARTITION_MODELS

    names = list(PARTITION_MODELS) if text in (None, "all") else words_of("--models", text or "")
    for name in names:
        if name not in PARTITION_MODELS:
            raise InputError(
                f"--models: expected all or some of {', '.join(PARTITION_MODELS)}, found {name!r}"
            )
    return list(dict.fromkeys([*names, *PARTITION_BASELINES]))
