"""The served models, profiles and isolated runs: read first, and reread without losing requests."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from crosscast.data.corun import FORMAT, IsolatedRun, co_runs, read_profile
from crosscast.data.dataset import BUNDLED, BUNDLED_CORUN, dataset_named
from crosscast.decide.samples import SampledKernel, read_samples
from crosscast.errors import CrosscastError, InputError
from crosscast.forecasting import Recorded, read_profiles
from crosscast.prediction.named_models import folder_of, load_model
from crosscast.prediction.store import CARD
from crosscast.prediction.time import ProfileBatch
from crosscast.profile import Profile

_MOST_BYTES = 1 << 20


class UnknownName(InputError):
    """A request names a model, a profile or a run that the service does not have."""


@dataclass(frozen=True, eq=False)
class ServedLaunches:
    """The launches of an application, and the batch of profiles that models predict."""

    launches: tuple[Profile, ...]
    batch: ProfileBatch

    @classmethod
    def of(cls, launches: Sequence[Profile], invocations: int | None = None) -> ServedLaunches:
        """Group launches by kernel."""
        return cls(tuple(launches), ProfileBatch.of(launches, invocations=invocations))


@dataclass(frozen=True)
class Catalogue:
    """Profiles, isolated runs and recorded times by name: ``application/size`` as far as both are known."""

    profiles: Mapping[str, ServedLaunches] = field(default_factory=dict)
    isolated: Mapping[str, IsolatedRun] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=dict)  # Times of datasets, which answers show as the command

    @classmethod
    def read(cls, paths: Iterable[str]) -> Catalogue:
        """Read datasets, files of profiles, launch files, files of isolated runs, and folders of these."""
        launches: dict[str, list[Profile]] = {}
        isolated: dict[str, IsolatedRun] = {}
        recorded: Recorded = {}
        for path in _files(paths):
            if (run := _isolated_run(path)) is not None:
                isolated[_name(run.application, run.size)] = run
                continue
            dataset = dataset_named(path) if _is_dataset(path) else None
            if dataset is None or dataset.profiles.num_rows:
                profiled, times = read_profiles(path)
                recorded.update(times)
                for each in profiled:
                    launches.setdefault(_name(each.application or each.kernel, each.size), []).append(each)
            if dataset is not None:
                runs = co_runs(dataset).isolated_runs
                isolated.update({_name(run.application, run.size): run for run in runs})
        profiles = {name: ServedLaunches.of(of_name) for name, of_name in sorted(launches.items())}
        return cls(profiles, dict(sorted(isolated.items())), recorded)

    def profile(self, name: str) -> ServedLaunches:
        """Return the profiles of a name."""
        return _found(self.profiles, name, "profile")

    def to_dict(self) -> dict[str, object]:
        """Return the names, with the kernels and launches of profiles and the devices of isolated runs."""
        return {
            "profiles": [
                {
                    "name": name,
                    "kernels": list(dict.fromkeys(each.batch.kernel)),
                    "launches": len(each.launches),
                }
                for name, each in self.profiles.items()
            ],
            "isolated_runs": [{"name": name, "device": run.device} for name, run in self.isolated.items()],
        }


def _name(*parts: str | None) -> str:
    return "/".join(filter(None, parts))


_Known = TypeVar("_Known")


def _found(by_name: Mapping[str, _Known], name: str, field: str) -> _Known:
    if name not in by_name:
        raise UnknownName.of(field=field, expected="a name that /v1/profiles lists", found=repr(name[:200]))
    return by_name[name]


def _files(paths: Iterable[str]) -> Iterable[Path]:
    for name in paths:
        path = Path(name)
        if path.is_dir() and not _is_dataset(path):
            try:
                yield from (each for each in sorted(path.iterdir()) if each.is_file())
            except OSError as error:
                raise InputError.of(
                    where=path, problem=f"cannot read the folder ({error.strerror})"
                ) from error
        else:
            yield path


def _is_dataset(path: Path) -> bool:
    return (path.is_dir() and any(path.glob("*.parquet"))) or str(path) in (BUNDLED, BUNDLED_CORUN)


def _isolated_run(path: Path) -> IsolatedRun | None:
    if path.suffix != ".json" or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    is_run = isinstance(document, dict) and document.get("format") == FORMAT
    return read_profile(path).isolated_run if is_run else None


def named_runs(
    names: Sequence[str], catalogued: Mapping[str, IsolatedRun], trained_with: Iterable[IsolatedRun]
) -> list[IsolatedRun]:
    """Return isolated runs by name, of the catalogue or of the model's training data."""
    runs = {_name(run.application, run.size): run for run in trained_with} | dict(catalogued)
    return [_found(runs, name, "jobs") for name in names]


LOG = logging.getLogger("crosscast.service")

_SERVED = ("time", "configuration", "corun")


@dataclass(frozen=True)
class ServedModel:
    """A model as it was read; requests in progress keep it when it is replaced."""

    name: str
    folder: Path
    question: str
    trained: Any
    stamp: tuple[int, ...]  # Of its card, when it was read
    samples: Mapping[str, SampledKernel]  # By name, of kernels in this model's configurations
    made_s: float  # Times of writing its card and of reading it, in seconds since the epoch
    read_s: float
    refused: str | None = None  # Why the folder's present content was refused

    @property
    def errors(self) -> dict[str, float]:
        """Scores on held-out data, of its card."""
        errors = self.trained.card.errors
        results = [each for each in errors.get("results", ()) if each.get("model") == self.trained.card.model]
        scores = results[0] if results else errors
        return {name: float(value) for name, value in scores.items() if isinstance(value, float)}

    def facts(self) -> dict[str, object]:
        """Return its name and training for answers, without facts of the machine that trained it."""
        card = self.trained.card
        training = {name: value for name, value in card.training.items() if name != "libraries"}
        if isinstance(training.get("dataset"), str):
            training["dataset"] = PurePath(training["dataset"]).name
        return {"name": card.model, "served_as": self.name, "training": training}


@dataclass(frozen=True)
class ServiceState:
    """The models and the catalogue that a request is answered from."""

    models: Mapping[str, ServedModel]
    catalogue: Catalogue
    refused: str | None = None  # Why the present files of the catalogue were refused
    generation: int = 0

    def models_for(self, question: str, name: str | None) -> list[ServedModel]:
        """Return the models for a question: the named one, or all."""
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

    Models are folders, or names that ``crosscast models`` lists, each name once; profiles are datasets, files
    and folders for `Catalogue.read`; samples are files that ``crosscast choose configuration`` takes.
    """

    def __init__(self, models: Sequence[str], profiles: Sequence[str], samples: Sequence[str] = ()) -> None:
        self._profiles, self._samples = tuple(profiles), tuple(map(Path, samples))
        catalogue = Catalogue.read(self._profiles)
        served: dict[str, ServedModel] = {}
        for each in models:
            folder = folder_of(each)
            name = folder.resolve().name
            if name in served:
                raise InputError.of(where="model", expected="models of different names", found=f"two {name}")
            served[name] = self._read(name, folder, catalogue)
        if not served:
            raise InputError.of(where="model", expected="at least one", found="none")
        self._check_samples(served)
        self.state = ServiceState(served, catalogue)
        self.tokens_refused: str | None = None  # Why the present file of tokens was refused

    def refresh(self, everything: bool = False) -> bool:
        """Reread the models whose files changed, or all and the catalogue; return whether any was replaced.

        A model or catalogue that cannot be read leaves the earlier one, and `refused` says why.
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
            # The new stamp prevents another attempt until its files change.
            return replace(old, stamp=stamp, refused=_without_paths(error, [str(old.folder)]))
        LOG.info("model %s was read again", old.name)
        return new

    def _read(self, name: str, folder: Path, catalogue: Catalogue) -> ServedModel:
        """Read a model with its arrays, and predict once, so that the first request need not wait."""
        stamp = _stamp(folder)
        trained = load_model(folder)
        question = trained.question
        if question not in _SERVED:
            raise InputError.of(
                where=folder, expected="a model of times, configurations or co-runs", found="another"
            )
        samples = dict(self._of_samples(trained)) if question == "configuration" else {}
        _ = trained.fitted
        if question == "time":
            for profiled in list(catalogue.profiles.values())[:1]:
                # A refused profile is reported to the request that names it.
                with suppress(InputError):
                    trained.predict(profiled.batch).to_dict()
        now = time.time()
        made_s = stamp[0] / 1e9 if stamp else now
        return ServedModel(name, folder, question, trained, stamp, samples, made_s, now)

    def _of_samples(self, trained: Any) -> Iterator[tuple[str, SampledKernel]]:
        for path in self._samples:
            # Runs of another machine belong to another model.
            with suppress(InputError):
                for kernel in read_samples(path, trained.card).kernels:
                    yield from ((name, kernel) for name in kernel.names)

    def _check_samples(self, models: Mapping[str, ServedModel]) -> None:
        choosers = [each for each in models.values() if each.question == "configuration"]
        for path in self._samples:
            if not path.is_file():
                raise InputError.of(where=path, problem="cannot read the samples (no such file)")
            refusals = []
            for each in choosers:
                try:
                    read_samples(path, each.trained.card)
                except InputError as error:
                    refusals.append(error)
            if not choosers:
                expected, found = "a model that chooses configurations among --model", ", ".join(models)
                raise InputError.of(where="--samples", expected=expected, found=found)
            if len(refusals) == len(choosers):
                raise refusals[0]


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return the time, size and inode of a model's card, which identify its version; empty without a card."""
    try:
        status = (folder / CARD).stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _without_paths(error: Exception, paths: Sequence[str]) -> str:
    """Return the text of an error, with paths cut to their last names."""
    text = str(error)
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, PurePath(path).name)
    return text
