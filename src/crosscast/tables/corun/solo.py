"""An application alone on a device: what predictions of co-running start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Solo"]


@dataclass(frozen=True)
class Solo:
    """An application at a size, alone on a device.

    Parameters
    ----------
    application
        Name of the application: what is left out when benchmarks are left out.
    size
        Name of its problem size, or what else tells its inputs apart.
    device
        Key of the device.
    time_s
        Time of a job, in seconds; ``None`` where it is not known.
    configuration
        Settings of the device as JSON; ``{}`` for its defaults.
    runs
        Runs of the application of which a job consists.
    power_w
        Mean power of the device meanwhile, in watts.
    memory_bytes
        Memory of the device that it takes.
    features
        What else is known, finite numbers by name; what is not known is not there.
    """

    application: str
    size: str
    device: str
    time_s: float | None
    configuration: str = "{}"
    runs: int = 1
    power_w: float | None = None
    memory_bytes: int | None = None
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Application and size, for people."""
        return f"{self.application} {self.size}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from others."""
        return self.application, self.size, self.device, self.configuration
