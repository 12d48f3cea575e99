"""The first model that fits an input, and devices by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, overload

from crosscast.data.fields import as_sequence
from crosscast.errors import InputError
from crosscast.prediction.named_models import load_model, models_for_devices
from crosscast.prediction.warnings import format_names

if TYPE_CHECKING:
    from crosscast.device import Device
    from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.named_models import NamedModel, TrainedTimes
    from crosscast.prediction.registry import QuestionName
    from crosscast.prediction.relative.artefact import TrainedRelativeModel

    Devices: TypeAlias = Sequence[str | Device] | str | Device | None

__all__ = ["UnknownDevice", "first_fit", "models_for", "named_devices"]

Thing = TypeVar("Thing")

ModelT = TypeVar("ModelT")

Loaded = Iterable[tuple["NamedModel | None", ModelT]]


@overload
def models_for(
    model: str | Path | None, question: Literal["time"], devices: Devices = None
) -> Loaded[TrainedTimes]: ...


@overload
def models_for(
    model: str | Path | None, question: Literal["relative"], devices: Devices = None
) -> Loaded[TrainedRelativeModel]: ...


@overload
def models_for(
    model: str | Path | None, question: Literal["configuration"], devices: Devices = None
) -> Loaded[TrainedConfigurationModel]: ...


@overload
def models_for(
    model: str | Path | None, question: Literal["corun"], devices: Devices = None
) -> Loaded[TrainedCoRunModel]: ...


def models_for(model: str | Path | None, question: QuestionName, devices: Devices = None) -> Loaded[object]:
    """Load the named model; or else all models with a name in turn, lazily.

    A calibrated model comes first if its device is among `devices`, and is left out otherwise.
    """
    if model is not None:
        return [(None, load_model(model, question))]
    given: Sequence[str | Device] = () if devices is None else as_sequence(devices)
    named = models_for_devices(question, {each if isinstance(each, str) else each.key for each in given})
    return ((each, load_model(each.folder, question)) for each in named)


def first_fit(
    models: Loaded[ModelT], use: Callable[[ModelT], Thing], notify: Callable[[str], None] | None = None
) -> tuple[ModelT, Thing]:
    """Try the models in order; return the first that accepts the input, and the result of `use`.

    A model does not fit if `use` raises InputError. `notify` is called with the name of a model by default.
    """
    refusals: dict[str, InputError] = {}
    for named, trained in models:
        try:
            result = use(trained)
        except InputError as error:
            if named is None:
                raise
            refusals[named.name] = error
        else:
            if named is not None and notify is not None:
                notify(f"crosscast: model {named.name}: {named.about} (crosscast models lists all)")
            return trained, result
    errors = list(refusals.values())
    if len({str(error) for error in errors}) == 1 or all(isinstance(e, UnknownDevice) for e in errors):
        # The errors differ at most in the similar names of devices.
        raise max(errors, key=lambda error: len(str(error)))
    reasons = "; ".join(f"{name}: {error}" for name, error in refusals.items())
    raise InputError(f"--model: none of the models that have a name fits ({reasons})")


_HOW_TO_ADD = "to add one, measure it (crosscast calibrate) or describe it (--device-file)"
_MOST_KNOWN = 6


class UnknownDevice(InputError):
    """A device that neither the model nor the catalogue has."""


def named_devices(
    devices: Sequence[str | Device], known: Sequence[str], field: str = "devices"
) -> list[str | Device]:
    """Resolve names to devices of the model, or else of the catalogue, each once."""
    chosen = [_named_device(each, known, field) if isinstance(each, str) else each for each in devices]
    # A device of the catalogue may be named by its key and by its name.
    return list({each if isinstance(each, str) else each.key: each for each in chosen}.values())


def _named_device(name: str, known: Sequence[str], field: str) -> str | Device:
    """Resolve a name to a device of the model, or else of the catalogue."""
    # Imported here: most devices are the model's own.
    from crosscast.devices.catalogue import NameOfSeveral, catalogue, device_named, similar_keys

    if name in known:
        return name
    try:
        device = device_named(name)
    except NameOfSeveral:
        raise
    except InputError as error:
        near = similar_keys(name, dict.fromkeys([*known, *catalogue()]))
        suggestion = f", near to which are {', '.join(near)}" if near else ""
        raise UnknownDevice.of(
            where=field,
            expected=f"some of {format_names(known, _MOST_KNOWN)}, or {error.expected}",
            found=f"{name!r}{suggestion}; {_HOW_TO_ADD}",
        ) from error
    return device.key if device.key in known else device
