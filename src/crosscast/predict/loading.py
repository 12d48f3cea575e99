"""Reading a model of any question."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from crosscast.predict.store import read

__all__ = ["load_model"]

_QUESTIONS = ("time", "relative", "configuration", "corun")


def load_model(folder: str | Path) -> Any:
    """Read a model that ``crosscast train`` or `crosscast.train` wrote.

    The card is read and checked now, most arrays when the first prediction is made; nothing is run.

    Parameters
    ----------
    folder
        Folder of the model.

    Returns
    -------
    TrainedTimeModel, TrainedRelativeModel, TrainedConfigurationModel or TrainedCoRunModel
        As its card says. All have `card`, `folder`, `predict` and `save`:

        - ``time``: ``predict(profiles, devices=None, probes=None, level=0.9)``, seconds on each device;
        - ``relative``: ``predict(runs, relative_to=None, level=0.9)``, ratios of times between devices;
        - ``configuration``: ``predict(runs)``, seconds and watts at each configuration, and ``choose``;
        - ``corun``: ``predict(mixes, level=0.9)``, slowdowns, seconds and watts of mixes.

    Raises
    ------
    InputError
        If the folder holds no model, a damaged one, or one of a newer format.
    """
    stored = read(folder, _QUESTIONS)
    # Each needs a part of the package that the others do not.
    artefact = importlib.import_module(f"crosscast.predict.{stored.question}.artefact")
    return artefact.open_model(stored)
