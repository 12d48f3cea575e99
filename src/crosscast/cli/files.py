"""Files that predictions are asked about: profiles, counted runs, and descriptions of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.launch import LAUNCH, LaunchOptions, read_inputs
from crosscast.cli.options import dataset_named
from crosscast.errors import InputError
from crosscast.profile import Profile

if TYPE_CHECKING:
    from crosscast.forecasting import Recorded
    from crosscast.kernel import Launch
    from crosscast.prediction.relative.data import Observations


def read_profiles(path: Path, launch: LaunchOptions = LAUNCH) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file or dataset, or make those of launches, with progress.

    A program is launched as the command line says, if it does; else it is read for embedded profiles.
    """
    # Imported here: `--help` needs none of it.
    from crosscast.characterization.launchfiles.launchfile import LAUNCH_FILES
    from crosscast.forecasting import read_profiles as of_file

    sampled = launch.sampled("auto")

    def characterized(launch: Launch, number: int) -> Profile:
        from crosscast.characterization.run import Options
        from crosscast.cli.running import run_launch

        return run_launch(launch, number, Options(sample_groups=sampled))

    if not launch.described:
        if path.suffix in LAUNCH_FILES:
            _start_engine()
        return of_file(path, characterized)
    _start_engine()
    launches = read_inputs(path, launch).launches
    return [characterized(launch, number) for number, launch in enumerate(launches)], {}


def _start_engine() -> None:
    # Imported here: the engine brings the compiler.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()


_MOST_NAMED = 20


@dataclass(frozen=True)
class Wanted:
    """Which runs are asked about, and by what."""

    application: str | None  # Take those of this name alone
    launch: LaunchOptions  # Take those of its kernel alone; a program is launched so
    source: str | None  # Device on which they were counted; of a dataset, take those alone
    profiles: bool  # Whether the model knows profiles, which are of no device, and not counters


def read_observations(path: Path, wanted: Wanted) -> Observations:
    """Read the runs of a dataset, of a counter tool's file, or of profiles, as the model takes them."""
    from crosscast.data.counters.hpctoolkit import is_hpctoolkit

    if str(path) == "bundled" or (path.is_dir() and not is_hpctoolkit(path)):
        found = _counted_of_dataset(path, wanted)
    else:
        found = (
            _of_profiles(path, wanted.launch) if wanted.profiles else _of_counter_tool(path, wanted.source)
        )
    found = _only("--application", wanted.application, found, found.application)
    return _only("--kernel", wanted.launch.kernel, found, found.kernel)


def _counted_of_dataset(folder: Path, wanted: Wanted) -> Observations:
    from crosscast.prediction.relative.observed import observations_of

    found = observations_of(dataset_named(folder), counters="profiles" if wanted.profiles else "sessions")
    # Profiles are of no device: that a time is known on one is no matter of theirs.
    return found if wanted.profiles else _only("--source", wanted.source, found, found.source)


def _of_profiles(path: Path, launch: LaunchOptions) -> Observations:
    from crosscast.prediction.relative.data import profiles_seen
    from crosscast.prediction.time.data import ProfileBatch

    profiles, _ = read_profiles(path, launch)
    return profiles_seen(ProfileBatch.of(profiles))


def _of_counter_tool(path: Path, source: str | None) -> Observations:
    import numpy as np

    from crosscast.data.counters.importing import counted_profile
    from crosscast.prediction.relative.data import NO_SOURCE, Observations
    from crosscast.prediction.relative.observed import numeric_settings, scale_of

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

    from crosscast.prediction.warnings import format_names

    if name not in names:
        known = format_names(list(dict.fromkeys(names)), _MOST_NAMED)
        raise InputError(f"{option}: expected one of {known}, found {name!r}")
    return observations.rows(np.array([each == name for each in names]))
