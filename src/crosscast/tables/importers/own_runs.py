"""Runs that people made themselves, from whatever file, and how they become a dataset."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.domains import NODE, whole_of
from crosscast.tables.importers.configured_runs import ConfiguredRun, Power, dataset_of, device_row
from crosscast.tables.run_columns import POWER, domain_column

__all__ = ["FoundRuns", "OwnRun", "dataset_of_own"]

_SENSOR = "unknown"
_SAME = 1e-6
"""Share by which a sum of powers may be off the power of the whole, as decimals are cut."""

_ORIGIN = "Runs of one's own"
_NOTES = {
    "records": "A run each; repeats of a cell are told apart by their number. ",
    "energy": (
        "Mean power times time, as the runs had powers and not energies. The domain node is the power of the "
        "whole, where it is not the sum of the other domains. "
    ),
}


@dataclass(frozen=True)
class OwnRun:
    """A run as it was written down.

    Parameters
    ----------
    application, kernel, size
        What ran.
    configuration
        Where, and with which settings.
    time_s
        How long it took, in seconds, above 0.
    power_w
        Mean power of the whole in watts, above 0; none if it is not known, or if it is the sum of domains.
    domains_w
        Mean power of each domain in watts, by name.
    counters
        What was counted, by name.
    where
        File and line, for messages.
    """

    application: str
    kernel: str
    size: str
    configuration: Configuration
    time_s: float
    power_w: float | None
    domains_w: Mapping[str, float]
    counters: Mapping[str, float]
    where: str

    @property
    def has_power(self) -> bool:
        """Whether anything is known of its power."""
        return self.power_w is not None or bool(self.domains_w)


@dataclass(frozen=True)
class FoundRuns:
    """What a file held.

    Parameters
    ----------
    runs
        The runs, in order.
    notes
        Sentences about what was taken as what.
    left_out
        How many runs were left out, by why.
    """

    runs: Sequence[OwnRun]
    notes: Sequence[str] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def dataset_of_own(label: str, files: Mapping[str, FoundRuns]) -> tuple[Dataset, tuple[str, ...]]:
    """Make a dataset: each run is a repeat of its cell, with its power and its counters.

    A run without power is kept where others of its cell have some, which stands for it as well; else it is
    left out.

    Parameters
    ----------
    label
        Where they are from, for messages.
    files
        What was found, by the names of the files.

    Returns
    -------
    tuple
        The dataset, and sentences about what was found and what was left out.

    Raises
    ------
    InputError
        If no run is left; some runs of a device have other powers than the rest, so that they cannot be
        compared; or a setting is a number here and a word there.
    """
    found = list(chain.from_iterable(each.runs for each in files.values()))
    powered = {_cell(run) for run in found if run.has_power}
    kept = [run for run in found if _cell(run) in powered]
    left_out = Counter({"without power": len(found) - len(kept)})
    for each in files.values():
        left_out.update(each.left_out)
    why = ", ".join(f"{count} {reason}" for reason, count in left_out.items() if count)
    if not kept:
        raise InputError(f"{label}: expected runs with a power, found none{why and f' ({why})'}")
    _check_settings(kept)
    by_device: dict[str, list[OwnRun]] = {}
    for run in kept:
        by_device.setdefault(run.configuration.device, []).append(run)
    with_node = {device: _needs_node(device, runs) for device, runs in by_device.items()}
    repeats: defaultdict[tuple[object, ...], int] = defaultdict(int)
    numbered = []
    for run in kept:
        session = (run.application, run.size, run.configuration)
        numbered.append(_numbered(run, repeats[session], with_node[run.configuration.device]))
        repeats[session] += 1
    origin = f"{_ORIGIN}: {', '.join(files)}."
    taken = " ".join(f"{line}." for each in files.values() for line in each.notes)
    notes = {table: {"origin": origin} for table in ("devices", "records", "energy", "sessions")}
    for table, text in _NOTES.items():
        notes[table]["what they are"] = f"{text}{taken}".strip()
    devices = [device_row(name, origin, name=name, type=NODE) for name in sorted(by_device)]
    return dataset_of(label, devices, numbered, notes), tuple(_summary(kept, by_device, left_out, why))


def _cell(run: OwnRun) -> tuple[object, ...]:
    return run.application, run.kernel, run.size, run.configuration


def _numbered(run: OwnRun, repeat: int, with_node: bool) -> ConfiguredRun:
    powers = dict(run.domains_w)
    if with_node and run.power_w is not None:
        powers[NODE] = run.power_w
    return ConfiguredRun(
        run.application,
        run.kernel,
        run.size,
        run.configuration,
        run.time_s,
        tuple(Power(_SENSOR, domain, watts) for domain, watts in powers.items()),
        runs=1,
        counters=run.counters,
        repeat=repeat,
        is_alone=True,
    )


def _needs_node(device: str, runs: Sequence[OwnRun]) -> bool:
    """Whether the power of the whole is to be kept, as it is not the sum of domains in all runs.

    Raises
    ------
    InputError
        If runs do not have the same powers, so that the whole of one is not the whole of another.
    """
    powered = [run for run in runs if run.has_power]
    wholes = any(run.power_w is not None for run in powered)
    domains = whole_of(sorted({name for run in powered for name in run.domains_w}))
    parts = [POWER] if wholes else list(map(domain_column, domains))
    for run in powered:
        has = {domain_column(name) for name in run.domains_w} | (
            {POWER} if run.power_w is not None else set()
        )
        for name in parts:
            if name not in has:
                raise InputError(
                    f"{run.where}: {name}: expected watts, as in other runs on {device}, found nothing"
                )
    if not wholes:
        return False
    sums = [
        (run.power_w, math.fsum(run.domains_w.get(name, math.nan) for name in domains)) for run in powered
    ]
    return not all(math.isclose(total, sum_, rel_tol=_SAME) for total, sum_ in sums if total is not None)


def _check_settings(runs: Sequence[OwnRun]) -> None:
    kinds: dict[str, type] = {}
    for run in runs:
        for name, value in run.configuration.settings.items():
            if kinds.setdefault(name, type(value)) is not type(value):
                raise InputError(f"{run.where}: {name}: expected numbers or words throughout, found both")


def _summary(
    kept: Sequence[OwnRun], devices: Mapping[str, object], left_out: Mapping[str, int], why: str
) -> Iterator[str]:
    applications = len({run.application for run in kept})
    configurations = len({run.configuration for run in kept})
    cells = len({_cell(run) for run in kept})
    yield (
        f"runs: {len(kept):,}, cells: {cells:,}, applications: {applications:,}, "
        f"configurations: {configurations:,} ({', '.join(devices)})"
    )
    if why:
        yield f"runs left out: {sum(left_out.values()):,} ({why})"
