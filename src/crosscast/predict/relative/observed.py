"""From a dataset to what models of relative performance learn from, and are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.asked import kernels_of
from crosscast.predict.observed import devices_of, grid_of
from crosscast.predict.relative.counted_runs import counted_runs, has_counters
from crosscast.predict.relative.full_devices import full_devices
from crosscast.predict.relative.observations import Observations, Vectors
from crosscast.predict.relative.profiles_seen import profiles_seen
from crosscast.predict.relative.work_times import work_times
from crosscast.tables.dataset import Dataset
from crosscast.tables.library import pc
from crosscast.tables.profiles import from_row

__all__ = ["CounterKind", "devices_left_out", "observations_of", "vectors_of"]

CounterKind = Literal["profiles", "sessions"]
"""Where counters are from: profiles of no device, or sessions that counted on one."""


def observations_of(dataset: Dataset, *, counters: CounterKind | None = None) -> Observations:
    """The runs or profiles of a dataset, whether or not anything was timed.

    Parameters
    ----------
    dataset
        A valid dataset.
    counters
        Take the metrics of profiles, or the counters of sessions; by default profiles if there are some.

    Raises
    ------
    InputError
        If there are none of them, or counters are not numbers by name.
    """
    if _kind(dataset, counters) == "sessions":
        return counted_runs(dataset)
    return profiles_seen(kernels_of([from_row(row) for row in dataset.profiles.to_pylist()]).profiles)


def vectors_of(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    counters: CounterKind | None = None,
) -> Vectors:
    """The runs or profiles of a dataset whose work was timed on all of some devices.

    Parameters
    ----------
    dataset
        A valid dataset.
    devices
        Devices to compare, two or more; by default those with the largest full table of times
        (`crosscast.predict.relative.full_devices`), in the order of their keys. `devices_left_out` tells
        which they are not.
    sources
        Devices whose counters to take; by default those of `devices` that counted, or all that did if none
        of these has a row. Profiles have no other than `crosscast.predict.relative.observations.NO_SOURCE`.
    counters
        Take the metrics of profiles, or the counters of sessions; by default profiles if there are some.

    Raises
    ------
    InputError
        If there are no counters, times on fewer than two devices, a device that has none, no work with
        times on all devices, or a time of 0.
    """
    if _kind(dataset, counters) == "sessions":
        seen = counted_runs(dataset)
        known, times_s = _times_of(dataset, seen)
    else:
        grid = grid_of(dataset)
        seen = profiles_seen(grid.profiles)
        known, times_s = tuple(device.key for device in grid.devices), np.exp(grid.log_time)
    columns = (
        _fullest(dataset.label, known, seen, times_s)
        if devices is None
        else _named(dataset.label, known, devices)
    )
    chosen = tuple(known[column] for column in columns)
    times_s = times_s[:, columns]
    timed: Flags = np.asarray(~np.isnan(times_s).any(axis=1))
    rows = timed & _is_counted(dataset.label, seen, timed, chosen, sources)
    if not rows.any():
        counted = "" if sources is None else f" on {', '.join(sources)}"
        raise InputError(
            f"{dataset.label}: expected work counted{counted} with times on all of {', '.join(chosen)}, "
            "found none"
        )
    known_devices = devices_of(dataset)
    described = tuple(known_devices[device] for device in chosen)
    vectors = Vectors(seen.rows(rows), chosen, times_s[rows], described)
    _check_times(dataset.label, vectors)
    return vectors


def devices_left_out(dataset: Dataset, vectors: Vectors) -> tuple[str, ...]:
    """Devices of a dataset that have times, but are not among those that are compared; sorted."""
    timed = pc.unique(dataset.records.column("device")).to_pylist()
    return tuple(sorted(set(timed) - set(vectors.devices)))


def _check_times(label: str, vectors: Vectors) -> None:
    wrong = np.argwhere(vectors.times_s <= 0)
    if len(wrong):
        row, column = wrong[0]
        seen = vectors.observations
        raise InputError(
            f"{label}: records: expected times above 0, found 0 for {seen.application[row]}, "
            f"{seen.kernel[row]}, {seen.size[row]} on {vectors.devices[column]}"
        )


def _kind(dataset: Dataset, counters: CounterKind | None) -> CounterKind:
    there: list[CounterKind] = []
    if dataset.profiles.num_rows:
        there.append("profiles")
    if has_counters(dataset):
        there.append("sessions")
    if counters is None and not there:
        raise InputError(f"{dataset.label}: expected profiles or sessions with counters, found neither")
    if counters is not None and counters not in there:
        what = "sessions with counters" if counters == "sessions" else "profiles"
        raise InputError(f"{dataset.label}: expected {what}, found none")
    return counters or there[0]


def _times_of(dataset: Dataset, seen: Observations) -> tuple[tuple[str, ...], Reals]:
    """Devices that have times, and the time of each run's work on them: its own on its source."""
    times = work_times(dataset)
    rows = np.array([times.rows.get(work, -1) for work in seen.works], dtype=np.int64)
    times_s = np.where((rows >= 0)[:, np.newaxis], times.times_s[rows], np.nan)
    places = {device: place for place, device in enumerate(times.devices)}
    for row, (source, own) in enumerate(zip(seen.source, seen.time_s.tolist(), strict=True)):
        if source in places:
            times_s[row, places[source]] = own
    return times.devices, times_s


def _fullest(label: str, known: tuple[str, ...], seen: Observations, times_s: Reals) -> list[int]:
    """Numbers of the devices that make the largest full table, in the order of their keys."""
    works = seen.works
    numbers = {work: number for number, work in enumerate(dict.fromkeys(works))}
    timed = np.zeros((len(numbers), len(known)), dtype=np.bool_)
    np.logical_or.at(timed, [numbers[work] for work in works], ~np.isnan(times_s))
    columns = full_devices(timed)
    if not columns:
        raise InputError(
            f"{label}: expected counted work with times on two devices or more, found none (devices with "
            f"times: {', '.join(known) or 'none'})"
        )
    return columns


def _named(label: str, known: tuple[str, ...], devices: Sequence[str]) -> list[int]:
    """Numbers of these devices, in their order."""
    for device in devices:
        if device not in known:
            raise InputError(
                f"devices: expected some of those with times in {label} ({', '.join(known) or 'none'}), "
                f"found {device!r}"
            )
    if len(set(devices)) < max(2, len(devices)):
        raise InputError(f"devices: expected two or more, each once, found {', '.join(devices) or 'none'}")
    return [known.index(device) for device in devices]


def _is_counted(
    label: str, seen: Observations, timed: Flags, chosen: Sequence[str], sources: Sequence[str] | None
) -> Flags:
    """Which rows were counted where they should be; `timed` are those with all times."""
    source = np.array(seen.source)
    if sources is None:
        of_chosen: Flags = np.isin(source, list(chosen))
        return of_chosen if np.any(of_chosen & timed) else np.ones_like(timed)
    there = sorted(set(seen.source))
    for each in sources:
        if each not in there:
            raise InputError(
                f"sources: expected some of those with counters in {label} ({', '.join(there)}), "
                f"found {each!r}"
            )
    wanted: Flags = np.isin(source, list(sources))
    return wanted
