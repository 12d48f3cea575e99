"""``crosscast predict relative``: times of runs on devices relative to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.cli.launch_options import LaunchOptions
from crosscast.cli.predict import PredictRelativeOptions
from crosscast.commands.files import read_profiles
from crosscast.commands.output import check_output, show
from crosscast.commands.status import tell, warn_of
from crosscast.data.counters.hpctoolkit import is_hpctoolkit
from crosscast.data.counters.importing import counted_profile
from crosscast.data.dataset import dataset_named
from crosscast.errors import InputError
from crosscast.forecasting.answers import forecasts_answer
from crosscast.prediction.first_fit import first_fit, models_for
from crosscast.prediction.relative.artefact import RelativeForecast, TrainedRelativeModel
from crosscast.prediction.relative.data import NO_SOURCE, Observations, observations_of_profiles
from crosscast.prediction.relative.observed import numeric_settings, observations_of, scale_of
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.warnings import format_names
from crosscast.report.relative import forecasts_report


def relative(file: Path, /, *more: Path, options: PredictRelativeOptions) -> None:
    """Run ``crosscast predict relative``."""
    check_output(options.output)
    if options.time is not None and not options.time > 0:
        raise InputError.of(where="--time", expected="seconds above 0", found=f"{options.time:g}")
    for each in (file, *more):
        if not each.exists() and str(each) != "bundled":
            raise InputError.of(where=each, expected="a file or the folder of a dataset", found="none")

    def predicted(trained: TrainedRelativeModel) -> list[RelativeForecast]:
        asked = _observations(
            trained, (file, *more), options.application, options.launch, options.source, options.time
        )
        _check_device("--relative-to", options.relative_to, trained.devices)
        return [
            trained.predict(
                runs,
                relative_to=options.relative_to,
                level=options.level,
                timed_on=options.source if options.source in trained.devices else None,
                time_s=options.time,
            )
            for runs in asked
        ]

    trained, forecasts = first_fit(models_for(options.model, "relative"), predicted, tell)
    found = [run for forecast in forecasts for run in forecast]
    warn_of(found)

    show(
        options.output,
        lambda: forecasts_answer("runs", [each.to_dict() for each in found], trained.card),
        lambda: forecasts_report(forecasts, trained.card),
    )


def _check_device(option: str, device: str | None, known: Sequence[str]) -> None:
    if device is not None and device not in known:
        raise InputError.of(where=option, expected=f"one of {', '.join(known)}", found=repr(device))


def _observations(
    trained: TrainedRelativeModel,
    files: Sequence[Path],
    application: str | None,
    launch: LaunchOptions,
    source: str | None,
    time: float | None,
) -> list[Observations]:
    """What is asked of a model, as it knows counters or profiles."""
    known = dict.fromkeys((*trained.card.sources, *trained.devices))
    _check_device("--source", source, [each for each in known if each != NO_SOURCE])
    of_profiles = trained.card.sources == (NO_SOURCE,)
    if of_profiles and source is not None and time is None:
        raise InputError.of(
            where="--source", expected="with --time, as profiles are of no device", found="it alone"
        )
    wanted = Wanted(application, launch, source, of_profiles)
    asked = [read_observations(each, wanted) for each in files]
    if time is not None:
        _check_timed(asked, trained.devices, source)
    return asked


def _check_timed(read: Sequence[Observations], devices: Sequence[str], source: str | None) -> None:
    """Refuse a time of several runs, or on no device that the model knows."""
    runs = sum(map(len, read))
    if runs > 1:
        raise InputError.of(where="--time", expected="one run to predict", found=f"{runs}")
    device = source or read[0].source[0]
    if device not in devices:
        raise InputError.of(
            where="--time",
            expected=f"--source, the device that it was measured on, to be one of {', '.join(devices)}",
            found=f"{source or 'none'}",
        )


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
    if str(path) == "bundled" or (path.is_dir() and not is_hpctoolkit(path)):
        found = _counted_of_dataset(path, wanted)
    else:
        found = (
            _of_profiles(path, wanted.launch) if wanted.profiles else _of_counter_tool(path, wanted.source)
        )
    found = _only("--application", wanted.application, found, found.application)
    return _only("--kernel", wanted.launch.kernel, found, found.kernel)


def _counted_of_dataset(folder: Path, wanted: Wanted) -> Observations:
    found = observations_of(dataset_named(folder), counters="profiles" if wanted.profiles else "sessions")
    # Profiles are of no device: that a time is known on one is no matter of theirs.
    return found if wanted.profiles else _only("--source", wanted.source, found, found.source)


def _of_profiles(path: Path, launch: LaunchOptions) -> Observations:
    profiles, _ = read_profiles(path, launch)
    return observations_of_profiles(ProfileBatch.of(profiles))


def _of_counter_tool(path: Path, source: str | None) -> Observations:
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
    if name not in names:
        known = format_names(list(dict.fromkeys(names)), _MOST_NAMED)
        raise InputError.of(where=option, expected=f"one of {known}", found=repr(name))
    return observations.rows(np.array([each == name for each in names]))
