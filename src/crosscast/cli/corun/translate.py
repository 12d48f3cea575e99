"""``crosscast corun translate``: a machine translation card, which takes times on one GPU to another."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast.cli.datasets import dataset_named
from crosscast.cli.options import Flag

__all__ = ["translate"]


def translate(
    dataset: Path,
    /,
    *more: Path,
    from_: Annotated[str, Parameter(name="--from")],
    to: str,
    out: Path,
    json: Flag = False,
) -> None:
    """Make a card that translates times on a device to times on another.

    A line through the times of the same work on both devices: isolated runs, co-runners, and whole
    mixes. A plain one, as published, and one through logarithms are tried with each application left out; the
    better one is kept. `crosscast predict corun --translate` uses the card.

    Parameters
    ----------
    dataset
        Folder with isolated runs and mixes of both devices, or of one.
    more
        Other folders, such as with those of the other device.
    from_
        Device whose times are known.
    to
        Device whose times are wanted.
    out
        File for the card, JSON.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.evaluation.translation import shared_times, train_translation
    from crosscast.predict.corun.translation import write_translation
    from crosscast.report.corun_translation import print_translation
    from crosscast.tables.corun.view import CoRuns, co_runs

    found = [co_runs(dataset_named(folder)) for folder in (dataset, *more)]
    together = CoRuns(
        found[0].label,
        tuple(solo for each in found for solo in each.solos),
        tuple(bag for each in found for bag in each.bags),
    )
    card = train_translation(shared_times(together, from_, to))
    write_translation(card, out)
    if json:
        print(json_format.dumps(card.to_dict(), allow_nan=False))
    else:
        print_translation(card, sys.stdout)
        print(f"wrote {out}", file=sys.stderr)
