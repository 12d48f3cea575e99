"""``crosscast predict time`` and ``explain``: times of kernels on devices, and what bounds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.launch_options import LaunchOptions
from crosscast.cli.predict import PredictTimeOptions
from crosscast.cli.profiles import ExplainOptions
from crosscast.commands.files import only_named, read_profiles
from crosscast.commands.output import check_output, show
from crosscast.commands.status import tell, warn_about
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import read_device
from crosscast.devices.roofline import DEVICES, Verdict, verdicts_of
from crosscast.errors import InputError
from crosscast.forecasting.answers import forecasts_answer, launches_answer, with_verdicts
from crosscast.forecasting.kernels import forecast_beside, verdicts_beside
from crosscast.forecasting.profiles import Recorded
from crosscast.prediction.first_fit import first_fit, models_for, named_devices
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.profile import Profile
from crosscast.report.pictures import require_matplotlib
from crosscast.report.prediction import predictions_report
from crosscast.report.verdict import roofline_figures, verdicts_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.prediction.named_models import TrainedTimes


def time(file: Path, /, *more: Path, options: PredictTimeOptions) -> None:
    """Run ``crosscast predict time``."""
    check_output(options.output)
    models = models_for(options.model, "time", options.devices or ())
    profiles, batch, recorded = _batch(
        (file, *more), options.launch, options.application, options.invocations
    )

    def predicted(trained: TrainedTimes) -> TimeForecast:
        known = [device.key for device in trained.devices]
        chosen = _chosen(options.devices, options.device_file, known)
        return trained.predict(batch, chosen, probes=_probes(options.probe, known), level=options.level)

    trained, found = first_fit(models, predicted, tell)
    found = found.with_recorded(recorded)
    warn_about(zip(found.labels, found.warnings, strict=True))

    described = {
        each.key: each
        for each in (*trained.devices, *_described(options.devices, options.device_file, trained))
    }
    verdicts = verdicts_beside(found, profiles, described)
    told, suggestion = {}, None
    if options.suggest_probes is not None:
        measured = [word.rpartition("=")[0] for word in options.probe]
        suggestion = trained.suggest_probes(options.suggest_probes, among=found.devices, measured=measured)
        told = {"suggested_probes": suggestion.to_dict()}
    show(
        options.output,
        lambda: (
            forecasts_answer("kernels", with_verdicts(found, verdicts), trained.card)
            | {
                "applications": [
                    {"application": name} | launches_answer(kernels)
                    for name, kernels in found.applications().items()
                ],
                "assumed": [each.to_dict() for each in found.assumed],
            }
            | told
        ),
        lambda: predictions_report(found, trained.card, len(options.probe), verdicts, suggestion),
        lambda: _roofline(verdicts),
    )


def _described(named: Sequence[str] | None, files: Sequence[Path], trained: TrainedTimes) -> list[Device]:
    """Descriptions of the devices that the model does not know."""
    chosen = _chosen(named, files, [device.key for device in trained.devices])
    return [each for each in chosen or () if not isinstance(each, str)]


def _roofline(verdicts: Sequence[Verdict | None]) -> Mapping[str, Figure]:
    require_matplotlib()
    return roofline_figures([each for each in verdicts if each is not None])


def _batch(
    files: Sequence[Path],
    launch: LaunchOptions,
    application: str | None,
    invocations: int | None,
) -> tuple[list[Profile], ProfileBatch, Recorded]:
    profiles: list[Profile] = []
    recorded: Recorded = {}
    for file in files:
        found, times = read_profiles(file, launch)
        profiles += found
        recorded.update(times)
    profiles = only_named(profiles, application, launch.kernel)
    return profiles, ProfileBatch.of(profiles, invocations=invocations), recorded


def _probes(words: Sequence[str], known: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
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
        if key not in known:
            raise InputError.of(
                where="--probe",
                expected=f"a device that the model knows ({', '.join(known)})",
                found=f"{key!r}: to add a device, measure it (crosscast dataset build) and train again",
            )
        if key in found:
            raise InputError.of(where="--probe", expected="each device once", found=f"{key} twice")
        found[key] = seconds
    return found


def _chosen(
    named: Sequence[str] | None, files: Sequence[Path], known: Sequence[str]
) -> list[str | Device] | None:
    """The devices to predict; ``None`` for all that the model knows."""
    if named is None and not files:
        return None

    chosen = list(known) if named is None else named_devices(named, known, "--devices")
    described = [read_device(file) for file in files]
    keys = [*known, *(each.key for each in (*chosen, *described) if not isinstance(each, str))]
    for file, device in zip(files, described, strict=True):
        if keys.count(device.key) > 1:
            raise InputError.of(
                where=file,
                field="device",
                expected="another key than those of other devices",
                found=f"{device.key}",
            )
    return [*chosen, *described]


def explain(file: Path, /, *more: Path, options: ExplainOptions) -> None:
    """Run ``crosscast explain``."""
    check_output(options.output)

    named = options.devices if options.devices is not None else () if options.device_file else DEVICES
    chosen = [*map(device_named, named), *map(read_device, options.device_file)]
    profiles = [each for path in (file, *more) for each in read_profiles(path, options.launch)[0]]
    profiles = only_named(profiles, options.application, options.launch.kernel)
    found = verdicts_of(profiles, chosen)
    forecast = forecast_beside(profiles, chosen)

    show(
        options.output,
        lambda: (
            {"verdicts": [each.to_dict() for each in found.verdicts]}
            | ({} if forecast is None else {"forecasts": forecast.to_dict()["kernels"]})
        ),
        lambda: verdicts_report(found, forecast),
        lambda: roofline_figures(found.verdicts),
    )
