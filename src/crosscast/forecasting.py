"""Forecasts of kernels and recorded programs in one call: profiles, devices, the first model that fits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.characterization.embedding import profile_of, read_content, read_embedded
from crosscast.data.fields import as_sequence
from crosscast.data.files import exists
from crosscast.data.profiles import from_row, read_csv, read_parquet
from crosscast.devices.catalogue import device_named
from crosscast.devices.launch_work import amounts_of
from crosscast.devices.limits import launch_cost
from crosscast.devices.roofline import DEVICES, Verdict, Verdicts, verdict_of, verdicts_of
from crosscast.errors import InputError
from crosscast.kernel import LAUNCH_FILES, Launch
from crosscast.prediction.named_models import first_fit, models_for, named_devices
from crosscast.prediction.time import ProfileBatch, kernel_key
from crosscast.profile import Profile
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.arrays import Reals
    from crosscast.device import Device
    from crosscast.prediction.time.card import TrainedTimes
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.results import Column
    from crosscast.tracing.summary import Replayed, Summary


def predict(
    kernels: KernelInput | Sequence[KernelInput],
    model: str | Path | None = None,
    *,
    devices: Sequence[str | Device] | str | Device | None = None,
    probes: Mapping[str, float] | None = None,
    level: float = 0.9,
    invocations: int | None = None,
) -> TimeForecast:
    """Predict times of kernels on each device, and recommend a device.

    ``crosscast predict`` does the same. A notebook shows the result as a table.

    Parameters
    ----------
    kernels
        A launch file (``.toml``, ``.sim``), the folder of a trace or a `Launch`, which are characterized
        now, OpenCL C at ``-O3`` as drivers compile it; a `Profile`; a file of profiles (``.json``,
        ``.csv``, ``.parquet``), or one with embedded profiles; the folder of a dataset, or ``"bundled"``; or
        several of these. Several launches of a kernel are taken as invocations in one run, and the times are
        those of one of them.
    model
        Name or folder of a model of times; by default the first that has a name and fits, of those that the
        user stores and those bundled with Crosscast. A calibrated model is used where `devices` name
        its device.
    devices
        Names of devices that the model knows or the catalogue has, or descriptions; by default all that the
        model knows.
    probes
        Measured times of the one kernel in seconds, by device; the forecasts are conditioned on them.
    level
        Probability that the intervals are to hold.
    invocations
        Launches of a kernel in a run; by default as many as in `kernels`.

    Returns
    -------
    TimeForecast
        Times in seconds with intervals; ``recommended`` has a device for each kernel, ``warnings`` says what
        makes a forecast doubtful; ``to_pandas()`` and ``to_dict()`` convert it.

    Raises
    ------
    InputError
        If a file or device is not known, or no model fits.
    KernelFault, CompileError, UnsupportedError
        If a kernel cannot be characterized.

    Examples
    --------
    >>> import crosscast
    >>> forecast = crosscast.predict("bundled", devices=["gtx1080", "knl"])
    >>> forecast.devices, len(forecast.recommended)
    (('gtx1080', 'knl'), 132)
    """
    if probes is not None and not isinstance(probes, Mapping | np.ndarray):
        expected = "seconds by device, such as {'gtx1080': 0.01}"
        raise InputError.of(field="probes", expected=expected, found=type(probes).__name__)
    models, ahead = itertools.tee(models_for(model, "time", devices))

    def chosen_of(trained: TrainedTimes[Any]) -> list[str | Device] | None:
        known = [device.key for device in trained.devices]
        return None if devices is None else named_devices(as_sequence(devices), known)

    # The model tells how its profiles are compiled.
    likely, _ = first_fit(ahead, chosen_of)
    profiles: list[Profile] = []
    recorded: Recorded = {}
    for kernel in [kernels] if isinstance(kernels, KernelInput) else kernels:
        of_kernel, times = profiles_of(kernel, optimize=likely.card.optimized)
        profiles += of_kernel
        recorded.update(times)
    batch = ProfileBatch.of(profiles, invocations=invocations)

    def predicted(trained: TrainedTimes[Any]) -> TimeForecast:
        forecast: TimeForecast = trained.predict(batch, chosen_of(trained), probes=probes, level=level)
        return forecast.with_recorded(recorded)

    return first_fit(models, predicted)[1]


@dataclass(frozen=True)
class BesideMeasured(Tabular):
    """Forecast and measured times of each kernel on one device, in seconds."""

    kernels: tuple[str, ...]
    measured_s: tuple[float, ...]
    forecast_s: tuple[float, ...]
    low_s: tuple[float, ...]
    high_s: tuple[float, ...]
    level: float  # Of the intervals

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each kernel."""
        times = list(zip(self.measured_s, self.forecast_s, self.low_s, self.high_s, strict=True))
        return {
            "kernel": self.kernels,
            "measured_s": self.measured_s,
            "forecast_s": self.forecast_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "forecast_over_measured": [forecast / measured for measured, forecast, _, _ in times],
            "inside": [low <= measured <= high for measured, _, low, high in times],
        }


def beside_measured(forecast: TimeForecast, measured_s: Mapping[str, float]) -> BesideMeasured:
    """Forecast and measured times, by the device's clock, of kernels on one device."""
    forecast = forecast.on_device()
    rows = [row for row, name in enumerate(forecast.profiles.kernel) if name in measured_s]
    names = tuple(forecast.profiles.kernel[row] for row in rows)
    centre, low, high = (
        tuple(each[rows, 0].tolist()) for each in (forecast.centre, forecast.low, forecast.high)
    )
    return BesideMeasured(names, tuple(measured_s[name] for name in names), centre, low, high, forecast.level)


def explain(
    kernels: KernelInput | Sequence[KernelInput], devices: Sequence[str | Device] | str | Device | None = None
) -> Verdicts:
    """Find the bottleneck of kernels on devices: memory, compute, launch or latency; why, and what to try.

    It uses profiles and data sheets only, and is no forecast; ``crosscast explain`` shows one beside it.

    Parameters
    ----------
    kernels
        As of `crosscast.predict`.
    devices
        Names of devices in the catalogue, or descriptions; by default h100-sxm, rtx4090 and epyc-9654.

    Returns
    -------
    Verdicts
        A row for each launch and device: ``bound``, the seconds of each limit, and ``why``.
        ``verdicts`` also has ``notes`` and ``advice`` for each.

    Raises
    ------
    InputError
        If a file or device is not known, or lacks a number that is needed.
    KernelFault, CompileError, UnsupportedError
        If a kernel cannot be characterized.

    Examples
    --------
    >>> import crosscast
    >>> verdicts = crosscast.explain("bundled", ["rtx4090"])
    >>> verdicts.verdicts[0].bound
    'launch'
    """
    inputs = [kernels] if isinstance(kernels, KernelInput) else kernels
    profiles = [profile for each in inputs for profile in profiles_of(each)[0]]
    named: Sequence[str | Device] = DEVICES if devices is None else as_sequence(devices)
    return verdicts_of(profiles, [device_named(each) if isinstance(each, str) else each for each in named])


def forecast_beside(profiles: Sequence[Profile], devices: Sequence[Device]) -> TimeForecast | None:
    """Forecast with terms of kernels on devices; ``None`` where no model has both for all of them."""
    if not all("sub_groups" in each.launch for each in profiles):
        return None  # A model of such profiles has no terms.
    try:
        forecast = predict(profiles, devices=devices)
    except InputError:
        return None
    return None if forecast.terms is None else forecast


def verdicts_beside(
    forecast: TimeForecast, profiles: Sequence[Profile], devices: Mapping[str, Device]
) -> list[Verdict | None]:
    """Bottleneck of each kernel's longest launch on the recommended device.

    ``None`` without the metrics, or where nothing but its name is known of the device.
    """
    longest: dict[object, Profile] = {}
    for each in profiles:
        first = longest.setdefault(kernel_key(each), each)
        if _instructions(each) > _instructions(first):
            longest[kernel_key(each)] = each
    verdicts: list[Verdict | None] = []
    for profile, choice in zip(longest.values(), forecast.recommended, strict=True):
        amounts, device = amounts_of(profile), devices[choice.device]
        is_known = bool(device.numbers or device.measured)
        verdicts.append(verdict_of(amounts, device) if is_known and amounts is not None else None)
    return verdicts


def with_verdicts(forecast: TimeForecast, verdicts: Sequence[Verdict | None]) -> list[dict[str, object]]:
    """Forecasts of kernels, each with its bottleneck on the recommended device."""
    return [
        {**kernel, "verdict": verdict and verdict.to_dict()}
        for kernel, verdict in zip(forecast.kernels(), verdicts, strict=True)
    ]


def launches_answer(kernels: TimeForecast, repeat: float = 1.0) -> dict[str, object]:
    """Total times of an application's kernels, as often as they are launched, and the fastest device."""
    times = zip(kernels.devices, *(each.tolist() for each in kernels.of_all_launches(repeat)), strict=True)
    devices = [dict(zip(("device", "time_s", "low_s", "high_s"), row, strict=True)) for row in times]
    return {"devices": devices, "recommended": min(devices, key=itemgetter("time_s"))["device"]}


def _instructions(profile: Profile) -> float:
    return profile.metrics.get("total_instruction_count") or 0.0


Recorded = dict[tuple[str, str, str], dict[str, float]]
"""Median times in seconds by application, kernel and size, and by device."""

KernelInput = str | Path | Profile | Launch
"""Inputs of a forecast that have profiles or can be characterized."""


def profiles_of(kernels: KernelInput, *, optimize: bool = True) -> tuple[list[Profile], Recorded]:
    """Profiles of an input of a forecast, and measured times if it is a dataset."""
    if isinstance(kernels, Profile):
        return [kernels], {}
    if isinstance(kernels, Launch):
        return [characterized(kernels, optimize=optimize)], {}
    return read_profiles(Path(kernels), partial(characterized, optimize=optimize))


def characterized(launch: Launch, number: int = 0, *, optimize: bool = True) -> Profile:
    """Characterize a launch, by default as drivers compile it."""
    # Imported here: the engine brings the compiler, and stored profiles need none of it.
    from crosscast.characterization.run import Options, characterize_launch

    return characterize_launch(
        launch, invocation=number, options=Options(optimize=optimize, sample_groups="auto")
    )


STORED = (".json", ".jsonl", ".csv", ".parquet")
"""Files of profiles that ``crosscast characterize`` wrote."""


def read_profiles(
    path: Path,
    characterize: Callable[[Launch, int], Profile] = characterized,
    left_out: Callable[[str], None] = lambda _: None,
) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file, dataset or trace, or characterize a launch file's launches.

    `left_out` is told of each launch of a trace that is refused.
    """
    if exists(path) and path.is_dir():
        # Imported here: stored profiles need none of it.
        from crosscast.tracing.trace import is_trace

        return (_of_trace(path, characterize, left_out), {}) if is_trace(path) else _of_dataset(path)
    if str(path) == "bundled":
        return _of_dataset(path)
    if path.suffix in (".parquet", ".csv"):
        profiles = read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
        if not profiles:
            raise InputError.of(where=path, expected="profiles", found="an empty table")
        return profiles, {}
    if path.suffix in (".json", ".jsonl"):
        return _of_json(path), {}
    if path.suffix in LAUNCH_FILES:
        # Imported here, as above.
        from crosscast.characterization.launchfiles import read_launches

        launches = enumerate(read_launches(path))
        return as_application([characterize(launch, number) for number, launch in launches], path), {}
    try:
        return list(read_embedded(path)), {}
    except InputError as error:
        if not exists(path):
            raise
        raise InputError(
            f"{error}; to characterize it now, say its launch (--global 1024 --arg ...)"
        ) from error


def as_application(profiles: list[Profile], path: Path) -> list[Profile]:
    """Make several kernels that a file launches an application of its name, unless they are of one."""
    if len({profile.kernel for profile in profiles}) < 2:
        return profiles
    return [replace(profile, application=profile.application or path.stem) for profile in profiles]


def _of_trace(
    folder: Path, characterize: Callable[[Launch, int], Profile], left_out: Callable[[str], None]
) -> list[Profile]:
    """Profiles of the classes of a trace's launches."""
    # Imported here: stored profiles need none of it.
    from crosscast.tracing.summary import Trace, replayed, represented, summary_of

    summary = summary_of(Trace(folder))
    results = replayed(summary, characterize)
    profiles = [
        replace(
            each.profile,
            launch={
                **each.profile.launch,
                "recorded": {**each.profile.launch["recorded"], "stands_for": count},
            },
        )
        for count, each in zip(represented(summary, results), results, strict=True)
        if each.profile is not None
    ]
    if not profiles:
        refused = next((each.refused for each in results), "it has no launches")
        raise InputError.of(
            where=folder, expected="a trace with a launch that can be run again", found=f"none: {refused}"
        )
    for launch_class, result in zip(summary.classes, results, strict=True):
        if result.refused:
            left_out(f"{launch_class.kernel} {launch_class.size_label}: {result.refused}")
    return profiles


def _of_dataset(folder: Path) -> tuple[list[Profile], Recorded]:
    # Imported here: datasets need pyarrow, and a kernel's forecast does not.
    from crosscast.data.dataset import dataset_named
    from crosscast.prediction.time.datasets import recorded_times

    dataset = dataset_named(folder)
    if dataset.profiles.num_rows == 0:
        raise InputError.of(where=folder, expected="a dataset with profiles", found="none")
    return [from_row(row) for row in dataset.profiles.to_pylist()], recorded_times(dataset)


def _of_json(path: Path) -> list[Profile]:
    """Profiles of JSON: one object, a list, or one per line, as ``crosscast characterize`` prints them."""
    try:
        text = read_content(path).decode()
        entries = _values(text)
        if not entries:
            raise ValueError("found none")
        return [profile_of(entry, number) for number, entry in enumerate(entries)]
    except (ValueError, RecursionError, InputError) as error:
        raise InputError.of(
            where=path, expected=f"profiles as characterize --json prints them ({error})"
        ) from error


def _values(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, eq=False)
class ApplicationForecast(Tabular):
    """Times of the kernels and transfers of a recorded program on each device, in seconds."""

    kernels: TimeForecast  # Of one launch of each class that has a profile, with the number of launches
    covered: float  # Share of these in the recorded time of all kernels
    transfers: Mapping[str, float]  # Time of transfers, by device
    launches: Mapping[str, float]  # Cost of all launches if each waits for the previous one, by device
    # `(n,)` Launches of each kernel that each profiled launch represents
    repeat: Reals | float = 1.0

    def columns(self) -> Mapping[str, Column]:
        """A row a device, the fastest first."""
        transfers = np.array([self.transfers[device] for device in self.kernels.devices])
        costs = np.array([self.launches[device] for device in self.kernels.devices])
        kernels, low, high = self.kernels.of_all_launches(self.repeat)
        low, high = low + transfers * _LINK_RANGE[0], high + transfers * _LINK_RANGE[1] + costs
        launches = costs * _WAITING
        total = kernels + transfers + launches
        order = np.argsort(total, kind="stable")
        return {
            "device": [self.kernels.devices[index] for index in order],
            "time_s": total[order],
            "low_s": low[order],
            "high_s": high[order],
            "kernels_s": kernels[order],
            "transfers_s": transfers[order],
            "launches_s": launches[order],
        }


_LINK_BYTES_PER_S = 15.75e9
"""Bandwidth of PCI Express 3.0 with 16 lanes (PCI-SIG 2010, section 4.2)."""

_LINK_RANGE = (1.0, 2.0)
"""Limits of a transfer's time over that at the documented bandwidth."""

_WAITING = 0.5
"""Expected share of the cost of launches: 0 where a launch is queued while another runs, 1 where the host
waits for each."""


def forecast_application(
    summary: Summary,
    replayed: Sequence[Replayed],
    model: str | Path | None = None,
    *,
    devices: Sequence[str | Device] | str | Device | None = None,
    level: float = 0.9,
) -> ApplicationForecast:
    """Predict a recorded program: the time of each class of launches, times their number, and transfers.

    Each launch costs up to as much as an empty kernel on the device (`launch_overhead_s` where it was
    measured), half of it in the prediction. Transfers to and from a GPU or accelerator take their bytes over
    the bandwidth of PCI Express 3.0 with 16 lanes, on CPUs over half of that of memory, up to twice as long.
    The work of the host is not included.
    """
    # Imported here: what replays traces brings the compiler.
    from crosscast.tracing.summary import UPLOAD, represented

    pairs = list(zip(summary.classes, replayed, strict=True))
    known = [(each, result.profile) for each, result in pairs if result.profile]
    if not known:
        raise InputError.of(
            where=summary.trace.folder, expected="launches that can be run again", found="none"
        )
    batches = [ProfileBatch.of([profile], invocations=each.count) for each, profile in known]
    batch = ProfileBatch.joined(batches)
    launches_of = zip(represented(summary, replayed), replayed, strict=True)
    repeat = np.array([count for count, result in launches_of if result.profile]) / batch.invocations
    transferred = sum(each.bytes for each in summary.transfers if each.kind in ("read", "write", UPLOAD))

    def predicted(trained: TrainedTimes[Any]) -> ApplicationForecast:
        by_key = {device.key: device for device in trained.devices}
        chosen = None if devices is None else named_devices(as_sequence(devices), list(by_key))
        forecast = trained.predict(batch, chosen, level=level).on_device()
        by_key |= {each.key: each for each in chosen or () if not isinstance(each, str)}
        covered = sum(each.seconds for each, result in pairs if result.profile or result.interpolation)
        covered = covered / summary.device_s if summary.device_s else 1.0
        transfers = {key: transferred / _link(by_key[key]) for key in forecast.devices}
        launches = {key: summary.launches * launch_cost(by_key[key]) for key in forecast.devices}
        return ApplicationForecast(forecast, covered, transfers, launches, repeat)

    return first_fit(models_for(model, "time", devices), predicted)[1]


def _link(device: Device) -> float:
    """Bandwidth between the host's memory and the device's, in bytes per second."""
    if device.type == "cpu":
        return device.numbers.get("bandwidth_bytes_per_s", 2 * _LINK_BYTES_PER_S) / 2
    return _LINK_BYTES_PER_S
