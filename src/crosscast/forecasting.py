"""A forecast of kernels in one call: their profiles, the devices, and the first model that fits."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crosscast.characterization.embedding.files import read_content, read_embedded
from crosscast.characterization.embedding.payload import profile_of
from crosscast.data.profiles import from_row, read_csv, read_parquet
from crosscast.errors import InputError
from crosscast.fields import listed
from crosscast.kernel import Launch
from crosscast.prediction.named_models import load_model, models_for_devices
from crosscast.prediction.warnings import format_names
from crosscast.profile import Profile
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.device import Device
    from crosscast.prediction.named_models import NamedModel
    from crosscast.prediction.registry import QuestionName
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.roofline import Verdict, Verdicts

__all__ = ["Recorded", "explain", "first_fit", "models_for", "named_devices", "predict", "read_profiles"]

Thing = TypeVar("Thing")

Recorded = dict[tuple[str, str, str], dict[str, float]]
"""Median times in seconds by application, kernel and size, and by device."""

Asked = str | Path | Profile | Launch
"""What a forecast can be asked of."""


def predict(
    kernels: Asked | Sequence[Asked],
    model: str | Path | None = None,
    *,
    devices: Sequence[str | Device] | str | Device | None = None,
    probes: Mapping[str, float] | None = None,
    level: float = 0.9,
    invocations: int | None = None,
) -> TimeForecast:
    """Predict how long kernels take on each device, and recommend a device.

    This is what ``crosscast predict`` does. A notebook shows what it returns as a table.

    Parameters
    ----------
    kernels
        A launch file (``.toml``, ``.sim``) or a `Launch`, which is characterized now; a `Profile`; a file
        of profiles (``.json``, ``.csv``, ``.parquet``), or one with embedded profiles; the folder of a
        dataset, or ``"bundled"``; or several of these. Several launches of a kernel are taken as invocations
        in one run, and the times are those of one of them.
    model
        Name or folder of a model of times; by default the first that has a name and fits, of those that the
        user keeps and those that come with Crosscast. One that was calibrated is asked where `devices` name
        its device.
    devices
        Names of devices that the model knows or the catalogue has, or descriptions; by default all that the
        model knows.
    probes
        Measured times of the one kernel in seconds, by device; the forecasts are conditioned on them.
    level
        Probability that the intervals are to hold.
    invocations
        How often a kernel is launched in a run; by default as often as in `kernels`.

    Returns
    -------
    TimeForecast
        Times in seconds with intervals; ``recommended`` has a device for each kernel, ``warnings`` what makes
        a forecast doubtful, and ``to_pandas()`` and ``to_dict()`` all of it.

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
    # Imported here: models of times bring NumPy.
    from crosscast.prediction.time.data import ProfileBatch

    profiles: list[Profile] = []
    recorded: Recorded = {}
    for each in [kernels] if isinstance(kernels, Asked) else kernels:
        found, times = _profiles(each)
        profiles += found
        recorded.update(times)
    batch = ProfileBatch.of(profiles, invocations=invocations)

    def predicted(trained: Any) -> TimeForecast:
        known = [device.key for device in trained.devices]
        chosen = None if devices is None else named_devices(listed(devices), known)
        forecast: TimeForecast = trained.predict(batch, chosen, probes=probes, level=level)
        return forecast.with_recorded(recorded)

    return first_fit(models_for(model, "time", devices), predicted)[1]


@dataclass(frozen=True)
class BesideMeasured(Tabular):
    """Forecast times on one device beside measured ones, of each kernel, in seconds."""

    kernels: tuple[str, ...]
    measured_s: tuple[float, ...]
    forecast_s: tuple[float, ...]
    low_s: tuple[float, ...]
    high_s: tuple[float, ...]
    level: float  # Of the intervals

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each kernel."""
        both = list(zip(self.measured_s, self.forecast_s, self.low_s, self.high_s, strict=True))
        return {
            "kernel": self.kernels,
            "measured_s": self.measured_s,
            "forecast_s": self.forecast_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "forecast_over_measured": [forecast / measured for measured, forecast, _, _ in both],
            "inside": [low <= measured <= high for measured, _, low, high in both],
        }


def beside_measured(forecast: TimeForecast, measured_s: Mapping[str, float]) -> BesideMeasured:
    """Kernels that were forecast on one device and measured there, by the device's clock."""
    forecast = forecast.on_device()
    places = [place for place, name in enumerate(forecast.profiles.kernel) if name in measured_s]
    names = tuple(forecast.profiles.kernel[place] for place in places)
    centre, low, high = (
        tuple(each[places, 0].tolist()) for each in (forecast.centre, forecast.low, forecast.high)
    )
    return BesideMeasured(names, tuple(measured_s[name] for name in names), centre, low, high, forecast.level)


def _profiles(asked: Asked) -> tuple[list[Profile], Recorded]:
    if isinstance(asked, Profile):
        return [asked], {}
    if isinstance(asked, Launch):
        return [_characterized(asked)], {}
    return read_profiles(Path(asked))


def _characterized(launch: Launch, number: int = 0) -> Profile:
    # Imported here: the engine brings the compiler, and stored profiles need none of it.
    from crosscast.characterization.run import Options, characterize_launch

    return characterize_launch(launch, invocation=number, options=Options(sample_groups="auto"))


def read_profiles(
    path: Path, characterized: Callable[[Launch, int], Profile] = _characterized
) -> tuple[list[Profile], Recorded]:
    """Read the profiles of a file, dataset or trace, or make those of a launch file's launches."""
    if path.is_dir():
        # Imported here: stored profiles need none of it.
        from crosscast.tracing.trace import is_trace

        return (_of_trace(path, characterized), {}) if is_trace(path) else _of_dataset(path)
    if str(path) == "bundled":
        return _of_dataset(path)
    if path.suffix in (".parquet", ".csv"):
        profiles = read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
        if not profiles:
            raise InputError(f"{path}: expected profiles, found an empty table")
        return profiles, {}
    if path.suffix in (".json", ".jsonl"):
        return _of_json(path), {}
    # Imported here: stored profiles need none of it.
    from crosscast.characterization.launchfiles.launchfile import LAUNCH_FILES, read_launches

    if path.suffix in LAUNCH_FILES:
        return [characterized(launch, number) for number, launch in enumerate(read_launches(path))], {}
    try:
        return list(read_embedded(path)), {}
    except InputError as error:
        raise InputError(
            f"{error}; to characterize it now, say its launch (--global 1024 --arg ...)"
        ) from error


def _of_trace(folder: Path, characterized: Callable[[Launch, int], Profile]) -> list[Profile]:
    """Profiles of the classes of a trace's launches, each as often as it was launched."""
    # Imported here: stored profiles need none of it.
    from crosscast.tracing.summary import Trace, replayed, summary_of

    summary = summary_of(Trace(folder))
    found = replayed(summary, characterized)
    profiles = [each.profile for each in found if each.profile is not None]
    if not profiles:
        refused = next((each.refused for each in found), "it has no launches")
        raise InputError(
            f"{folder}: expected a trace with a launch that can be run again, found none: {refused}"
        )
    return profiles


def _of_dataset(folder: Path) -> tuple[list[Profile], Recorded]:
    # Imported here: datasets need pyarrow, and a kernel's forecast does not.
    from crosscast.data.dataset import dataset_named
    from crosscast.prediction.time.data import recorded_times

    dataset = dataset_named(folder)
    if dataset.profiles.num_rows == 0:
        raise InputError(f"{folder}: expected a dataset with profiles, found none")
    return [from_row(row) for row in dataset.profiles.to_pylist()], recorded_times(dataset)


def _of_json(path: Path) -> list[Profile]:
    """Profiles of JSON: one object, a list, or one a line, as ``crosscast characterize`` prints them."""
    try:
        text = read_content(path).decode()
        entries = _values(text)
        if not entries:
            raise ValueError("found none")
        return [profile_of(entry, number) for number, entry in enumerate(entries)]
    except (ValueError, RecursionError, InputError) as error:
        raise InputError(f"{path}: expected profiles as characterize --json prints them ({error})") from error


def _values(text: str) -> list[object]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def explain(
    kernels: Asked | Sequence[Asked], devices: Sequence[str | Device] | str | Device | None = None
) -> Verdicts:
    """Say what bounds kernels on devices: memory, compute, launch or latency; why, and what to try.

    It looks at profiles and data sheets alone, and is no forecast; ``crosscast explain`` shows one beside it.

    Parameters
    ----------
    kernels
        As of `crosscast.predict`.
    devices
        Names of devices in the catalogue, or descriptions; by default h100-sxm, rtx4090 and epyc-9654.

    Returns
    -------
    Verdicts
        A row for each launch and device: ``bound``, how long each limit takes in seconds, and ``why``.
        ``verdicts`` has for each also ``notes`` and ``advice``.

    Raises
    ------
    InputError
        If a file or device is not known, or lacks a number that is needed.
    KernelFault, CompileError, UnsupportedError
        If a kernel cannot be characterized.

    Examples
    --------
    >>> import crosscast
    >>> found = crosscast.explain("bundled", ["rtx4090"])
    >>> found.verdicts[0].bound
    'launch'
    """
    # Imported here: what predicts needs neither.
    from crosscast.devices.catalogue import device_named
    from crosscast.roofline import DEVICES, verdicts_of

    asked = [kernels] if isinstance(kernels, Asked) else kernels
    profiles = [profile for each in asked for profile in _profiles(each)[0]]
    named: Sequence[str | Device] = DEVICES if devices is None else listed(devices)
    return verdicts_of(profiles, [device_named(each) if isinstance(each, str) else each for each in named])


def forecast_beside(profiles: Sequence[Profile], devices: Sequence[Device]) -> TimeForecast | None:
    """How long kernels take on devices and on what; ``None`` where no model tells both of all of them."""
    if not all("sub_groups" in each.launch for each in profiles):
        return None  # A model that takes these knows no terms.
    try:
        found = predict(profiles, devices=devices)
    except InputError:
        return None
    return None if found.terms is None else found


def verdicts_beside(
    forecast: TimeForecast, profiles: Sequence[Profile], devices: Mapping[str, Device]
) -> list[Verdict | None]:
    """For each kernel of a forecast, what bounds its longest launch on the recommended device.

    ``None`` where a metric is missing.
    """
    # Imported here: models of times bring NumPy.
    from crosscast.prediction.time.data import kernel_key
    from crosscast.roofline import amounts_of, verdict_of

    longest: dict[object, Profile] = {}
    for each in profiles:
        first = longest.setdefault(kernel_key(each), each)
        if _instructions(each) > _instructions(first):
            longest[kernel_key(each)] = each
    found: list[Verdict | None] = []
    for profile, choice in zip(longest.values(), forecast.recommended, strict=True):
        amounts = amounts_of(profile)
        found.append(None if amounts is None else verdict_of(amounts, devices[choice.device]))
    return found


def _instructions(profile: Profile) -> float:
    return profile.metrics.get("total_instruction_count") or 0.0


Loaded = Iterable[tuple["NamedModel | None", Any]]


def models_for(
    model: str | Path | None,
    question: QuestionName,
    devices: Sequence[str | Device] | str | Device | None = None,
) -> Loaded:
    """Load the model that is named; or else those that have a name in turn, when they are asked for.

    What was calibrated comes first where its device is asked about, and is none of these otherwise.
    """
    if model is not None:
        return [(None, load_model(model, question))]
    given: Sequence[str | Device] = () if devices is None else listed(devices)
    named = models_for_devices(question, {each if isinstance(each, str) else each.key for each in given})
    return ((each, load_model(each.folder, question)) for each in named)


def first_fit(
    models: Loaded, use: Callable[[Any], Thing], tell: Callable[[str], None] | None = None
) -> tuple[Any, Thing]:
    """The first model that can be used, which is told if nobody named it, and what the use of it gives.

    A model cannot be used if that raises `InputError`: it is of other devices, or of other counters.
    """
    refusals: dict[str, InputError] = {}
    for named, trained in models:
        try:
            found = use(trained)
        except InputError as error:
            if named is None:
                raise
            refusals[named.name] = error
        else:
            if named is not None and tell is not None:
                tell(f"crosscast: model {named.name}: {named.about} (crosscast models lists all)")
            return trained, found
    errors = list(refusals.values())
    if len({str(error) for error in errors}) == 1 or all(isinstance(e, UnknownDevice) for e in errors):
        # What they say differs in the devices that are near at most.
        raise max(errors, key=lambda error: len(str(error)))
    reasons = "; ".join(f"{name}: {error}" for name, error in refusals.items())
    raise InputError(f"--model: none of the models that have a name fits ({reasons})")


_HOW_TO_ADD = "to add one, measure it (crosscast calibrate) or describe it (--device-file)"
_MOST_NEAR = 3
_MOST_KNOWN = 6


class UnknownDevice(InputError):
    """A device that neither the model nor the catalogue has."""


def named_devices(
    devices: Sequence[str | Device], known: Sequence[str], field: str = "devices"
) -> list[str | Device]:
    """Devices by name: those that a model knows, and else those of the catalogue, each once."""
    chosen = [_named_device(each, known, field) if isinstance(each, str) else each for each in devices]
    # A device of the catalogue may be named by its key and by its name.
    return list({each if isinstance(each, str) else each.key: each for each in chosen}.values())


def _named_device(name: str, known: Sequence[str], field: str) -> str | Device:
    """A device that the model knows, or else one of the catalogue."""
    # Imported here: most devices are the model's own.
    from crosscast.devices.catalogue import NameOfSeveral, catalogue, device_named

    if name in known:
        return name
    try:
        device = device_named(name)
    except NameOfSeveral:
        raise
    except InputError as error:
        near = difflib.get_close_matches(name, [*known, *catalogue()], n=_MOST_NEAR)
        like = f", near to which are {', '.join(dict.fromkeys(near))}" if near else ""
        raise UnknownDevice.of(
            where=field,
            expected=f"some of {format_names(known, _MOST_KNOWN)}, or {error.expected}",
            found=f"{name!r}{like}; {_HOW_TO_ADD}",
        ) from error
    return device.key if device.key in known else device
