"""What was counted in runs, from any file that says it, for models of relative times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.datasets import dataset_named
from crosscast.cli.profiles import read_profiles
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.predict.relative.data import Observations

__all__ = ["Wanted", "read_observations"]

_MOST_NAMED = 20


@dataclass(frozen=True)
class Wanted:
    """Which runs are asked about, and by what.

    Parameters
    ----------
    application, kernel
        Take those of this name alone.
    source
        Device on which they were counted; of a dataset, take those alone.
    profiles
        Whether the model knows profiles, which are of no device, and not counters.
    """

    application: str | None
    kernel: str | None
    source: str | None
    profiles: bool


def read_observations(path: Path, wanted: Wanted) -> Observations:
    """Read the runs of a file or folder.

    Parameters
    ----------
    path
        A dataset; or what a counter tool wrote, or `crosscast.cli.profiles.read_profiles` reads, as the model
        knows counters or profiles.
    wanted
        Which of its runs.

    Raises
    ------
    InputError
        If it cannot be read, or has no such run.
    """
    from crosscast.tables.importers.counters.hpctoolkit import is_hpctoolkit

    if str(path) == "bundled" or (path.is_dir() and not is_hpctoolkit(path)):
        found = _of_dataset(path, wanted)
    else:
        found = _of_profiles(path) if wanted.profiles else _of_counter_tool(path, wanted.source)
    found = _only("--application", wanted.application, found, found.application)
    return _only("--kernel", wanted.kernel, found, found.kernel)


def _of_dataset(folder: Path, wanted: Wanted) -> Observations:
    from crosscast.predict.relative.observed import observations_of

    found = observations_of(dataset_named(folder), counters="profiles" if wanted.profiles else "sessions")
    # Profiles are of no device: that a time is known on one is no matter of theirs.
    return found if wanted.profiles else _only("--source", wanted.source, found, found.source)


def _of_profiles(path: Path) -> Observations:
    from crosscast.predict.relative.data import profiles_seen
    from crosscast.predict.time.data import ProfileBatch

    profiles, _ = read_profiles(path)
    return profiles_seen(ProfileBatch.of(profiles))


def _of_counter_tool(path: Path, source: str | None) -> Observations:
    import numpy as np

    from crosscast.predict.relative.data import NO_SOURCE, Observations
    from crosscast.predict.relative.observed import numeric_settings, scale_of
    from crosscast.tables.importers.counters.counted_profile import counted_profile

    (run,) = counted_profile(path)
    settings = run.configuration.settings
    numbers = numeric_settings(settings)
    return Observations(
        application=(run.application,),
        kernel=(run.kernel,),
        size=(run.size,),
        scale=(scale_of(settings, run.size),),
        source=(source or NO_SOURCE,),
        names=tuple(run.counters),
        counters=np.array([list(run.counters.values())], dtype=np.float64),
        configuration=tuple(numbers),
        settings=np.array([list(numbers.values())], dtype=np.float64),
        time_s=np.array([run.time_s], dtype=np.float64),
    )


def _only(option: str, name: str | None, observations: Observations, names: Sequence[str]) -> Observations:
    """Those of a name; all for ``None``."""
    if name is None:
        return observations
    import numpy as np

    from crosscast.predict.warnings import format_names

    if name not in names:
        known = format_names(list(dict.fromkeys(names)), _MOST_NAMED)
        raise InputError(f"{option}: expected one of {known}, found {name!r}")
    return observations.rows(np.array([each == name for each in names]))
