"""A campaign on more than one machine: workers of Dask measure, and who asked them writes the dataset."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.fields import TableRow
from crosscast.errors import CrosscastError, DeviceFault, EnvironmentFault, InputError
from crosscast.measure.campaign import Place
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import OpenCLDevice, devices
from crosscast.measure.processes import Answer, Job, run_job

if TYPE_CHECKING:
    from distributed import Client

_LOOKS_S = 1.0
_SAID = ("name", "compute_units", "platform", "driver", "timer_resolution_s", "pci_bus_id")


@dataclass(frozen=True)
class FarDevice:
    """A device of a worker, as far as it can be sent."""

    id: str
    key: str
    type: str
    said: dict[str, object]  # What its driver says
    row: TableRow  # Its row of the table of devices without what has to be measured

    def here(self) -> OpenCLDevice:
        """The same for those who ask what it is, and run nothing on it."""
        found = OpenCLDevice(self.id, self.key, self.type, handle=None)
        # In the place of what the handle would be asked for.
        vars(found).update(self.said)
        return found


def _devices() -> list[FarDevice] | str:
    """Those of the worker that runs this; or why it has none."""
    try:
        return [
            FarDevice(
                each.id, each.key, each.type, {name: getattr(each, name) for name in _SAID}, known_row(each)
            )
            for each in devices()
        ]
    except CrosscastError as error:
        return str(error)


def _run(job: Job, timeout_s: float) -> Answer | CrosscastError:
    """Run a job on a worker, when nothing else is measured on its machine."""
    with _alone():
        try:
            return run_job(job, timeout_s)
        except CrosscastError as error:
            return error


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other worker of this user measures on this machine."""
    path = Path(tempfile.gettempdir()) / f"crosscast-measuring-{os.getuid()}.lock"
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Workers(Place):
    """The workers of a client of Dask, as a place.

    Parameters
    ----------
    client
        Of ``distributed``. Workers that come later are not asked.

    Raises
    ------
    EnvironmentFault
        If no worker has a device.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._devices: dict[str, list[FarDevice]] = {}
        told = client.run(_devices)
        for worker, found in sorted(told.items()):
            if not isinstance(found, str):
                self._devices[worker] = found
        if not self._devices:
            raise EnvironmentFault(f"executor: no worker has a device ({next(iter(told.values()))})")
        self.at_once = len(self._devices)

    def devices(self, names: Sequence[str]) -> list[OpenCLDevice]:
        """Devices of ids or keys; ``all`` stands for every one. Equal ones of several machines are one."""
        there: dict[str, FarDevice] = {}
        for found in self._devices.values():
            for each in found:
                there.setdefault(each.key, each)
        known = {name for each in there.values() for name in (each.id, each.key)}
        for name in names:
            if name != "all" and name not in known:
                expected = f"one of {', '.join(sorted(known))}"
                raise InputError.of(field="devices", expected=expected, found=repr(name))
        wanted = there.values() if "all" in names else (e for e in there.values() if {e.id, e.key} & {*names})
        return [each.here() for each in wanted]

    def known(self, device: OpenCLDevice) -> TableRow:
        """What its driver said."""
        every = (each for found in self._devices.values() for each in found)
        return next(each.row for each in every if each.key == device.key)

    def run(self, job: Job, timeout_s: float, device: OpenCLDevice | None = None) -> Answer:
        """Run a job on a worker that has the device; on another one if that worker is lost."""
        from distributed import KilledWorker

        able = [
            worker
            for worker, found in self._devices.items()
            if device is None or any((each.key, each.id) == (device.key, device.id) for each in found)
        ]
        asked = self._client.submit(_run, job, timeout_s, workers=able, pure=False)
        while True:
            try:
                answer = asked.result(timeout=_LOOKS_S)
                break
            except TimeoutError:
                if not set(able) & set(self._client.scheduler_info(n_workers=-1)["workers"]):
                    asked.cancel()
                    raise DeviceFault("no worker that has the device is left") from None
            except KilledWorker as error:
                raise DeviceFault("the workers that were to do it were lost") from error
        if isinstance(answer, CrosscastError):
            raise answer
        answered: Answer = answer
        return answered
