"""Observations and vectors of a dataset: runs of the same work at the same scale are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration, Setting, setting_text
from crosscast.errors import InputError
from crosscast.predict.relative.data import Observations, Vectors, Work, profiles_seen
from crosscast.predict.time.data import ProfileBatch, devices_of, grid_of
from crosscast.tables.arrow import Table
from crosscast.tables.cells import KERNEL_AT_A_SIZE, cells_of, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import distinct
from crosscast.tables.library import pc
from crosscast.tables.profiles import from_row
from crosscast.tables.samples import samples_of
from crosscast.tables.session_counters import counters_of
from crosscast.tables.sessions import SESSIONS

SCALE = "scale"
"""Setting that names the scale of a run in words, such as `one node`."""

CounterKind = Literal["profiles", "sessions"]
"""Where counters are from: profiles of no device, or sessions that counted on one."""

_RUN = (*SESSIONS.key, "kernel")


def scale_of(settings: Mapping[str, Setting], size: str) -> str:
    """The scale of a run: its setting `scale`; else its `nodes` and `cores`; else the size of its input.

    >>> scale_of({"nodes": 2.0, "cores": 72.0}, "big"), scale_of({"compiler": "gcc"}, "big")
    ('2 nodes, 72 cores', 'big')
    """
    if SCALE in settings:
        return setting_text(settings[SCALE])
    amounts = ((settings[name], name) for name in ("nodes", "cores") if name in settings)
    return ", ".join(f"{setting_text(value)} {name}" for value, name in amounts) or size


def numeric_settings(settings: Mapping[str, Setting]) -> dict[str, float]:
    """Settings that are numbers, but for the scale: the configuration of a run."""
    return {
        name: float(value) for name, value in settings.items() if not isinstance(value, str) and name != SCALE
    }


class WorkTimes(NamedTuple):
    """Median times of ``w`` pieces of work on ``d`` devices."""

    rows: dict[Work, int]  # the row of each piece of work
    devices: tuple[str, ...]  # (d,) keys, sorted
    times_s: Reals  # (w, d); NaN where there is none


def work_times(dataset: Dataset) -> WorkTimes:
    """Times of a dataset but for failed sessions; runs of the same work are taken together."""
    records = sound(dataset.records, dataset.sessions)
    cells = cells_of(records)
    keys = cells.keys.to_pylist()
    rows: dict[Work, int] = {}
    devices = tuple(sorted({key["device"] for key in keys}))
    columns = {device: place for place, device in enumerate(devices)}
    places = np.empty(len(keys), dtype=np.int64)
    for number, key in enumerate(keys):
        settings = _settings(key)
        application, kernel, size = (key[name] for name in KERNEL_AT_A_SIZE)
        row = rows.setdefault((application, kernel, size, scale_of(settings, size)), len(rows))
        places[number] = row * len(devices) + columns[key["device"]]
    filled, numbers = np.unique(places[cells.numbers], return_inverse=True)
    times = np.full(len(rows) * len(devices), np.nan)
    times[filled] = samples_of(numbers, run_means(records)).quantile(0.5)
    return WorkTimes(rows, devices, times.reshape(len(rows), len(devices)))


def has_counters(dataset: Dataset) -> bool:
    """Whether a session that did not fail has counters."""
    return bool(_counted(dataset).num_rows)


def counted_runs(dataset: Dataset) -> Observations:
    """Runs with counters, in the order of the sessions' key.

    Counters are divided by the recorded runs of their session, as `crosscast measure` counts over all of
    them; where a session does not say how many it had, they are those of one. Kernels of one session share
    them. The time is the median over the session's runs.
    """
    rows = _counted(dataset).select([*SESSIONS.key, "kernels", "runs", "counters"]).to_pylist()
    if not rows:
        raise InputError(f"{dataset.label}: expected sessions with counters, found none")
    settings = [_settings(row) for row in rows]
    names, counters = _matrix(
        [
            {name: total / (row["runs"] or 1) for name, total in counters_of(row, dataset.label).items()}
            for row in rows
        ]
    )
    configuration, set_to = _matrix([numeric_settings(each) for each in settings])
    times = _session_times(dataset)
    runs = [(number, kernel) for number, row in enumerate(rows) for kernel in json.loads(row["kernels"])]
    of_rows = [number for number, _ in runs]
    time_s = [
        times.get((*(rows[number][key] for key in SESSIONS.key), kernel), np.nan) for number, kernel in runs
    ]
    return Observations(
        application=tuple(rows[number]["application"] for number in of_rows),
        kernel=tuple(kernel for _, kernel in runs),
        size=tuple(rows[number]["size"] for number in of_rows),
        scale=tuple(scale_of(settings[number], rows[number]["size"]) for number in of_rows),
        source=tuple(rows[number]["device"] for number in of_rows),
        names=names,
        counters=counters[of_rows],
        configuration=configuration,
        settings=set_to[of_rows],
        time_s=np.array(time_s, dtype=np.float64),
    )


def _counted(dataset: Dataset) -> Table:
    sessions = dataset.sessions
    return sessions.filter(
        pc.and_(pc.is_valid(sessions.column("counters")), pc.is_null(sessions.column("failure")))
    )


def _settings(row: Mapping[str, Any]) -> Mapping[str, Setting]:
    return Configuration.of(row["device"], row["configuration"]).settings


def _matrix(rows: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], Reals]:
    """All names, sorted, and the values by row and name; NaN where a row has none."""
    names = tuple(sorted({name for row in rows for name in row}))
    places = {name: place for place, name in enumerate(names)}
    values = np.full((len(rows), len(names)), np.nan)
    for number, row in enumerate(rows):
        values[number, [places[name] for name in row]] = list(row.values())
    return names, values


def _session_times(dataset: Dataset) -> dict[tuple[Any, ...], float]:
    """Median time in seconds of each kernel in each session."""
    records = sound(dataset.records, dataset.sessions)
    keys, numbers = distinct(records, _RUN)
    medians = samples_of(numbers, run_means(records)).quantile(0.5).tolist()
    columns = [keys.column(name).to_pylist() for name in _RUN]
    return dict(zip(zip(*columns, strict=True), medians, strict=True))


def full_devices(known: Flags) -> list[int]:
    """Devices that make the largest full table: the most of devices times work that all of them have.

    They are taken in the order of how much work each has, so that one with gaps does not cost the others
    theirs; of two tables with as many times, that with more devices.

    >>> full_devices(np.array([[True, True, False], [True, True, False], [True, True, True]]))
    [0, 1]
    """
    order = np.argsort(-known.sum(axis=0), kind="stable")
    # Column k: whether a piece of work has times on the k + 1 fullest devices.
    shared = np.logical_and.accumulate(known[:, order], axis=1).sum(axis=0)
    times = shared * np.arange(1, len(order) + 1)
    times[:1] = 0
    if not times.any():
        return []
    best = len(order) - 1 - int(np.argmax(times[::-1]))
    return sorted(order[: best + 1].tolist())


def observations_of(dataset: Dataset, *, counters: CounterKind | None = None) -> Observations:
    """The runs or profiles of a dataset, whether or not anything was timed.

    Parameters
    ----------
    dataset
        Sessions with counters (docs/counters.md), or profiles.
    counters
        ``sessions`` or ``profiles``, where a dataset has both; by default what it has.

    Returns
    -------
    Observations
        ``r`` runs with ``k`` counters, of shape ``(r, k)``, for a model of relative times.

    Raises
    ------
    InputError
        If there is neither.
    """
    if _kind(dataset, counters) == "sessions":
        return counted_runs(dataset)
    return profiles_seen(ProfileBatch.of([from_row(row) for row in dataset.profiles.to_pylist()]))


def vectors_of(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    counters: CounterKind | None = None,
) -> Vectors:
    """The runs or profiles of a dataset whose work was timed on all of some devices.

    By default the devices are those that make the largest full table, and the runs those that were counted on
    one of them, if any were.
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
    rows = timed & _counted_on(dataset.label, seen, timed, chosen, sources)
    if not rows.any():
        counted = "" if sources is None else f" on {', '.join(sources)}"
        raise InputError(
            f"{dataset.label}: expected work counted{counted} with times on all of {', '.join(chosen)}, "
            "found none"
        )
    described = devices_of(dataset)
    vectors = Vectors(seen.rows(rows), chosen, times_s[rows], tuple(described[device] for device in chosen))
    wrong = np.argwhere(vectors.times_s <= 0)
    if len(wrong):
        row, column = wrong[0]
        work = ", ".join(vectors.observations.works[row][:3])
        raise InputError(
            f"{dataset.label}: records: expected times above 0, found 0 for {work} on {chosen[column]}"
        )
    return vectors


def devices_left_out(dataset: Dataset, vectors: Vectors) -> tuple[str, ...]:
    """Devices of a dataset that have times, but are not among those that are compared; sorted."""
    timed = pc.unique(dataset.records.column("device")).to_pylist()
    return tuple(sorted(set(timed) - set(vectors.devices)))


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
    for row, (source, own) in enumerate(zip(seen.source, seen.time_s.tolist(), strict=True)):
        if source in times.devices:
            times_s[row, times.devices.index(source)] = own
    return times.devices, times_s


def _fullest(label: str, known: tuple[str, ...], seen: Observations, times_s: Reals) -> list[int]:
    """Places of the devices that make the largest full table of work."""
    numbers = {work: number for number, work in enumerate(dict.fromkeys(seen.works))}
    timed = np.zeros((len(numbers), len(known)), dtype=np.bool_)
    np.logical_or.at(timed, [numbers[work] for work in seen.works], ~np.isnan(times_s))
    columns = full_devices(timed)
    if not columns:
        raise InputError(
            f"{label}: expected counted work with times on two devices or more, found none (devices with "
            f"times: {', '.join(known) or 'none'})"
        )
    return columns


def _named(label: str, known: tuple[str, ...], devices: Sequence[str]) -> list[int]:
    """Places of these devices, in their order."""
    for device in devices:
        if device not in known:
            raise InputError(
                f"devices: expected some of those with times in {label} ({', '.join(known) or 'none'}), "
                f"found {device!r}"
            )
    if len(set(devices)) < max(2, len(devices)):
        raise InputError(f"devices: expected two or more, each once, found {', '.join(devices) or 'none'}")
    return [known.index(device) for device in devices]


def _counted_on(
    label: str, seen: Observations, timed: Flags, chosen: Sequence[str], sources: Sequence[str] | None
) -> Flags:
    """Which rows were counted on the sources; by default on the chosen devices, if there are timed ones."""
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
