"""``crosscast predict time`` and ``explain``: times of kernels on devices, and their bounds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.cli.predict import PredictTime
from crosscast.cli.profiles import Explain
from crosscast.commands.files import only_named, read_profiles
from crosscast.commands.output import raise_last, show, tell, warn_about
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import read_device
from crosscast.devices.roofline import DEVICES, Verdict, verdicts_of
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.forecasting import (
    Recorded,
    forecast_beside,
    launches_answer,
    verdicts_beside,
    with_verdicts,
)
from crosscast.prediction.named_models import first_fit, models_for, named_devices
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.trained import forecasts_answer
from crosscast.profile import Profile
from crosscast.report.document import require_matplotlib
from crosscast.report.prediction import predictions_report, roofline_figures, verdicts_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.prediction.time.card import TrainedTimes


_MOST_INVOCATIONS = 2**53


def time(options: PredictTime) -> None:
    """Run ``crosscast predict time``."""
    if options.suggest_probes is not None and options.suggest_probes < 1:
        raise InputError.of(
            where="--suggest-probes", expected="at least 1 device", found=f"{options.suggest_probes}"
        )
    if options.invocations is not None and options.invocations > _MOST_INVOCATIONS:
        raise InputError.of(where="--invocations", expected="at most 2^53", found=f"{options.invocations:,}")
    models, ahead = itertools.tee(models_for(options.model, "time", options.devices or ()))
    described = [(path, read_device(path)) for path in options.device_file]
    probes = _probes(options.probe)

    def chosen_of(trained: TrainedTimes[Any]) -> list[str | Device] | None:
        return _chosen(options.devices, described, [device.key for device in trained.devices])

    # Before kernels are profiled, which may take long.
    likely, _ = first_fit(ahead, chosen_of)
    refused: list[CompileError | UnsupportedError] = []
    profiles: list[Profile] = []
    recorded: Recorded = {}
    for path in (options.file, *options.more):
        of_path, times = read_profiles(path, options.launch, optimize=likely.card.optimized, refused=refused)
        profiles += of_path
        recorded.update(times)
    profiles = only_named(profiles, options.application, options.launch.kernel)
    batch = ProfileBatch.of(profiles, invocations=options.invocations)

    def predicted(trained: TrainedTimes[Any]) -> TimeForecast:
        return trained.predict(batch, chosen_of(trained), probes=probes, level=options.level)

    trained, forecast = first_fit(models, predicted, tell)
    forecast = forecast.with_recorded(recorded)
    warn_about(zip(forecast.labels, forecast.warnings, strict=True))

    others = [device for device in chosen_of(trained) or () if not isinstance(device, str)]
    devices = {device.key: device for device in (*trained.devices, *others)}
    verdicts = verdicts_beside(forecast, profiles, devices)
    suggested, suggestion = {}, None
    if options.suggest_probes is not None:
        measured = [word.rpartition("=")[0] for word in options.probe]
        suggestion = trained.suggest_probes(options.suggest_probes, among=forecast.devices, measured=measured)
        suggested = {"suggested_probes": suggestion.to_dict()}
    show(
        options.output,
        lambda: (
            forecasts_answer("kernels", with_verdicts(forecast, verdicts), trained.card)
            | {
                "applications": [
                    {"application": name} | launches_answer(kernels)
                    for name, kernels in forecast.applications().items()
                ],
                "assumed": [assumption.to_dict() for assumption in forecast.assumed],
            }
            | suggested
        ),
        lambda: predictions_report(forecast, trained.card, len(options.probe), verdicts, suggestion),
        lambda: _roofline(verdicts),
    )
    raise_last(refused)


def _roofline(verdicts: Sequence[Verdict | None]) -> Mapping[str, Figure]:
    require_matplotlib()
    return roofline_figures([verdict for verdict in verdicts if verdict is not None])


def _probes(words: Sequence[str]) -> dict[str, float]:
    probes: dict[str, float] = {}
    for word in words:
        key, _, text = word.rpartition("=")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not key or not seconds > 0:
            raise InputError.of(
                where="--probe", expected="DEVICE=SECONDS such as gtx1080=0.00123", found=repr(word)
            )
        if key in probes:
            raise InputError.of(where="--probe", expected="each device once", found=f"{key} twice")
        probes[key] = seconds
    return probes


def _chosen(
    named: Sequence[str] | None, described: Sequence[tuple[Path, Device]], known: Sequence[str]
) -> list[str | Device] | None:
    """Devices to predict, by name or described in a file; ``None`` for all that the model knows."""
    if named is None and not described:
        return None
    # Those of files may be named, too.
    of_files = [device for _, device in described]
    keys_of_files = {device.key for device in of_files}
    others = known if named is None else [name for name in named if name not in keys_of_files]
    chosen = [*named_devices(others, known, "--devices"), *of_files]
    keys = [*known, *(device.key for device in chosen if not isinstance(device, str))]
    for file, device in described:
        if keys.count(device.key) > 1:
            expected = "another key than those of other devices"
            raise InputError.of(where=file, field="device", expected=expected, found=f"{device.key}")
    return chosen


def explain(options: Explain) -> None:
    """Run ``crosscast explain``."""
    named = options.devices if options.devices is not None else () if options.device_file else DEVICES
    chosen = [*map(device_named, named), *map(read_device, options.device_file)]
    profiles = []
    for path in (options.file, *options.more):
        profiles += read_profiles(path, options.launch, optimize=True)[0]
    profiles = only_named(profiles, options.application, options.launch.kernel)
    verdicts = verdicts_of(profiles, chosen)
    forecast = forecast_beside(profiles, chosen)

    show(
        options.output,
        lambda: (
            {"verdicts": [verdict.to_dict() for verdict in verdicts.verdicts]}
            | ({} if forecast is None else {"forecasts": forecast.to_dict()["kernels"]})
        ),
        lambda: verdicts_report(verdicts, forecast),
        lambda: roofline_figures(verdicts.verdicts),
    )
