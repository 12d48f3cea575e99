"""``crosscast corun pair``: which jobs should share a device, and which must run alone."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.corun.predict import read_profiles
from crosscast.cli.doubted import warn_of
from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.errors import InputError
from crosscast.units import parse_bytes

if TYPE_CHECKING:
    from crosscast.tables.corun.solo import Solo

__all__ = ["pair"]

_OPTIONS = {
    "group_size": "--group-size",
    "jobs": "FILE",
    "lengths": "--lengths",
    "level": "--level",
    "max_slowdown": "--max-slowdown",
    "memory_bytes": "--memory",
    "seed": "--seed",
}


def pair(
    file: Path,
    /,
    *more: Path,
    model: Path,
    max_slowdown: float | None = None,
    sure: Flag = False,
    memory: str | None = None,
    lengths: str | None = None,
    group_size: int = 2,
    level: float = 0.9,
    seed: int = 0,
    json: Flag = False,
) -> None:
    """Choose which jobs share a device, two at a time, for the least total time.

    Says who runs with whom, what that gains and how sure it is, and who runs alone and why.
    docs/corun-pairing.md says how it is chosen.

    Parameters
    ----------
    file
        Profile of a job that `crosscast corun profile` wrote.
    more
        Those of the others; the same again for a job that is there twice.
    model
        Folder that `crosscast train --target corun` wrote.
    max_slowdown
        Most that a job may slow down, such as 1.3, as predicted; no limit by default.
    sure
        Let the upper limit of each slowdown's interval keep to `--max-slowdown`, too.
    memory
        Memory of the device, such as `16GiB`; by default that of the device that the model was trained on, if
        it is known.
    lengths
        Seconds that each job takes alone, separated by commas, in the order of the files; by default the
        times in the profiles.
    group_size
        Most jobs at a time, 2 to 5; the best groups above two are searched for, and may not be found.
    level
        Probability that the intervals are to hold.
    seed
        Start of all random numbers.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.decide.colocation import choose_pairs
    from crosscast.predict.corun.artefact import load_corun_model
    from crosscast.report.corun_pairs import print_corun_pairs

    trained = load_corun_model(model)
    files = (file, *more)
    solos = read_profiles(files)
    with option_names(_OPTIONS):
        if seed < 0:
            raise InputError(f"seed: expected a number of at least 0, found {seed}")
        plan = choose_pairs(
            solos,
            trained,
            lengths=None if lengths is None else _numbers(lengths),
            max_slowdown=max_slowdown,
            sure=sure,
            memory_bytes=None if memory is None else parse_bytes(memory),
            group_size=group_size,
            level=level,
            seed=seed,
        )
    warn_of(plan.shared)
    if json:
        facts = {"name": trained.card.model, "training": dict(trained.card.training)}
        told = plan.to_dict([str(each) for each in files])
        print(json_format.dumps({**told, "model": facts}, allow_nan=False))
    else:
        print_corun_pairs(plan, _names(solos), trained.card, sys.stdout)


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise InputError(f"lengths: expected numbers separated by commas, found {text!r}") from error


def _names(solos: Sequence[Solo]) -> list[str]:
    """Names of jobs, with a number for those of the same name."""
    names = [solo.name for solo in solos]
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
