"""``crosscast predict``: times, relative times and slowdowns where nothing was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import cyclopts

from crosscast.answers import forecasts_answer, launches_answer, model_facts, with_verdicts
from crosscast.cli.launch import LAUNCH, LaunchOptions, OfLaunch
from crosscast.cli.options import (
    OUTPUT,
    Application,
    Level,
    Model,
    Names,
    Output,
    Repeated,
    Whole,
    tell,
    warn_about,
)
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.corun import Solo
    from crosscast.device import Device
    from crosscast.forecasting import Loaded, Recorded
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.corun.forecast import MixForecast
    from crosscast.prediction.corun.probes import SuggestedMixes
    from crosscast.prediction.named_models import Question
    from crosscast.prediction.relative.artefact import RelativeForecast, TrainedRelativeModel
    from crosscast.prediction.relative.data import Observations
    from crosscast.prediction.time.artefact import TrainedTimeModel
    from crosscast.prediction.time.data import ProfileBatch
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.profile import Profile
    from crosscast.roofline import Verdict

__all__ = ["app", "first_fit", "isolated_runs", "models_for", "warn_of"]

Thing = TypeVar("Thing")


app = cyclopts.App(
    name="predict",
    help="Predict run time, relative time, or slowdowns of co-runners, with prediction intervals.",
)


@app.default
@app.command
def time(
    file: Path,
    /,
    *more: Path,
    model: Model = None,
    probe: Annotated[tuple[str, ...], Repeated] = (),
    devices: Names | None = None,
    device_file: Annotated[tuple[Path, ...], Repeated] = (),
    application: Application = None,
    level: Level = 0.9,
    suggest_probes: Whole | None = None,
    invocations: Whole | None = None,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Predict how long kernels take on each device, and recommend a device (docs/predicting.md).

    FILE is a launch file (`.toml`, `.sim`), or a program with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, `--shared`, ...): these launches are characterized now. Or it has profiles:
    those that `crosscast characterize` wrote (`.parquet`, `.csv`, or `.json` for what `--json` prints), or a
    source or module that `crosscast embed` has put some into (`.cl`, `.spv`); then nothing is compiled or
    run. Or it is the folder of a dataset, whose recorded times are shown beside the predicted ones.

    Several launches of a kernel are taken as invocations in one run; the times are those of one of them.

    Parameters
    ----------
    file
        What to predict.
    more
        Further files.
    probe
        Measured time of the kernel on a device, in seconds, such as `gtx1080=0.00123`; may be repeated. The
        predictions for the other devices are conditioned on it.
    devices
        Devices, separated by commas: those that the model knows, which are the default, and devices of the
        catalogue (`crosscast devices --catalogue`), on which nothing was measured.
    device_file
        Data sheet (TOML) of a further device on which nothing was measured; may be repeated.
    suggest_probes
        Also name so many devices whose measured times would tell most of the others.
    invocations
        How often a kernel is launched in a run; by default as often as in FILE.
    """
    output.check()
    models = models_for(model, "time", devices or ())
    profiles, batch, recorded = _batch((file, *more), launch, application, invocations)

    def predicted(trained: TrainedTimeModel) -> TimeForecast:
        known = [device.key for device in trained.devices]
        chosen = _chosen(devices, device_file, known)
        return trained.predict(batch, chosen, probes=_probes(probe, known), level=level)

    trained, found = first_fit(models, predicted)
    found = found.with_recorded(recorded)
    warn_about(zip(found.labels, found.warnings, strict=True))
    # Imported here: `--help` needs no NumPy.
    from crosscast.forecasting import verdicts_beside
    from crosscast.report.prediction import predictions_report

    described = {each.key: each for each in (*trained.devices, *_described(devices, device_file, trained))}
    verdicts = verdicts_beside(found, profiles, described)
    told, suggestion = {}, None
    if suggest_probes is not None:
        measured = [word.rpartition("=")[0] for word in probe]
        suggestion = trained.suggest_probes(suggest_probes, among=found.devices, measured=measured)
        told = {"suggested_probes": suggestion.to_dict()}
    output.show(
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
        lambda: predictions_report(found, trained.card, len(probe), verdicts, suggestion),
        lambda: _roofline(verdicts),
    )


def _described(named: Sequence[str] | None, files: Sequence[Path], trained: TrainedTimeModel) -> list[Device]:
    """Descriptions of the devices that the model does not know."""
    chosen = _chosen(named, files, [device.key for device in trained.devices])
    return [each for each in chosen or () if not isinstance(each, str)]


def _roofline(verdicts: Sequence[Verdict | None]) -> Mapping[str, Any]:
    # Imported here: a page of tables alone needs no matplotlib.
    from crosscast.report.figures import require_matplotlib
    from crosscast.report.verdict import roofline_figures

    require_matplotlib()
    return roofline_figures([each for each in verdicts if each is not None])


@app.command
def relative(
    file: Path,
    /,
    *more: Path,
    model: Model = None,
    relative_to: str | None = None,
    source: str | None = None,
    time: float | None = None,
    application: Application = None,
    level: Level = 0.9,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Predict how long a run takes on each device relative to the others (docs/relative.md).

    FILE is what HPCToolkit, Caliper, Linux perf or Nsight Compute counted in a run, or the folder of a
    dataset; for a model of profiles, what `crosscast predict time` takes.

    Parameters
    ----------
    file
        What to predict.
    more
        Further files.
    relative_to
        The device that times are relative to; by default the slowest.
    source
        The device on which FILE was counted, if it does not say, or on which `--time` was measured; of a
        dataset, the device whose runs are taken.
    time
        How long the run took on that device, in seconds, to predict seconds.
    """
    output.check()
    if time is not None and not time > 0:
        raise InputError(f"--time: expected seconds above 0, found {time:g}")
    for each in (file, *more):
        if not each.exists() and str(each) != "bundled":
            raise InputError(f"{each}: expected a file or the folder of a dataset, found none")

    def predicted(trained: TrainedRelativeModel) -> list[RelativeForecast]:
        asked = _observations(trained, (file, *more), application, launch, source, time)
        _check_device("--relative-to", relative_to, trained.devices)
        return [
            trained.predict(
                runs,
                relative_to=relative_to,
                level=level,
                timed_on=source if source in trained.devices else None,
                time_s=time,
            )
            for runs in asked
        ]

    trained, forecasts = first_fit(models_for(model, "relative"), predicted)
    found = [run for forecast in forecasts for run in forecast]
    warn_of(found)
    # Imported here: `--help` needs no NumPy.
    from crosscast.report.relative import relative_forecasts_report

    output.show(
        lambda: forecasts_answer("runs", [each.to_dict() for each in found], trained.card),
        lambda: relative_forecasts_report(forecasts, trained.card),
    )


@app.command
def corun(
    profile: Path,
    /,
    *more: Path,
    model: Model = None,
    probe: Annotated[tuple[str, ...], Repeated] = (),
    level: Level = 0.9,
    suggest_probes: Whole | None = None,
    translate: Path | None = None,
    output: Output = OUTPUT,
) -> None:
    """Predict a mix: applications that start together on one device (docs/corun.md).

    Says how long the mix takes, how much each co-runner slows down, and what power the device draws, beside
    how long the same work takes one after another.

    Parameters
    ----------
    profile
        Profile of an application, written by `crosscast corun profile`.
    more
        Those of its co-runners; the same again for an application that is there twice.
    probe
        Measured slowdowns of the co-runners of another mix, such as `bfs/small,fft/tiny=1.3,2.1`; may be
        repeated. Names are application/size, of these profiles or of the training.
    suggest_probes
        Also name so many pairs of these applications with those of the training whose measured slowdowns
        would tell most.
    translate
        Card of `crosscast corun translate`, with profiles on the device that it is from, to predict times and
        slowdowns on the other. The model may be of either.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.prediction.corun.translation import read_translation, translated_forecasts
    from crosscast.report.corun import corun_forecast_report

    output.check()
    models = models_for(model, "corun")
    mix = tuple(isolated_runs((profile, *more)))
    if len(mix) < 2:
        raise InputError(f"{profile}: expected the profiles of at least 2 applications, found 1")
    card = None if translate is None else read_translation(translate)

    def predicted(trained: TrainedCoRunModel) -> tuple[MixForecast, SuggestedMixes | None]:
        told, suggestion = with_probes(trained, probe, mix), None
        if card is None:
            (found,) = told.predict([mix], level=level)
        else:
            (found,) = translated_forecasts(told, card, [mix], level=level)
        if suggest_probes is not None:
            pairs = [(run, other) for run in mix for other in trained.card.runs]
            suggestion = told.suggest_probes(suggest_probes, [mix], among=pairs)
        return found, suggestion

    trained, (found, suggestion) = first_fit(models, predicted)
    warn_of([found])
    told = {**found.to_dict(), "model": model_facts(trained.card)}
    if suggestion is not None:
        told["suggested_probes"] = suggestion.to_dict()
    if card is not None:
        told["translation"] = {"from": card.source, "to": card.target, "line": card.to_dict()["line"]}
    output.show(lambda: told, lambda: corun_forecast_report(found, trained.card, card, suggestion))


def with_probes(trained: TrainedCoRunModel, words: Sequence[str], runs: Sequence[Solo]) -> TrainedCoRunModel:
    """A model that knows measured mixes, which name isolated runs or those of the training."""
    named = {run.qualified_name: run for run in reversed(runs)}
    probes = []
    for word in words:
        names, _, numbers = word.rpartition("=")
        try:
            slowdowns = [float(number) for number in numbers.split(",")]
        except ValueError:
            slowdowns = []
        mix = [named.get(name, name) for name in names.split(",")]
        if len(slowdowns) != len(mix):
            expected = "MIX=SLOWDOWNS such as bfs/small,fft/tiny=1.3,2.1"
            raise InputError(f"--probe: expected {expected}, found {word!r}")
        probes.append((mix, slowdowns))
    return trained.with_probes(probes) if probes else trained


def models_for(model: str | None, question: Question, devices: Sequence[str] = ()) -> Loaded:
    """Load the model that is named; or else those that have a name in turn, when they are asked for."""
    # Imported here: `--help` needs no NumPy.
    from crosscast import forecasting

    return forecasting.models_for(model, question, devices)


def first_fit(models: Loaded, use: Callable[[Any], Thing]) -> tuple[Any, Thing]:
    """The first model that can be used, which is said if nobody named it, and what the use of it gives."""
    from crosscast import forecasting

    return forecasting.first_fit(models, use, tell)


class _Warned(Protocol):
    """A prediction, with its applicability warnings: sentences without a full stop."""

    @property
    def label(self) -> str: ...
    @property
    def warnings(self) -> Sequence[str]: ...


def warn_of(predictions: Sequence[_Warned]) -> None:
    """Print each warning once, with what it is about."""
    warn_about((prediction.label, prediction.warnings) for prediction in predictions)


def isolated_runs(files: Sequence[Path]) -> list[Solo]:
    """Isolated runs of applications, from files that ``crosscast corun profile`` wrote."""
    from crosscast.data.isolated_runs import read_profile

    return [read_profile(file).solo for file in files]


def _batch(
    files: Sequence[Path],
    launch: LaunchOptions,
    application: str | None,
    invocations: int | None,
) -> tuple[list[Profile], ProfileBatch, Recorded]:
    from crosscast.cli.files import read_profiles
    from crosscast.prediction.time.data import ProfileBatch

    profiles: list[Profile] = []
    recorded: Recorded = {}
    for file in files:
        found, times = read_profiles(file, launch)
        profiles += found
        recorded.update(times)
    profiles = only_named(profiles, application, launch.kernel)
    return profiles, ProfileBatch.of(profiles, invocations=invocations), recorded


def only_named(profiles: list[Profile], application: str | None, kernel: str | None) -> list[Profile]:
    """Those of an application and a kernel; all for ``None``."""
    found = _only("--application", application, profiles, [each.application or "" for each in profiles])
    return _only("--kernel", kernel, found, [each.kernel for each in found])


def _only(option: str, name: str | None, profiles: list[Profile], names: Sequence[str]) -> list[Profile]:
    """Those of a name; all for ``None``."""
    if name is None:
        return profiles
    if name not in names:
        raise InputError(f"{option}: expected one of {', '.join(dict.fromkeys(names))}, found {name!r}")
    return [profile for profile, own in zip(profiles, names, strict=True) if own == name]


def _probes(words: Sequence[str], known: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in words:
        key, _, text = word.rpartition("=")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not key or not seconds > 0:
            raise InputError(f"--probe: expected DEVICE=SECONDS such as gtx1080=0.00123, found {word!r}")
        if key not in known:
            raise InputError(
                f"--probe: expected a device that the model knows ({', '.join(known)}), found {key!r}: "
                "to add a device, measure it (crosscast dataset build) and train again"
            )
        if key in found:
            raise InputError(f"--probe: expected each device once, found {key} twice")
        found[key] = seconds
    return found


def _chosen(
    named: Sequence[str] | None, files: Sequence[Path], known: Sequence[str]
) -> list[str | Device] | None:
    """The devices to predict; ``None`` for all that the model knows."""
    if named is None and not files:
        return None
    from crosscast.devices.device_files import read_device
    from crosscast.forecasting import named_devices

    chosen = list(known) if named is None else named_devices(named, known, "--devices")
    described = [read_device(file) for file in files]
    keys = [*known, *(each.key for each in (*chosen, *described) if not isinstance(each, str))]
    for file, device in zip(files, described, strict=True):
        if keys.count(device.key) > 1:
            raise InputError(
                f"{file}: device: expected another key than those of other devices, found {device.key}"
            )
    return [*chosen, *described]


def _check_device(option: str, device: str | None, known: Sequence[str]) -> None:
    if device is not None and device not in known:
        raise InputError(f"{option}: expected one of {', '.join(known)}, found {device!r}")


def _observations(
    trained: TrainedRelativeModel,
    files: Sequence[Path],
    application: str | None,
    launch: LaunchOptions,
    source: str | None,
    time: float | None,
) -> list[Observations]:
    """What is asked of a model, as it knows counters or profiles."""
    from crosscast.cli.files import Wanted, read_observations
    from crosscast.prediction.relative.data import NO_SOURCE

    known = dict.fromkeys((*trained.card.sources, *trained.devices))
    _check_device("--source", source, [each for each in known if each != NO_SOURCE])
    of_profiles = trained.card.sources == (NO_SOURCE,)
    if of_profiles and source is not None and time is None:
        raise InputError("--source: expected with --time, as profiles are of no device, found it alone")
    wanted = Wanted(application, launch, source, of_profiles)
    asked = [read_observations(each, wanted) for each in files]
    if time is not None:
        _check_timed(asked, trained.devices, source)
    return asked


def _check_timed(read: Sequence[Observations], devices: Sequence[str], source: str | None) -> None:
    """Refuse a time of several runs, or on no device that the model knows."""
    runs = sum(map(len, read))
    if runs > 1:
        raise InputError(f"--time: expected one run to predict, found {runs}")
    device = source or read[0].source[0]
    if device not in devices:
        raise InputError(
            f"--time: expected --source, the device that it was measured on, to be one of "
            f"{', '.join(devices)}, found {source or 'none'}"
        )
