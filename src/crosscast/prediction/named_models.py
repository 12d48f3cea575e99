"""Models by name: those that come with Crosscast, and those that the user keeps."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

import msgspec

from crosscast.data.fields import decode
from crosscast.data.files import data_home
from crosscast.errors import InputError
from crosscast.prediction import store
from crosscast.prediction.registry import HOMES, QuestionName

if TYPE_CHECKING:
    from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.relative.artefact import TrainedRelativeModel
    from crosscast.prediction.time.artefact import TrainedTimeModel
    from crosscast.prediction.time.launch_model import TrainedLaunchTimes
    from crosscast.prediction.time.plugins import PluggedTimeModel

    TrainedTimes: TypeAlias = TrainedTimeModel | TrainedLaunchTimes | PluggedTimeModel

BUNDLED = Path(__file__).parent / "bundled"
"""Folder of the models that come with Crosscast."""

PLUGINS = "crosscast.time_models"
"""Group of the entry points of models of times of other packages."""


class _Described(msgspec.Struct, frozen=True, kw_only=True):
    question: QuestionName  # What the model answers
    about: str  # What it predicts, in one line
    licence: str  # Of the data that it was trained on, as SPDX has it
    origin: str  # Where they are from
    citation: str  # What to cite


class _Calibrated(msgspec.Struct, frozen=True):
    device: str | None = None


class _Facts(msgspec.Struct, frozen=True):
    """What the card of a user's model says of its training."""

    about: str = "made on this machine"
    licence: str | None = None
    origin: str | None = None
    citation: str | None = None
    calibrated: _Calibrated | None = None


class NamedModel(_Described, frozen=True, kw_only=True):
    """A model that is known by its name, and where it is from."""

    name: str
    folder: Path
    own: bool = False  # Whether the user made it here
    calibrated: str | None = None  # The device of this machine that joined it by calibration

    @property
    def command(self) -> str:
        """The command that uses it."""
        return {"configuration": "choose", "corun": "predict corun, colocate"}.get(
            self.question, f"predict {self.question}"
        )

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {**msgspec.structs.asdict(self), "folder": str(self.folder)}


class Recipe(_Described, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model that comes with Crosscast is made, and what is said of it."""

    source: str  # Name of an importer, or of a dataset that comes with Crosscast
    files: str = ""  # What the importer reads, in the folder of the public data
    model: str | None = None  # Name of the kind of model; the question's default by default
    held_out: str = ""  # Applications of which the errors are, with spaces between; all by default


@cache
def recipes() -> dict[str, Recipe]:
    """How each model that comes with Crosscast is made, by name."""
    content = tomllib.loads((BUNDLED / "models.toml").read_text(encoding="utf-8"))
    return msgspec.convert(content, dict[str, Recipe])


def models_home() -> Path:
    """Folder of the user's own models; it may not be there."""
    return data_home() / "models"


def named_models(question: QuestionName | None = None) -> list[NamedModel]:
    """All models that have a name, or those of a question; the user's own first, then the bundled."""
    return [each for each in (*_own(), *_bundled()) if question in (None, each.question)]


def models_for_devices(question: QuestionName, devices: Collection[str]) -> list[NamedModel]:
    """Models of a question in the order to try: what was calibrated on these devices, then all others.

    A model that was calibrated on another device is none of these.
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
        stored = store.read(card.parent)
        facts = decode(_Facts, stored.card.get("training", {}), stored.where)
        yield NamedModel(
            name=card.parent.name,
            folder=card.parent,
            question=cast(QuestionName, stored.question),
            about=facts.about,
            licence=facts.licence or "",
            origin=facts.origin or "",
            citation=facts.citation or "",
            own=True,
            calibrated=None if facts.calibrated is None else facts.calibrated.device,
        )


def folder_of(model: str | Path, question: str | None = None) -> Path:
    """Folder of a model that is named, or is said by its folder.

    Raises
    ------
    InputError
        If it is neither a folder nor the name of a model, of this question if one is given.
    """
    if Path(model).exists() or Path(model).name != str(model):
        return Path(model)
    known = {each.name: each for each in named_models()}
    if str(model) in known:
        return known[str(model)].folder
    names = ", ".join(
        [name for name, each in known.items() if question in (None, each.question)]
        + [each.name for each in entry_points(group=PLUGINS) if question in (None, "time")]
    )
    raise InputError.of(field="model", expected=f"a folder, or one of {names}", found=repr(str(model)))


def _is_plugged(model: str) -> bool:
    """Whether another package has a model of this name, which no folder and no named model has."""
    if Path(model).exists() or model in {each.name for each in named_models()}:
        return False
    return any(each.name == model for each in entry_points(group=PLUGINS))


@overload
def load_model(model: str | Path, question: Literal["time"]) -> TrainedTimes: ...


@overload
def load_model(model: str | Path, question: Literal["relative"]) -> TrainedRelativeModel: ...


@overload
def load_model(model: str | Path, question: Literal["configuration"]) -> TrainedConfigurationModel: ...


@overload
def load_model(model: str | Path, question: Literal["corun"]) -> TrainedCoRunModel: ...


@overload
def load_model(model: str | Path, question: str | None = None) -> Any: ...


def load_model(model: str | Path, question: str | None = None) -> Any:
    """Read a model that ``crosscast train`` or `crosscast.train` wrote, or one that has a name.

    The card is read and checked now, most arrays when the first prediction is made; nothing is run. A
    name that neither a folder nor one of these has may be that of a model of times of another installed
    package, whose code runs (entry points of the group ``crosscast.time_models``).

    Parameters
    ----------
    model
        Folder of the model, or its name, as ``crosscast models`` lists it.
    question
        What it must answer, by which a type checker knows what is returned; by default any question.

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
        If there is no such model, or it is damaged, of a newer format, or one of another question.

    Examples
    --------
    >>> import crosscast
    >>> len(crosscast.load_model("opencl-15-devices").devices)
    15
    """
    if question in (None, "time") and _is_plugged(str(model)):
        return importlib.import_module("crosscast.prediction.time.plugins").plugged_model(str(model))
    stored = store.read(folder_of(model, question), tuple(HOMES) if question is None else question)
    # Each needs a part of the package that the others do not.
    return importlib.import_module(HOMES[stored.question].artefact).open_model(stored)
