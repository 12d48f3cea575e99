"""``crosscast corun predict``: how long applications that share a device take, and what power it draws."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.doubted import warn_of
from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.corun.solo import Solo

__all__ = ["predict", "read_profiles"]


def predict(
    file: Path,
    /,
    *more: Path,
    model: Path,
    level: float = 0.9,
    translate: Path | None = None,
    json: Flag = False,
) -> None:
    """Predict a bag: applications that start together on one device.

    Says how long the bag takes, how much each application slows down, what power the device draws, and how
    sure that is; beside them, how long the same work takes one after another. docs/corun.md says what each
    number means.

    Parameters
    ----------
    file
        Profile of an application that `crosscast corun profile` wrote.
    more
        Those of the others; the same again for an application that is there twice.
    model
        Folder that `crosscast train --target corun` wrote.
    level
        Probability that the intervals are to hold.
    translate
        Card of `crosscast corun translate`, with profiles on the device that it is from, to predict times and
        slowdowns on the other. The model may be of either.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.predict.corun.artefact import load_corun_model
    from crosscast.predict.corun.translation import read_translation, translated_forecasts
    from crosscast.report.corun_forecast import print_corun_forecast
    from crosscast.report.corun_translation import translated_by

    trained = load_corun_model(model)
    bag = tuple(read_profiles((file, *more)))
    if len(bag) < 2:
        raise InputError(f"{file}: expected the profiles of at least 2 applications, found 1")
    card = None if translate is None else read_translation(translate)
    with option_names():
        if card is None:
            (found,) = trained.forecast([bag], level=level)
        else:
            (found,) = translated_forecasts(trained, card, [bag], level=level)
    warn_of([found])
    if json:
        facts = {"name": trained.card.model, "training": dict(trained.card.training)}
        told = {**found.to_dict(), "model": facts}
        if card is not None:
            told["translation"] = {"from": card.source, "to": card.target, "line": dict(vars(card.line))}
        print(json_format.dumps(told, allow_nan=False))
    else:
        print_corun_forecast(found, trained.card, sys.stdout)
        if card is not None:
            print(translated_by(card))


def read_profiles(files: Sequence[Path]) -> list[Solo]:
    """Read profiles of applications alone.

    Raises
    ------
    InputError
        If one cannot be read, or is no such profile.
    """
    from crosscast.tables.corun.profile_file import read_profile

    return [read_profile(file).solo for file in files]
