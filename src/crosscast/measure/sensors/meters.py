"""Opening meters by name."""

from __future__ import annotations

from pathlib import Path

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.measure.sensors.meter import Meter
from crosscast.measure.sensors.nvml import gpus
from crosscast.measure.sensors.nvml_meter import NvmlMeter
from crosscast.measure.sensors.rapl_meter import RaplMeter
from crosscast.measure.sensors.replay_meter import ReplayMeter
from crosscast.measure.sensors.zones import ROOT

__all__ = ["open_meters"]

_REPLAY, _NVML = "replay:", "nvml:"


def open_meters(spec: str, root: Path = ROOT) -> tuple[list[Meter], list[str]]:
    """Open the meters of this machine by name.

    Parameters
    ----------
    spec
        ``rapl``, ``nvml`` (every GPU), ``nvml:UUID``, ``replay:PATH`` or ``none``; ``auto`` is all that work.
    root
        Folder of the powercap zones.

    Returns
    -------
    list of meters, list of str
        The meters, and of those that `auto` found not to work, why.

    Raises
    ------
    InputError
        If there is no sensor of that name, or the recording is not one.
    MissingExtraError
        If the sensor asked for needs a Python package that is not installed.
    EnvironmentFault
        If the sensor asked for does not work here, with the reason.
    """
    if spec.startswith(_REPLAY):
        return [ReplayMeter(Path(spec.removeprefix(_REPLAY)))], []
    if spec.startswith(_NVML):
        return [NvmlMeter(spec.removeprefix(_NVML))], []
    if spec == "none":
        return [], []
    if spec == "rapl":
        return [RaplMeter(root)], []
    if spec == "nvml":
        return _gpu_meters(), []
    if spec != "auto":
        known = f"auto, rapl, nvml, {_NVML}UUID, {_REPLAY}PATH"
        raise InputError(f"sensors must be one of {known} and none, found {spec!r}")
    found: list[Meter] = []
    reasons = []
    for name in ("rapl", "nvml"):
        try:
            found += open_meters(name, root)[0]
        except (EnvironmentFault, MissingExtraError) as error:
            reasons.append(str(error))
    return found, reasons


def _gpu_meters() -> list[Meter]:
    there = gpus()
    if not there:
        raise EnvironmentFault("nvml: this machine has no NVIDIA GPU")
    if len(there) == 1:
        return [NvmlMeter(there[0])]
    return [NvmlMeter(gpu, f"gpu-{number}") for number, gpu in enumerate(there)]
