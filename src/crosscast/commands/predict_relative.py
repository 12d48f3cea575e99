"""``crosscast predict relative``: relative times of runs on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crosscast.cli.options import LaunchOptions
from crosscast.cli.predict import PredictRelative
from crosscast.commands.files import mask_of, read_profiles
from crosscast.commands.output import show, tell, warn_of
from crosscast.data.dataset import dataset_named
from crosscast.data.sources.counter_profiles import UnknownFormat, counted_profile, is_counted
from crosscast.data.sources.hpctoolkit import is_hpctoolkit
from crosscast.errors import InputError, expect_known
from crosscast.prediction.intervals import check_level
from crosscast.prediction.named_models import Loaded, first_fit, models_for
from crosscast.prediction.relative import NO_SOURCE, Observations, observations_of_profiles
from crosscast.prediction.relative.artefact import RelativeForecast, TrainedRelativeModel
from crosscast.prediction.relative.observed import numeric_settings, observations_of, scale_of
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.trained import UnsuitedError, forecasts_answer
from crosscast.report.relative import forecasts_report


def relative(options: PredictRelative) -> None:
    """Run ``crosscast predict relative``."""
    file, files = options.file, (options.file, *options.more)
    check_level(options.level)
    if options.time is not None and not 0 < options.time < np.inf:
        raise InputError.of(where="--time", expected="seconds above 0", found=f"{options.time:g}")
    for path in files:
        if not path.exists() and str(path) != "bundled":
            raise InputError.of(where=path, expected="a file or the folder of a dataset", found="none")

    def predicted(trained: TrainedRelativeModel) -> list[RelativeForecast]:
        observations = _observations(trained, files, options)
        if options.relative_to is not None:
            expect_known(options.relative_to, trained.devices, where="--relative-to")
        return [
            trained.predict(
                runs,
                relative_to=options.relative_to,
                level=options.level,
                timed_on=options.source if options.source in trained.devices else None,
                time_s=options.time,
            )
            for runs in observations
        ]

    models: Loaded[TrainedRelativeModel] = models_for(options.model, "relative")
    if options.model is None and not file.is_dir() and is_counted(file):
        models = _by_known_counters(models, file)
    trained, forecasts = first_fit(models, predicted, tell)
    runs = [run for forecast in forecasts for run in forecast]
    warn_of(runs)

    show(
        options.output,
        lambda: forecasts_answer("runs", [run.to_dict() for run in runs], trained.card),
        lambda: forecasts_report(forecasts, trained.card),
    )


def _by_known_counters(models: Loaded[TrainedRelativeModel], file: Path) -> Loaded[TrainedRelativeModel]:
    """Put the model first that knows most counters of a file; models of any tool know instructions."""
    try:
        runs = _of_counter_tool(file, None)
    except InputError:  # The prediction says what is wrong.
        return models

    def known(trained: TrainedRelativeModel) -> int:
        return 0 if trained.card.sources == (NO_SOURCE,) else len(trained.known_counters(runs))

    return sorted(models, key=lambda named: -known(named[1]))


def _observations(
    trained: TrainedRelativeModel, files: Sequence[Path], options: PredictRelative
) -> list[Observations]:
    """Read the runs to predict, with counters or profiles as the model needs."""
    of_profiles, source = trained.card.sources == (NO_SOURCE,), options.source
    observations = [_read(path, options, of_profiles) for path in files]
    if of_profiles and source is not None and options.time is None:
        raise InputError.of(
            where="--source", expected="with --time, as profiles are of no device", found="it alone"
        )
    known = dict.fromkeys((*trained.card.sources, *trained.devices))
    if source is not None:
        expect_known(source, [name for name in known if name != NO_SOURCE], where="--source")
    if options.time is not None:
        _check_timed(observations, trained.devices, source)
    return observations


def _check_timed(observations: Sequence[Observations], devices: Sequence[str], source: str | None) -> None:
    """Raise InputError if a time is given for several runs, or for a device that the model does not know."""
    runs = sum(map(len, observations))
    if runs > 1:
        raise InputError.of(where="--time", expected="one run to predict", found=f"{runs}")
    device = source or observations[0].source[0]
    if device not in devices:
        raise InputError.of(
            where="--time",
            expected=f"--source, the device that it was measured on, to be one of {', '.join(devices)}",
            found=f"{source or 'none'}",
        )


def _read(path: Path, options: PredictRelative, of_profiles: bool) -> Observations:
    """Read the chosen runs of a dataset, of a counter tool's file, or of profiles."""
    if str(path) == "bundled" or (path.is_dir() and not is_hpctoolkit(path)):
        runs = _of_dataset(path, options.source, of_profiles)
    elif of_profiles:
        runs = _of_profiles(path, options.launch)
    else:
        runs = _of_counter_tool(path, options.source)
    runs = _only("--application", options.application, runs, runs.application)
    return _only("--kernel", options.launch.kernel, runs, runs.kernel)


def _only(option: str, name: str | None, runs: Observations, names: Sequence[str]) -> Observations:
    return runs.rows(np.array(mask_of(option, name, names), dtype=np.bool_))


def _of_dataset(folder: Path, source: str | None, of_profiles: bool) -> Observations:
    dataset = dataset_named(folder)
    try:
        runs = observations_of(dataset, counters="profiles" if of_profiles else "sessions")
    except InputError as error:
        raise UnsuitedError(str(error)) from error
    # With profiles, --source names the device of --time only.
    return _only("--source", None if of_profiles else source, runs, runs.source)


def _of_profiles(path: Path, launch: LaunchOptions) -> Observations:
    try:
        profiles, _ = read_profiles(path, launch)
    except InputError as error:
        if is_counted(path):
            raise UnsuitedError(str(error)) from error
        raise
    return observations_of_profiles(ProfileBatch.of(profiles))


def _of_counter_tool(path: Path, source: str | None) -> Observations:
    try:
        run = counted_profile(path)
    except UnknownFormat as error:
        raise UnsuitedError(str(error)) from error
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
