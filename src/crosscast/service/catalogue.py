"""Names for requests: profiles of applications, isolated runs, and sample runs under power caps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from crosscast.data.corun import Solo, co_runs
from crosscast.data.dataset import BUNDLED, BUNDLED_CORUN, dataset_named
from crosscast.data.isolated_runs import FORMAT, read_profile
from crosscast.errors import InputError
from crosscast.forecasting.profiles import Recorded, read_profiles
from crosscast.prediction.time.data import ProfileBatch
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
    isolated: Mapping[str, Solo] = field(default_factory=dict)
    recorded: Recorded = field(default_factory=dict)  # Times of datasets, which answers show as the command

    @classmethod
    def read(cls, paths: Iterable[str]) -> Catalogue:
        """Read datasets, files of profiles, launch files, files of isolated runs, and folders of these."""
        launches: dict[str, list[Profile]] = {}
        isolated: dict[str, Solo] = {}
        recorded: Recorded = {}
        for path in _files(paths):
            if (run := _isolated_run(path)) is not None:
                isolated[_name(run.application, run.size)] = run
                continue
            profiled, times = ([], {}) if _has_only_mixes(path) else read_profiles(path)
            recorded.update(times)
            for each in profiled:
                launches.setdefault(_name(each.application or each.kernel, each.size), []).append(each)
            if _is_dataset(path):
                runs = co_runs(dataset_named(path)).solos
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
                raise InputError(f"{path}: cannot read the folder ({error.strerror})") from error
        else:
            yield path


def _is_dataset(path: Path) -> bool:
    return (path.is_dir() and any(path.glob("*.parquet"))) or str(path) in (BUNDLED, BUNDLED_CORUN)


def _has_only_mixes(path: Path) -> bool:
    return _is_dataset(path) and dataset_named(path).profiles.num_rows == 0


def _isolated_run(path: Path) -> Solo | None:
    if path.suffix != ".json" or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    is_run = isinstance(document, dict) and document.get("format") == FORMAT
    return read_profile(path).solo if is_run else None


def named_runs(
    names: Sequence[str], catalogued: Mapping[str, Solo], trained_with: Iterable[Solo]
) -> list[Solo]:
    """Return isolated runs by name, of the catalogue or of the model's training data."""
    runs = {_name(run.application, run.size): run for run in trained_with} | dict(catalogued)
    return [_found(runs, name, "jobs") for name in names]
