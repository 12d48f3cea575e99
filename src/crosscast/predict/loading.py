"""Reading an artefact of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.predict.artefact import CONFIGURATION, RELATIVE, TIME, read_card

if TYPE_CHECKING:
    from crosscast.predict.configuration.artefact import TrainedConfigurationModel
    from crosscast.predict.relative.artefact import TrainedRelativeModel
    from crosscast.predict.time.artefact import TrainedModel

__all__ = ["load_model"]


def load_model(folder: str | Path) -> TrainedModel | TrainedConfigurationModel | TrainedRelativeModel:
    """Read the card of a model that `crosscast train` wrote; arrays are read when they are needed.

    Parameters
    ----------
    folder
        Folder of the model.

    Returns
    -------
    TrainedModel, TrainedConfigurationModel or TrainedRelativeModel
        As its card says: a model that predicts times, one by which configurations are chosen, or one that
        predicts times relative to each other.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, or one of a newer format.
    """
    target = read_card(Path(folder)).choice("target", (TIME, CONFIGURATION, RELATIVE), TIME)
    # Imported here: each needs a part of the package that the others do not.
    if target == RELATIVE:
        from crosscast.predict.relative.artefact import load_relative_model

        return load_relative_model(folder)
    if target == CONFIGURATION:
        from crosscast.predict.configuration.artefact import load_configuration_model

        return load_configuration_model(folder)
    from crosscast.predict.time.artefact import load_model as load_times

    return load_times(folder)
