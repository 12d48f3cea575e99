"""``crosscast dataset describe``: what is in a dataset."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path

from crosscast.cli.datasets import dataset_named
from crosscast.cli.options import Flag

__all__ = ["describe"]


def describe(folder: Path, /, *, json: Flag = False) -> None:
    """Say what a dataset holds, what is missing, how noisy it is, and what to be careful with.

    A build need not be finished.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast.
    json
        Print everything as one JSON object.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.report.description import print_description
    from crosscast.tables import description

    found = description.describe(dataset_named(folder))
    if json:
        print(json_format.dumps(found.to_dict(), allow_nan=False))
    else:
        print_description(found, sys.stdout)
