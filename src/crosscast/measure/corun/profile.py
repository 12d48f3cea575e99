"""Profiling: what is known of an application alone on a device, and beside each microbenchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from crosscast.errors import DeviceFault
from crosscast.measure.corun.bag_run import BagRun, MemberRun
from crosscast.measure.corun.bag_runner import BagRunner
from crosscast.measure.corun.calibration import Calibration, Level
from crosscast.measure.corun.counter_shares import counter_shares
from crosscast.measure.corun.work import Work
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.subjects import Subject
from crosscast.tables.corun.solo import Solo
from crosscast.tables.domains import whole_of

__all__ = ["Profiled", "device_power_w", "job_time_s", "profile_of"]

Note = Callable[[str], None]


@dataclass(frozen=True)
class Profiled:
    """An application as it was profiled.

    Parameters
    ----------
    solo
        What is known of it.
    notes
        What went wrong without ending it, as sentences.
    """

    solo: Solo
    notes: list[str] = field(default_factory=list)


def profile_of(
    name: tuple[str, str],
    subject: Subject,
    device: OpenCLDevice,
    crew: BagRunner,
    calibration: Calibration | None,
    *,
    mix: Mapping[str, float] | None = None,
    on_cpu: tuple[OpenCLDevice, BagRunner] | None = None,
    note: Note = lambda text: None,
) -> Profiled:
    """Profile an application on a device: alone, then beside each microbenchmark.

    Source: paper 004, sections 5.1.1, 5.1.2 and 5.1.4. What nothing here measures is not among the
    features.

    Parameters
    ----------
    name
        Names of the application and of its size.
    subject
        The application.
    device
        Where.
    crew
        What measures there.
    calibration
        The microbenchmarks there; ``None`` to do without.
    mix
        Share of each class of its instructions, by class.
    on_cpu
        A CPU and what measures there, for the features that are of a CPU, where the device is none.
    note
        Told what is being done.

    Raises
    ------
    DeviceFault
        If the application fails alone.
    """
    note(f"{' '.join(name)} alone")
    alone = crew.run([Work(subject)])
    (member,) = alone.members
    time_s = _expect_time(member, " ".join(name))
    runs = member.runs or 1
    found = Profiled(
        Solo(
            *name,
            device.key,
            time_s,
            runs=runs,
            power_w=device_power_w(alone),
            memory_bytes=member.memory_bytes,
        ),
        list(alone.notes),
    )
    features = {f"mix_{kind}": share for kind, share in (mix or {}).items()}
    if device.type == "cpu":
        features |= _of_cpu(device, alone, time_s)
    elif on_cpu is not None:
        note(f"{' '.join(name)} alone on {on_cpu[0].id}")
        features |= _elsewhere(*on_cpu, subject, runs, found.notes)
    for level in calibration.levels if calibration else ():
        note(f"{' '.join(name)} beside the microbenchmark {level.name}")
        bag = crew.run([Work(subject, runs), level.work])
        features |= _beside(level, bag, time_s, found.notes)
    solo = Solo(**{**vars(found.solo), "features": dict(sorted(features.items()))})
    return Profiled(solo, found.notes)


def job_time_s(member: MemberRun) -> float | None:
    """Mean time of a member's jobs, in seconds; ``None`` if none is known."""
    return fmean(member.times_s) if member.times_s else None


def device_power_w(bag: BagRun) -> float | None:
    """Mean power of the whole device, in watts; ``None`` without a sensor."""
    domains = whole_of(bag.powers_w)
    return sum(bag.powers_w[name] for name in domains) if domains else None


def _expect_time(member: MemberRun, name: str) -> float:
    time_s = job_time_s(member)
    if member.failure is not None or time_s is None:
        raise DeviceFault(member.failure or f"{name}: no job ended in time")
    return time_s


def _of_cpu(device: OpenCLDevice, alone: BagRun, time_s: float) -> dict[str, float]:
    """Features of Table 5 that are of a CPU, from a run there."""
    (member,) = alone.members
    found = {"cpu_time_s": time_s, **counter_shares(member.counters)}
    if (power_w := device_power_w(alone)) is not None:
        found["cpu_power_w"] = power_w
    if member.cpu_s:
        # The clock of CPU time is coarser than that of time.
        found["utilisation"] = min(member.cpu_s / (time_s * device.compute_units), 1.0)
    return found


def _elsewhere(
    device: OpenCLDevice, crew: BagRunner, subject: Subject, runs: int, notes: list[str]
) -> dict[str, float]:
    """The same of an application whose device is no CPU, for a job of the same runs."""
    alone = crew.run([Work(subject)])
    (member,) = alone.members
    time_s = job_time_s(member)
    if member.failure is not None or time_s is None:
        notes.append(f"on {device.id}: {member.failure or 'no job ended in time'}")
        return {}
    found = _of_cpu(device, alone, time_s)
    # How busy the CPU is there says nothing of how busy the device is.
    found.pop("utilisation", None)
    return {**found, "cpu_time_s": time_s / (member.runs or 1) * runs}


def _beside(level: Level, bag: BagRun, time_s: float, notes: list[str]) -> dict[str, float]:
    """Features of an application beside a microbenchmark."""
    own, other = (job_time_s(member) for member in bag.members)
    failures = [member.failure for member in bag.members if member.failure is not None]
    if failures or own is None or other is None:
        why = failures[0] if failures else "no job ended in time"
        notes.append(f"beside the microbenchmark {level.name}: {why}")
        return {}
    slowdown, inflicted = own / time_s, other / level.time_s
    found = {
        f"slowdown_{level.name}": slowdown,
        f"inflicted_{level.name}": inflicted,
        f"fairness_{level.name}": min(slowdown, inflicted) / max(slowdown, inflicted),
    }
    if (power_w := device_power_w(bag)) is not None:
        found[f"power_{level.name}_w"] = power_w
    return found
