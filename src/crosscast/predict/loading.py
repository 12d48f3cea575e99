"""Reading a model of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.predict.store import read

if TYPE_CHECKING:
    from crosscast.predict.configuration.artefact import TrainedConfigurationModel
    from crosscast.predict.corun.artefact import TrainedCoRunModel
    from crosscast.predict.relative.artefact import TrainedRelativeModel
    from crosscast.predict.time.artefact import TrainedTimeModel

__all__ = ["load_model"]


def load_model(
    folder: str | Path,
) -> TrainedTimeModel | TrainedConfigurationModel | TrainedRelativeModel | TrainedCoRunModel:
    """Read the card of a model that `crosscast train` wrote; arrays are read when they are needed.

    Parameters
    ----------
    folder
        Folder of the model.

    Returns
    -------
    TrainedTimeModel, TrainedConfigurationModel, TrainedRelativeModel or TrainedCoRunModel
        As its card says: a model that predicts times, one by which configurations are chosen, one that
        predicts times relative to each other, or one of applications that share a device.

    Raises
    ------
    InputError
        If the folder holds no model, a damaged one, or one of a newer format.
    """
    stored = read(folder, ("time", "configuration", "relative", "corun"))
    # Imported here: each needs a part of the package that the others do not.
    if stored.question == "corun":
        from crosscast.predict.corun import artefact as corun

        return corun.open_model(stored)
    if stored.question == "relative":
        from crosscast.predict.relative.artefact import open_model as open_relative

        return open_relative(stored)
    if stored.question == "configuration":
        from crosscast.predict.configuration import artefact as configuration

        return configuration.open_model(stored)
    from crosscast.predict.time import artefact as time

    return time.open_model(stored)
