"""The models that are served: read before the first request, and read again without one being lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from crosscast.decide.samples import SampledKernel, read_samples
from crosscast.errors import CrosscastError, InputError
from crosscast.prediction.named_models import folder_of, load_model
from crosscast.prediction.store import CARD
from crosscast.service.catalogue import Catalogue, UnknownName

LOG = logging.getLogger("crosscast.service")

_SERVED = ("time", "configuration", "corun")


@dataclass(frozen=True)
class ServedModel:
    """A model as it was read; requests that have begun keep it when another takes its place."""

    name: str
    folder: Path
    question: str
    trained: Any
    stamp: tuple[int, ...]  # Of the card that it was read from
    samples: Mapping[str, SampledKernel]  # Of kernels that requests name, as this model knows configurations
    made_s: float  # When its card was written, and when it was read, in seconds of the epoch
    read_s: float
    refused: str | None = None  # Why what is in its folder now was not taken

    @property
    def errors(self) -> dict[str, float]:
        """Numbers of its card on held-out data."""
        errors = self.trained.card.errors
        own = [each for each in errors.get("results", ()) if each.get("model") == self.trained.card.model]
        told = own[0] if own else errors
        return {name: float(value) for name, value in told.items() if isinstance(value, float)}

    def facts(self) -> dict[str, object]:
        """What every answer says of it: nothing of the machine on which it was trained."""
        card = self.trained.card
        training = {name: value for name, value in card.training.items() if name != "libraries"}
        if isinstance(training.get("dataset"), str):
            training["dataset"] = PurePath(training["dataset"]).name
        return {"name": card.model, "served_as": self.name, "training": training}


@dataclass(frozen=True)
class ServiceState:
    """All that answers are made of, at one moment."""

    models: Mapping[str, ServedModel]
    catalogue: Catalogue
    refused: str | None = None  # Why what the catalogue's files hold now was not taken
    generation: int = 0

    def models_for(self, question: str, name: str | None) -> list[ServedModel]:
        """The models that may answer: the one that is named, or all of the question."""
        fitting = [each for each in self.models.values() if each.question == question]
        if name is not None:
            fitting = [each for each in fitting if each.name == name]
        if not fitting:
            known = ", ".join(each.name for each in self.models.values() if each.question == question)
            expected = f"one for this question ({known or 'none is served'})"
            raise UnknownName.of(field="model", expected=expected, found=repr((name or "")[:200]))
        return fitting


class Served:
    """The models of a service and its catalogue; `state` is replaced as a whole.

    Parameters
    ----------
    models
        Folders of models, or names that ``crosscast models`` lists.
    profiles
        Places that `Catalogue.read` takes.
    samples
        Files of sample runs, as ``crosscast choose configuration`` takes them.

    Raises
    ------
    InputError
        If a model, a profile or a file of runs cannot be read, or two models have one name.
    """

    def __init__(self, models: Sequence[str], profiles: Sequence[str], samples: Sequence[str] = ()) -> None:
        self._profiles, self._samples = tuple(profiles), tuple(map(Path, samples))
        catalogue = Catalogue.read(self._profiles)
        found: dict[str, ServedModel] = {}
        for each in models:
            folder = folder_of(each)
            name = folder.resolve().name
            if name in found:
                raise InputError.of(where="model", expected="models of different names", found=f"two {name}")
            found[name] = self._read(name, folder, catalogue)
        if not found:
            raise InputError.of(where="model", expected="at least one", found="none")
        self._check_samples(found)
        self.state = ServiceState(found, catalogue)

    def refresh(self, everything: bool = False) -> bool:
        """Read again the models whose files changed, or all and the catalogue; whether something is new.

        What cannot be read leaves what was there, and `ServiceState` says why.
        """
        old = self.state
        catalogue, refused = old.catalogue, old.refused
        if everything:
            try:
                catalogue, refused = Catalogue.read(self._profiles), None
            except (CrosscastError, OSError) as error:
                refused = _without_paths(error, self._profiles)
                LOG.error("the profiles stay as they were: %s", error)
        models = {
            name: self._again(each, catalogue) if everything or _stamp(each.folder) != each.stamp else each
            for name, each in old.models.items()
        }
        if catalogue is old.catalogue and all(models[name] is old.models[name] for name in models):
            return False
        self.state = ServiceState(models, catalogue, refused, old.generation + 1)
        return True

    def _again(self, old: ServedModel, catalogue: Catalogue) -> ServedModel:
        stamp = _stamp(old.folder)
        try:
            new = self._read(old.name, old.folder, catalogue)
            if new.question != old.question:
                raise InputError.of(where=old.name, expected=f"a model of {old.question}", found=new.question)
        except (CrosscastError, OSError) as error:
            LOG.error("model %s stays as it was: %s", old.name, error)
            # Not again before its files change again.
            return replace(old, stamp=stamp, refused=_without_paths(error, [str(old.folder)]))
        LOG.info("model %s was read again", old.name)
        return new

    def _read(self, name: str, folder: Path, catalogue: Catalogue) -> ServedModel:
        """Read a model with its arrays, and ask it something, so that the first request need not wait."""
        stamp = _stamp(folder)
        trained = load_model(folder)
        question = trained.question
        if question not in _SERVED:
            raise InputError(f"{folder}: expected a model of times, configurations or co-runs, found another")
        samples = dict(self._of_samples(trained)) if question == "configuration" else {}
        _ = trained.fitted
        if question == "time":
            for profiled in list(catalogue.profiles.values())[:1]:
                # A profile that it refuses is said to who asks for it.
                with suppress(InputError):
                    trained.predict(profiled.batch).to_dict()
        now = time.time()
        made_s = stamp[0] / 1e9 if stamp else now
        return ServedModel(name, folder, question, trained, stamp, samples, made_s, now)

    def _of_samples(self, trained: Any) -> Iterator[tuple[str, SampledKernel]]:
        for path in self._samples:
            # Runs of another machine are those of another model.
            with suppress(InputError):
                for kernel in read_samples(path, trained.card).kernels:
                    yield from ((name, kernel) for name in kernel.names)

    def _check_samples(self, models: Mapping[str, ServedModel]) -> None:
        choosers = [each for each in models.values() if each.question == "configuration"]
        for path in self._samples:
            refusals = []
            for each in choosers:
                try:
                    read_samples(path, each.trained.card)
                except InputError as error:
                    refusals.append(error)
            if len(refusals) == len(choosers):
                raise refusals[0] if refusals else InputError(f"{path}: expected a model of configurations")


def _stamp(folder: Path) -> tuple[int, ...]:
    """What changes when a model is replaced, whatever clocks say; nothing if no card is there."""
    try:
        found = (folder / CARD).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _without_paths(error: Exception, places: Sequence[str]) -> str:
    """The sentence of an error, with the last names of places only."""
    text = str(error)
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, PurePath(place).name)
    return text
