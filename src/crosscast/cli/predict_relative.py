"""``crosscast predict`` with a model of relative times: by what was counted in a run on one device."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.cli.doubted import warn_of
from crosscast.cli.option_names import option_names
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.predict.relative.artefact import RelativePrediction, TrainedRelativeModel
    from crosscast.predict.relative.data import Observations

__all__ = ["predict_relative"]


def predict_relative(
    files: Sequence[Path],
    folder: Path,
    *,
    relative_to: str | None,
    source: str | None,
    time_s: float | None,
    application: str | None,
    kernel: str | None,
    level: float,
    json: bool,
) -> None:
    """Predict runs, and print what people or programs want to know.

    Parameters
    ----------
    files
        Profiles of counter tools, profiles of kernels, or datasets.
    folder
        Folder of the model.
    relative_to, source, time_s, application, kernel, level, json
        As `crosscast.cli.predict.predict` has them.

    Raises
    ------
    InputError
        If something of the options, a file or the model is not as expected.
    """
    from crosscast.cli.counted import Wanted, read_observations
    from crosscast.predict.relative.artefact import load_relative_model, relative_predictions_of
    from crosscast.predict.relative.data import NO_SOURCE
    from crosscast.report.relative_prediction import print_relative_predictions

    model = load_relative_model(folder)
    _check_device("--relative-to", relative_to, model.devices)
    known = dict.fromkeys((*model.card.sources, *model.devices))
    _check_device("--source", source, [each for each in known if each != NO_SOURCE])
    if time_s is not None and not time_s > 0:
        raise InputError(f"--time: expected seconds above 0, found {time_s:g}")
    of_profiles = model.card.sources == (NO_SOURCE,)
    if of_profiles and source is not None and time_s is None:
        raise InputError("--source: expected with --time, as profiles are of no device, found it alone")
    found: list[RelativePrediction] = []
    with option_names():
        read = [read_observations(file, Wanted(application, kernel, source, of_profiles)) for file in files]
        if time_s is not None:
            _check_timed(read, model.devices, source)
        for observations in read:
            found += relative_predictions_of(
                model,
                observations,
                relative_to=relative_to,
                level=level,
                timed_on=source if source in model.devices else None,
                time_s=time_s,
            )
    warn_of(found)
    if json:
        print(json_format.dumps(_answer(found, model), allow_nan=False))
    else:
        print_relative_predictions(found, model.card, sys.stdout)


def _check_device(option: str, device: str | None, known: Sequence[str]) -> None:
    if device is not None and device not in known:
        raise InputError(f"{option}: expected one of {', '.join(known)}, found {device!r}")


def _check_timed(read: Sequence[Observations], devices: Sequence[str], source: str | None) -> None:
    """Refuse a time of several runs, or on no device that the model knows."""
    runs = sum(map(len, read))
    if runs > 1:
        raise InputError(f"--time: expected one run to predict, found {runs}")
    device = source or read[0].source[0]
    if device not in devices:
        raise InputError(
            f"--time: expected --source, the device that it was measured on, to be one of "
            f"{', '.join(devices)}, found {source or 'none'}"
        )


def _answer(found: Sequence[RelativePrediction], model: TrainedRelativeModel) -> dict[str, Any]:
    """The runs; of a single one, what belongs to it also by itself."""
    runs = [prediction.to_dict() for prediction in found]
    return {
        **(runs[0] if len(runs) == 1 else {}),
        "runs": runs,
        "model": {"name": model.card.model, "training": dict(model.card.training)},
    }
