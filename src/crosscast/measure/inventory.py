"""Devices of this machine, with properties, sensors and counters, and of Dask workers, which run jobs."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.data.fields import TableRow
from crosscast.errors import CrosscastError, DeviceFault, EnvironmentFault, InputError, MissingExtraError
from crosscast.measure import host_state
from crosscast.measure.microbenchmarks import OpenCLBackend
from crosscast.measure.microbenchmarks.bench import sheet_numbers
from crosscast.measure.microbenchmarks.cuda import CudaDevice
from crosscast.measure.microbenchmarks.cuda import devices as cuda_devices
from crosscast.measure.processes import Answer, Job, run_job
from crosscast.measure.sensors import SensorAvailability, sensors
from crosscast.suite.application import Caches

if TYPE_CHECKING:  # it needs PyOpenCL
    from distributed import Client

    from crosscast.measure.opencl import OpenCLDevice

_HZ_PER_MHZ = 1e6


def describe(device: OpenCLDevice) -> TableRow:
    """Measure the row of the table of devices, in this process."""
    row = known_row(device)
    measured = sheet_numbers(OpenCLBackend(device))
    sources = json.loads(row.text("sources")) | dict.fromkeys(measured, "measured: microbenchmarks")
    return TableRow({**row, **measured, "sources": json.dumps(sources)})


def known_row(device: OpenCLDevice) -> TableRow:
    """Return the row of the table of devices without measured columns."""
    from crosscast.measure.opencl import opencl_faults

    with opencl_faults(device.id, "describing it"):
        facts = static_facts(device)
    sources = {name: "OpenCL driver" for name, value in facts.items() if isinstance(value, int | float)}
    sources |= dict.fromkeys(_host_caches(device), "operating system")
    return TableRow({**facts, "sources": json.dumps(sources)})


def static_facts(device: OpenCLDevice) -> TableRow:
    """Return the properties of a device by its driver and the operating system; ``None`` where unknown."""
    handle = device.handle
    facts = {
        "device": device.key,
        "name": device.name,
        "vendor": str(handle.vendor),
        "type": device.type,
        "compute_units": device.compute_units,
        "clock_hz": handle.max_clock_frequency * _HZ_PER_MHZ or None,
        "memory_bytes": int(handle.global_mem_size),
        "local_memory_bytes": int(handle.local_mem_size),
        "l2_bytes": int(handle.global_mem_cache_size) or None,
        "timer_resolution_s": device.timer_resolution_s,
        "max_work_group_size": int(handle.max_work_group_size),
        "platform": device.platform,
        "driver": device.driver,
        **_host_caches(device),
    }
    return TableRow(facts)


def caches_of(device: OpenCLDevice) -> Caches:
    """Return the caches for problem sizes.

    A GPU has two relevant levels: the local memory of a compute unit, and the shared cache, which stands
    for the last two.
    """
    facts = static_facts(device)
    l1, l2, l3 = map(facts.integer_or_none, ("l1_bytes", "l2_bytes", "l3_bytes"))
    if device.type == "gpu":
        l1, l3 = l1 or facts.integer("local_memory_bytes"), l3 or l2
    if not (l1 and l2 and l3):
        raise InputError.of(
            where=device.id, expected="a device that tells its cache sizes", found="one that does not"
        )
    return Caches(l1, l2, l3)


def _host_caches(device: OpenCLDevice) -> dict[str, int | None]:
    """Return the caches of a CPU, of which OpenCL shows only the last."""
    return host_state.caches()._asdict() if device.type == "cpu" else {}


@dataclass(frozen=True)
class Entry:
    """A device with its sensors and counters."""

    device: OpenCLDevice | CudaDevice
    # Properties from its driver, by column of the table of devices; `None` where unknown
    facts: TableRow
    sensors: tuple[SensorAvailability, ...]  # Sensors of energy that a device of this type may have
    # Reason why each counter of the CPU does not work; `None` if it does. Empty for other devices
    counters: dict[str, str | None]

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        device = self.device
        identity = {"id": device.id, "name": device.name, "type": device.type}
        return {
            **identity,
            "compute_units": device.compute_units,
            "sensors": [asdict(sensor) for sensor in self.sensors],
            "counters": [
                {"name": name, "works": reason is None, "reason": reason}
                for name, reason in self.counters.items()
            ],
            **{name: value for name, value in self.facts.items() if name not in identity},
        }


def inventory() -> list[Entry]:
    """Return the devices of this machine: those of OpenCL, and others of CUDA."""
    cards: list[CudaDevice] = []
    with suppress(MissingExtraError, EnvironmentFault):
        cards = cuda_devices()
    by_opencl: list[OpenCLDevice] = []
    try:
        by_opencl = _opencl_devices()
    except (MissingExtraError, EnvironmentFault):
        if not cards:
            raise
    counting = host_state.available()
    listed = {device.pci_bus_id for device in by_opencl}
    listed_devices: list[OpenCLDevice | CudaDevice] = [*by_opencl]
    listed_devices += [card for card in cards if card.pci_bus_id not in listed]
    return [
        Entry(
            device,
            device.facts if isinstance(device, CudaDevice) else static_facts(device),
            tuple(sensors(device.type, device.pci_bus_id)),
            counting if device.type == "cpu" else {},
        )
        for device in listed_devices
    ]


class JobRunner:
    """Runs the jobs of a campaign: on this machine, one at a time."""

    at_once = 1

    def run(self, job: Job, timeout_s: float, device: OpenCLDevice | None = None) -> Answer:
        """Run a job, on a machine that has the device if one is given, and return its answer."""
        return run_job(job, timeout_s)

    def known(self, device: OpenCLDevice) -> TableRow:
        """Return the row of a device without measured columns."""
        return known_row(device)


LOCAL = JobRunner()


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
        from crosscast.measure.opencl import OpenCLDevice

        device = OpenCLDevice(self.id, self.key, self.type, handle=None)
        # Fills the cached properties, which would query the handle.
        vars(device).update(self.facts)
        return device


def _opencl_devices() -> list[OpenCLDevice]:
    from crosscast.measure.opencl import devices

    return devices()


def _devices() -> list[RemoteDevice] | str:
    """Return the devices of the worker that runs this, or the reason why it has none."""
    try:
        return [
            RemoteDevice(
                each.id, each.key, each.type, {name: getattr(each, name) for name in _FACTS}, known_row(each)
            )
            for each in _opencl_devices()
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
