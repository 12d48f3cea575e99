"""Profile of an application: isolated, and beside stressors that are calibrated on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from statistics import fmean

from crosscast.data.corun import IsolatedRun
from crosscast.data.fields import TableRow
from crosscast.data.schema import device_domains
from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.corun import CoRunnerRun, JobWork, MixRun
from crosscast.measure.corun.crew import MixRunner
from crosscast.measure.host_state import counter_shares
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import InstructionMixJob, run_job
from crosscast.measure.stressors import ARRAYS, IMAGES, LEVELS, VGA_BYTES, extents_of
from crosscast.measure.subjects import Stressor, Subject
from crosscast.units import format_bytes, format_bytes_per_second

_MOST_OF_MEMORY = 0.125
_UNKNOWN_CACHE = 1 << 20
_LARGE_IMAGE = 64 << 20
"""Four of these exceed every cache of today."""
_FASTER = 1.15  # Speed-up over reading from memory from which on images are partly in a cache
_LEAST_RUN_S = 2e-3  # Least seconds of a run, so that the launch overhead is small
_MOST_PASSES = 1 << 12
_CPU_GROUPS, _GPU_GROUPS, _GPU_ITEMS = 4, 8, 256
"""Work-groups of a compute unit, and work-items of a group on a GPU; a group on a CPU has one."""
_TOO_FAST = 0.9  # A slowdown below this shows a disturbed isolated time
_SLACK = 0.05  # Tolerance for noise in the order of levels
_CHARACTERIZE_S = 600.0  # Time limit of a characterization, which takes much longer than a run
_NO_JOB = "no job ended in time"
_SHOWN = ("time_s", "bandwidth_bytes_per_s", "llc_miss")


@dataclass(frozen=True)
class Level:
    """A stressor on a device."""

    name: str  # `low`, `medium` or `high`
    work: JobWork  # Its work, with the runs of a job
    time_s: float  # Isolated time of a job, in seconds
    bandwidth_bytes_per_s: float  # Bytes read and written by its program a second
    images_bytes_per_s: float  # Bytes of images read a second
    # Miss rate of the last-level cache, 0 to 1; `None` without counters
    llc_miss: float | None = None


@dataclass(frozen=True)
class StressorCalibration:
    """The stressors on a device."""

    device: str  # Id of the device
    image_bytes: int  # Bytes of an image of the pool
    pool_bytes: int  # Bytes of all images
    levels: tuple[Level, ...]  # Low, medium and high

    @property
    def doubts(self) -> list[str]:
        """Sentences that doubt the order of the levels."""
        shares = [level.llc_miss for level in self.levels]
        known = [share for share in shares if share is not None]
        counted = len(known) == len(shares)
        order = known if counted else [-level.images_bytes_per_s for level in self.levels]
        if all(after >= before - _SLACK * abs(before) for before, after in pairwise(order)):
            return []
        expected = "more misses" if counted else "slower reading of images"
        return [f"stressors on {self.device}: expected {expected} from one to the next, found {self.text}"]

    @property
    def text(self) -> str:
        """Measured values, for people."""
        return ", ".join(
            f"{level.name} {format_bytes_per_second(level.bandwidth_bytes_per_s)}"
            + ("" if level.llc_miss is None else f" (LLC misses {100 * level.llc_miss:.3g} %)")
            for level in self.levels
        )

    @property
    def sentence(self) -> str:
        """Sentence on the measured values, for people."""
        uncounted = any(level.llc_miss is None for level in self.levels)
        return (
            f"stressors on {self.device}: {self.text}; {IMAGES} images of "
            f"{format_bytes(self.image_bytes)}"
            + (" (no counters of misses here: bandwidths)" if uncounted else "")
        )

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {
            "image_bytes": self.image_bytes,
            "pool_bytes": self.pool_bytes,
            "levels": {level.name: {name: getattr(level, name) for name in _SHOWN} for level in self.levels},
            "doubts": self.doubts,
        }


def calibrate_stressors(
    crew: MixRunner, device: str, facts: TableRow, note: Callable[[str], None] = lambda text: None
) -> StressorCalibration:
    """Choose images that exceed every cache of a device, and measure the three stressors with them.

    An image has the size of the largest known cache, and more if reading is clearly slower with images of
    64 MiB, as the driver may not report every cache.
    """
    extents = _extents(facts)

    def measured(name: str, image_bytes: int) -> Level:
        note(f"stressor {name} with images of {format_bytes(image_bytes)}")
        return _measured(crew, device, Stressor(name, {**extents, "image_bytes": image_bytes}))

    chosen = extents["image_bytes"]
    medium = measured("medium", chosen)
    run_s = medium.time_s / (medium.work.runs or 1)
    if run_s < _LEAST_RUN_S:
        extents["passes"] = min(ceil(_LEAST_RUN_S / run_s), _MOST_PASSES)
        medium = measured("medium", chosen)
    largest = min(_room(facts), max(_LARGE_IMAGE, chosen))
    from_memory = measured("medium", largest) if largest > chosen else medium
    from_cache = _FASTER * from_memory.images_bytes_per_s
    while medium.images_bytes_per_s > from_cache and 2 * chosen < largest:
        chosen *= 2
        medium = measured("medium", chosen)
    if medium.images_bytes_per_s > from_cache:
        medium, chosen = from_memory, largest
    levels = (measured("low", chosen), medium, measured("high", chosen))
    return StressorCalibration(device, chosen, chosen * extents["images"], levels)


def _room(facts: TableRow) -> int:
    """Return the most bytes of an image."""
    room = int(_MOST_OF_MEMORY * facts.integer("memory_bytes")) // (IMAGES + ARRAYS)
    return extents_of(room)["image_bytes"]


def _extents(facts: TableRow) -> dict[str, int]:
    cache = max(facts.integer_or_none(name) or 0 for name in ("l1_bytes", "l2_bytes", "l3_bytes"))
    image_bytes = max(cache or _UNKNOWN_CACHE, VGA_BYTES)
    units, image_bytes = facts.integer("compute_units"), min(image_bytes, _room(facts))
    if facts["type"] == "gpu":
        items = min(_GPU_ITEMS, facts.integer("max_work_group_size"))
        return extents_of(image_bytes, _GPU_GROUPS * units, items)
    return extents_of(image_bytes, _CPU_GROUPS * units)


def _measured(crew: MixRunner, device: str, subject: Stressor) -> Level:
    (co_runner,) = crew.run([JobWork(subject)]).co_runners
    if not co_runner.times_s or not co_runner.runs:
        raise DeviceFault(f"{device}: the stressor {subject.level} failed ({co_runner.failure or _NO_JOB})")
    stressor = LEVELS[subject.level](subject.parameters, 0)
    job_s = fmean(co_runner.times_s)
    return Level(
        subject.level,
        JobWork(subject, co_runner.runs),
        job_s,
        stressor.moved_bytes * co_runner.runs / job_s,
        stressor.iterations * stressor.image_bytes * co_runner.runs / job_s,
        counter_shares(co_runner.counters).get("llc_miss"),
    )


@dataclass(frozen=True)
class ProfiledApplication:
    """A profiled application."""

    isolated_run: IsolatedRun  # Its isolated run with features
    notes: list[str] = field(default_factory=list)  # Sentences on problems that were no failures


def profile_of(
    name: tuple[str, str],
    subject: Subject,
    device: OpenCLDevice,
    crew: MixRunner,
    calibration: StressorCalibration | None,
    *,
    characterize: bool = False,
    on_cpu: tuple[OpenCLDevice, MixRunner] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> ProfiledApplication:
    """Profile an application on a device: isolated, then beside each stressor.

    Source: Moolchandani, Kumar and Sarangi 2022, sections 5.1.1, 5.1.2 and 5.1.4. Features that cannot be
    measured on this machine are left out.
    """
    label = " ".join(name)
    note(f"{label} alone")
    alone = crew.run([JobWork(subject)])
    (isolated,) = alone.co_runners
    if not isolated.times_s:
        raise DeviceFault(isolated.failure or f"{label}: {_NO_JOB}")
    time_s, runs = fmean(isolated.times_s), isolated.runs or 1
    notes = list(alone.notes)
    features: dict[str, float] = {}
    if characterize:
        note(f"characterize {label}")
        features |= _instruction_mix(subject, notes)
    if device.type == "cpu":
        features |= _cpu_features(device, alone, time_s)
    elif on_cpu is not None:
        note(f"{label} alone on {on_cpu[0].id}")
        features |= _features_on_cpu(*on_cpu, subject, runs, notes)
    for level in calibration.levels if calibration else ():
        note(f"{label} beside the stressor {level.name}")
        features |= _beside(level, crew.run([JobWork(subject, runs), level.work]), time_s, notes)
    measured = device_power_w(alone), isolated.memory_bytes
    run = IsolatedRun(*name, device.key, time_s, "{}", runs, *measured, dict(sorted(features.items())))
    return ProfiledApplication(run, notes)


def _instruction_mix(subject: Subject, notes: list[str]) -> dict[str, float]:
    """Return the shares of instructions; without them, note the reason."""
    assert not isinstance(subject, Stressor)
    try:
        answer = run_job(InstructionMixJob(subject, _CHARACTERIZE_S), _CHARACTERIZE_S)
    except MissingExtraError:
        raise
    except CrosscastError as error:
        notes.append(f"no instruction mix: {error}")
        return {}
    return {f"mix_{kind}": share for kind, share in answer["mix"].items()}


def job_time_s(co_runner: CoRunnerRun) -> float | None:
    """Return the mean time of a co-runner's jobs, in seconds; ``None`` without jobs."""
    return fmean(co_runner.times_s) if co_runner.times_s else None


def device_power_w(mix: MixRun) -> float | None:
    """Return the mean power of the whole device, in watts; ``None`` without a sensor."""
    domains = device_domains(mix.powers_w)
    return sum(mix.powers_w[name] for name in domains) if domains else None


def _cpu_features(device: OpenCLDevice, alone: MixRun, time_s: float) -> dict[str, float]:
    """Return the CPU features of Table 5, from a run on a CPU."""
    (co_runner,) = alone.co_runners
    features = {"cpu_time_s": time_s, **counter_shares(co_runner.counters)}
    if (power_w := device_power_w(alone)) is not None:
        features["cpu_power_w"] = power_w
    if co_runner.cpu_s:
        # The clock of CPU time is coarser than that of wall time.
        features["utilisation"] = min(co_runner.cpu_s / (time_s * device.compute_units), 1.0)
    return features


def _features_on_cpu(
    device: OpenCLDevice, crew: MixRunner, subject: Subject, runs: int, notes: list[str]
) -> dict[str, float]:
    """Return the CPU features of an application whose device is no CPU, for a job of equal runs."""
    alone = crew.run([JobWork(subject)])
    (co_runner,) = alone.co_runners
    if not co_runner.times_s:
        notes.append(f"on {device.id}: {co_runner.failure or _NO_JOB}")
        return {}
    time_s = fmean(co_runner.times_s)
    features = _cpu_features(device, alone, time_s)
    # The utilisation of the CPU is not that of the device.
    features.pop("utilisation", None)
    return {**features, "cpu_time_s": time_s / (co_runner.runs or 1) * runs}


def _beside(level: Level, mix: MixRun, time_s: float, notes: list[str]) -> dict[str, float]:
    """Return the features of an application beside a stressor."""
    time_beside_s, stressor_s = (job_time_s(co_runner) for co_runner in mix.co_runners)
    if mix.failed or time_beside_s is None or stressor_s is None:
        reason = next((each.failure for each in mix.co_runners if each.failure), _NO_JOB)
        notes.append(f"beside the stressor {level.name}: {reason}")
        return {}
    slowdown, inflicted = time_beside_s / time_s, stressor_s / level.time_s
    if slowdown < _TOO_FAST:
        notes.append(
            f"{slowdown:.2f} times as long beside the stressor {level.name} as alone: something "
            "disturbed the isolated run; measure on a machine with nothing else to do"
        )
    fairness, power_w = min(slowdown, inflicted) / max(slowdown, inflicted), device_power_w(mix)
    features = {"slowdown": slowdown, "inflicted": inflicted, "fairness": fairness}
    powers = {} if power_w is None else {f"power_{level.name}_w": power_w}
    return {f"{name}_{level.name}": value for name, value in features.items()} | powers
