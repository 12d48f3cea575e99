"""A forecast of kernels in one call: their profiles, the devices, and the first model that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.fields import listed
from crosscast.errors import InputError
from crosscast.forecasting.profiles import Asked, Recorded, profiles_of
from crosscast.prediction.first_fit import first_fit, models_for, named_devices
from crosscast.profile import Profile
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.device import Device
    from crosscast.devices.roofline import Verdict, Verdicts
    from crosscast.prediction.named_models import TrainedTimes
    from crosscast.prediction.time.forecast import TimeForecast

__all__ = ["explain", "predict"]


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
        found, times = profiles_of(each)
        profiles += found
        recorded.update(times)
    batch = ProfileBatch.of(profiles, invocations=invocations)

    def predicted(trained: TrainedTimes) -> TimeForecast:
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
    from crosscast.devices.roofline import DEVICES, verdicts_of

    asked = [kernels] if isinstance(kernels, Asked) else kernels
    profiles = [profile for each in asked for profile in profiles_of(each)[0]]
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
    from crosscast.devices.roofline import amounts_of, verdict_of
    from crosscast.prediction.time.data import kernel_key

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
