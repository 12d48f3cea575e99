"""Models by name: those bundled with Crosscast, and those that the user stores; the first that fits an input.

The questions by name stand here as well; a new one is added to `QuestionName`.
"""

from __future__ import annotations

import importlib
import logging
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args, overload

import msgspec

from crosscast.data.fields import as_sequence, decode
from crosscast.data.files import data_home, exists
from crosscast.errors import ImplausibleError, InputError
from crosscast.prediction import store
from crosscast.prediction.trained import UnsuitedError, format_names

if TYPE_CHECKING:
    from crosscast.device import Device
    from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.relative.artefact import TrainedRelativeModel
    from crosscast.prediction.time.card import TrainedTimes

    Devices: TypeAlias = Sequence[str | Device] | str | Device | None

LOGGER = logging.getLogger("crosscast.models")

QuestionName = Literal["time", "relative", "configuration", "corun"]
"""Names of the questions that models answer."""


class Home(NamedTuple):
    """Modules that implement a question."""

    artefact: str  # Module whose `open_model` returns the trained model of a folder
    question: str  # Module whose `QUESTION` evaluates and trains (`crosscast.evaluation.Question`)


HOMES: dict[str, Home] = {
    name: Home(f"crosscast.prediction.{name}.artefact", f"crosscast.evaluation.{name}.question")
    for name in get_args(QuestionName)
}
"""Modules of each question."""


BUNDLED = Path(__file__).parent / "bundled"
"""Folder of the bundled models."""

PLUGINS = "crosscast.time_models"
"""Group of the entry points of models of times of other packages."""


class _Described(msgspec.Struct, frozen=True, kw_only=True):
    question: QuestionName  # That the model answers
    about: str  # One line on what it predicts
    licence: str  # Of the training data, as an SPDX expression
    origin: str  # Of the training data
    citation: str  # What to cite


class _Calibrated(msgspec.Struct, frozen=True):
    device: str | None = None


class _Facts(msgspec.Struct, frozen=True):
    """Facts of the training on the card of a user's model."""

    about: str = "made on this machine"
    licence: str | None = None
    origin: str | None = None
    citation: str | None = None
    calibrated: _Calibrated | None = None


class NamedModel(_Described, frozen=True, kw_only=True):
    """A model with a name, and its origin."""

    name: str
    folder: Path
    own: bool = False  # Whether the user made it here
    calibrated: str | None = None  # The device of this machine that calibration added

    @property
    def command(self) -> str:
        """The command that uses it."""
        return {"configuration": "choose", "corun": "predict corun, colocate"}.get(
            self.question, f"predict {self.question}"
        )

    def to_dict(self) -> dict[str, object]:
        """The model, for JSON."""
        return {**msgspec.structs.asdict(self), "folder": str(self.folder)}


class Recipe(_Described, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a bundled model is made, and its description."""

    source: str  # Name of an importer, or of a bundled dataset
    files: str = ""  # Input of the importer, in the folder of the public data
    model: str | None = None  # Name of the kind of model; the question's default by default
    held_out: str = ""  # Applications of the errors, separated by spaces; by default all


@cache
def recipes() -> dict[str, Recipe]:
    """Recipes of the bundled models, by name."""
    content = tomllib.loads((BUNDLED / "models.toml").read_text(encoding="utf-8"))
    return msgspec.convert(content, dict[str, Recipe])


def models_home() -> Path:
    """Folder of the user's models; it may not exist."""
    return data_home() / "models"


def named_models(question: QuestionName | None = None) -> list[NamedModel]:
    """All models with a name, or those of a question: the user's, then the bundled ones.

    Damaged ones of the user are left out, with a warning in the log.
    """
    return [each for each in (*_own(), *_bundled()) if question in (None, each.question)]


def models_for_devices(question: QuestionName, devices: Collection[str]) -> list[NamedModel]:
    """Models of a question in the order to try: those calibrated on these devices, then all others.

    Models that were calibrated on other devices are left out.
    """
    known = named_models(question)
    usable = [each for each in known if each.calibrated is None or each.calibrated in devices]
    return sorted(usable, key=lambda each: each.calibrated is None)


def _bundled() -> Iterator[NamedModel]:
    for name, recipe in recipes().items():
        described = {field: getattr(recipe, field) for field in _Described.__struct_fields__}
        yield NamedModel(name=name, folder=BUNDLED / name, **described)


def _own() -> Iterator[NamedModel]:
    home = models_home()
    for card in sorted(home.glob(f"*/{store.CARD}")) if home.is_dir() else ():
        try:
            yield _own_model(card.parent, card.parent.name)
        except InputError as error:
            _warn(f"{error}; this model is passed over")


@cache
def _warn(sentence: str) -> None:
    """Log a warning once."""
    LOGGER.warning("%s", sentence)


def _own_model(folder: Path, name: str) -> NamedModel:
    stored = store.read(folder)
    facts = decode(_Facts, stored.card.get("training", {}), stored.where)
    return NamedModel(
        name=name,
        folder=folder,
        question=cast(QuestionName, stored.question),
        about=facts.about,
        licence=facts.licence or "",
        origin=facts.origin or "",
        citation=facts.citation or "",
        own=True,
        calibrated=None if facts.calibrated is None else facts.calibrated.device,
    )


def model_named(model: str) -> NamedModel:
    """A model by its name, or by the folder that ``crosscast train`` wrote."""
    bundled = {each.name: each for each in _bundled()}
    return bundled[model] if model in bundled else _own_model(folder_of(model), model)


def folder_of(model: str | Path, question: str | None = None) -> Path:
    """Folder of a model, given by name or folder; `question` is the one that a named model must answer."""
    if exists(model) or Path(model).name != str(model):
        return Path(model)
    if is_named(str(model)):
        return (BUNDLED if str(model) in recipes() else models_home()) / model
    names = ", ".join(
        [each.name for each in named_models() if question in (None, each.question)]
        + [each.name for each in entry_points(group=PLUGINS) if question in (None, "time")]
    )
    raise InputError.of(field="model", expected=f"a folder, or one of {names}", found=repr(str(model)))


def is_named(name: str) -> bool:
    """Whether a bundled model or one of the user has this name, even if it is damaged."""
    return name in recipes() or exists(models_home() / name / store.CARD)


def _is_plugged(model: str) -> bool:
    """Whether another package has a model of this name, and there is no folder or named model of it."""
    if exists(model) or is_named(model):
        return False
    return any(each.name == model for each in entry_points(group=PLUGINS))


@overload
def load_model(model: str | Path, question: Literal["time"]) -> TrainedTimes[Any]: ...


@overload
def load_model(model: str | Path, question: Literal["relative"]) -> TrainedRelativeModel: ...


@overload
def load_model(model: str | Path, question: Literal["configuration"]) -> TrainedConfigurationModel: ...


@overload
def load_model(model: str | Path, question: Literal["corun"]) -> TrainedCoRunModel: ...


@overload
def load_model(model: str | Path, question: str | None = None) -> Any: ...


def load_model(model: str | Path, question: str | None = None) -> Any:
    """Read a model that ``crosscast train`` or `crosscast.train` wrote, or one with a name.

    The card is read and checked immediately, most arrays at the first prediction; no code of the folder runs.
    Any other name may be that of a model of times of another installed package, whose code runs (entry points
    of the group ``crosscast.time_models``).

    Parameters
    ----------
    model
        Folder of the model, or its name, as ``crosscast models`` lists it.
    question
        Question that it must answer, from which type checkers infer the result; by default any.

    Returns
    -------
    TrainedTimeModel, TrainedRelativeModel, TrainedConfigurationModel or TrainedCoRunModel
        Depending on its question. All have `card`, `folder`, `predict` and `save`:

        - ``time``: ``predict(profiles, devices=None, probes=None, level=0.9)``, seconds on each device;
        - ``relative``: ``predict(runs, relative_to=None, level=0.9)``, ratios of times between devices;
        - ``configuration``: ``predict(runs)``, seconds and watts at each configuration, and ``choose``;
        - ``corun``: ``predict(mixes, level=0.9)``, slowdowns, seconds and watts of mixes.

    Raises
    ------
    InputError
        If there is no such model, or it is damaged, of a newer format, or one of another question.

    Examples
    --------
    >>> import crosscast
    >>> len(crosscast.load_model("opencl-15-devices").devices)
    15
    """
    if not isinstance(model, str | Path):
        expected = "a model's name or folder"
        raise InputError.of(field="model", expected=expected, found=type(model).__name__)
    if question in (None, "time") and _is_plugged(str(model)):
        return importlib.import_module("crosscast.prediction.time.artefact").plugged_model(str(model))
    stored = store.read(folder_of(model, question), tuple(HOMES) if question is None else question)
    # Each question needs other parts of the package.
    return importlib.import_module(HOMES[stored.question].artefact).open_model(stored)


Thing = TypeVar("Thing")

ModelT = TypeVar("ModelT")

Loaded = Iterable[tuple["NamedModel | None", ModelT]]


def models_for(model: str | Path | None, question: QuestionName, devices: Devices = None) -> Loaded[Any]:
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

    A model does not fit if `use` raises InputError, but ImplausibleError is of the input alone. If none fits,
    the error is of the models that the input is for (others raise UnsuitedError). `notify` is told a default
    model, and why such models before it do not fit.
    """
    refusals: dict[str, InputError] = {}
    for named, trained in models:
        try:
            result = use(trained)
        except InputError as error:
            if named is None or isinstance(error, ImplausibleError):
                raise
            refusals[named.name] = error
        else:
            if named is not None and notify is not None:
                for name, reason in _of_suited(refusals).items():
                    notify(f"crosscast: model {name} does not fit: {reason}")
                notify(f"crosscast: model {named.name}: {named.about} (crosscast models lists all)")
            return trained, result
    raise _joined(_of_suited(refusals) or refusals)


def _of_suited(refusals: Mapping[str, InputError]) -> dict[str, InputError]:
    """Errors of the models that the input is for."""
    return {name: each for name, each in refusals.items() if not isinstance(each, UnsuitedError)}


def _joined(refusals: Mapping[str, InputError]) -> InputError:
    """One error of those of several models."""
    errors = list(refusals.values())
    first = errors[0]
    if len({str(error) for error in errors}) == 1 or all(isinstance(e, UnknownDevice) for e in errors):
        # The errors differ at most in the devices that models know; the first is the default.
        return first
    if first.found and len({(each.where, each.field, each.found) for each in errors}) == 1:
        # Each model knows other names.
        expected = ", or ".join(f"{each.expected} (model {name})" for name, each in refusals.items())
        return InputError.of(where=first.where, field=first.field, expected=expected, found=first.found)
    reasons = "; ".join(f"{name}: {error}" for name, error in refusals.items())
    return InputError.of(where="--model", problem=f"none of the models that have a name fits ({reasons})")


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
    from crosscast.devices.catalogue import NameOfSeveral, catalogue, device_named, like

    if name in known:
        return name
    try:
        device = device_named(name)
    except NameOfSeveral:
        raise
    except InputError as error:
        near = like(name, dict.fromkeys([*known, *catalogue()]))
        raise UnknownDevice.of(
            where=field,
            expected=f"some of {format_names(known, _MOST_KNOWN)}, or {error.expected}",
            found=f"{name!r}{near}; {_HOW_TO_ADD}",
        ) from error
    return device.key if device.key in known else device
