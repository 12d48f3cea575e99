"""Campaigns on several machines: Dask workers measure, and the client writes the dataset."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.fields import TableRow
from crosscast.errors import CrosscastError, DeviceFault, EnvironmentFault, InputError
from crosscast.measure.campaign import JobRunner
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import OpenCLDevice, devices
from crosscast.measure.processes import Answer, Job, run_job

if TYPE_CHECKING:
    from distributed import Client

_POLL_S = 1.0
_FACTS = ("name", "compute_units", "platform", "driver", "timer_resolution_s", "pci_bus_id")


@dataclass(frozen=True)
class RemoteDevice:
    """Serialisable description of a worker's device."""

    id: str
    key: str
    type: str
    facts: dict[str, object]  # Properties from its driver
    row: TableRow  # Row of the table of devices without measured columns

    def without_handle(self) -> OpenCLDevice:
        """Return the device without a handle, for its properties only."""
        device = OpenCLDevice(self.id, self.key, self.type, handle=None)
        # Fills the cached properties, which would query the handle.
        vars(device).update(self.facts)
        return device


def _devices() -> list[RemoteDevice] | str:
    """Return the devices of the worker that runs this, or the reason why it has none."""
    try:
        return [
            RemoteDevice(
                each.id, each.key, each.type, {name: getattr(each, name) for name in _FACTS}, known_row(each)
            )
            for each in devices()
        ]
    except CrosscastError as error:
        return str(error)


def _run(job: Job, timeout_s: float) -> Answer | CrosscastError:
    """Run a job on a worker once no other worker measures on its machine."""
    with _exclusive():
        try:
            return run_job(job, timeout_s)
        except CrosscastError as error:
            return error


@contextmanager
def _exclusive() -> Iterator[None]:
    """Wait until no other worker of this user measures on this machine."""
    path = Path(tempfile.gettempdir()) / f"crosscast-measuring-{os.getuid()}.lock"
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Workers(JobRunner):
    """Runs jobs on the workers of a client of ``distributed``; those that join later are not used."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._devices: dict[str, list[RemoteDevice]] = {}
        answers = client.run(_devices)
        for worker, answer in sorted(answers.items()):
            if not isinstance(answer, str):
                self._devices[worker] = answer
        if not self._devices:
            raise EnvironmentFault(f"executor: no worker has a device ({next(iter(answers.values()))})")
        self.at_once = len(self._devices)

    def devices(self, names: Sequence[str]) -> list[OpenCLDevice]:
        """Return devices by id or key, or ``all``; one for each key, which several machines may have."""
        by_key: dict[str, RemoteDevice] = {}
        for device in chain.from_iterable(self._devices.values()):
            by_key.setdefault(device.key, device)
        known = {name for device in by_key.values() for name in (device.id, device.key)}
        for name in names:
            if name != "all" and name not in known:
                expected = f"one of {', '.join(sorted(known))}"
                raise InputError.of(field="devices", expected=expected, found=repr(name))
        return [
            device.without_handle()
            for device in by_key.values()
            if "all" in names or {device.id, device.key} & {*names}
        ]

    def known(self, device: OpenCLDevice) -> TableRow:
        """Return the row of a device without measured columns."""
        remote = chain.from_iterable(self._devices.values())
        return next(each.row for each in remote if each.key == device.key)

    def run(self, job: Job, timeout_s: float, device: OpenCLDevice | None = None) -> Answer:
        """Run a job on a worker that has the device; on another one if that worker is lost."""
        from distributed import KilledWorker

        suitable = [
            worker
            for worker, devices in self._devices.items()
            if device is None or any((each.key, each.id) == (device.key, device.id) for each in devices)
        ]
        future = self._client.submit(_run, job, timeout_s, workers=suitable, pure=False)
        while True:
            try:
                answer = future.result(timeout=_POLL_S)
                break
            except TimeoutError:
                if not set(suitable) & set(self._client.scheduler_info(n_workers=-1)["workers"]):
                    future.cancel()
                    raise DeviceFault("no worker that has the device is left") from None
            except KilledWorker as error:
                raise DeviceFault("the workers that were to do it were lost") from error
        if isinstance(answer, CrosscastError):
            raise answer
        checked: Answer = answer
        return checked
