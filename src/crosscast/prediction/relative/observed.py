"""Observations and vectors of a dataset, which compare runs of the same work at the same scale."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration, Setting, setting_text
from crosscast.data.dataset import Dataset
from crosscast.data.library import pc
from crosscast.data.profiles import from_row
from crosscast.data.schema import SESSIONS, counters_of
from crosscast.data.table import Table, distinct, samples_of
from crosscast.data.views import CELL, KERNEL_AT_A_SIZE, of_successful_sessions, run_means
from crosscast.errors import InputError
from crosscast.prediction.relative import Observations, Vectors, Work, observations_of_profiles
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.datasets import devices_of, grid_of

SCALE = "scale"  # Setting that names the scale of a run, such as `one node`
# Sources of counters: profiles, which are of no device, or sessions on a device
CounterKind = Literal["profiles", "sessions"]

_RUN = (*SESSIONS.key, "kernel")
Group = TypeVar("Group", bound=Hashable)


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
    """Numeric settings except the scale: the configuration of a run."""
    return {
        name: float(value) for name, value in settings.items() if not isinstance(value, str) and name != SCALE
    }


def _settings(row: Mapping[str, str]) -> Mapping[str, Setting]:
    return Configuration.of(row["device"], row["configuration"]).settings


def work_times(dataset: Dataset) -> dict[tuple[str, Work], float]:
    """Median seconds by device and work, over all runs of the work."""

    def work(key: Mapping[str, str]) -> tuple[str, Work]:
        scale = scale_of(_settings(key), key["size"])
        return key["device"], (key["application"], key["kernel"], key["size"], scale)

    return _medians(dataset, CELL, work)


def _medians(
    dataset: Dataset, names: Sequence[str], group: Callable[[Mapping[str, str]], Group]
) -> dict[Group, float]:
    """Median time in seconds by group, a function of columns of records, without failed sessions."""
    records = of_successful_sessions(dataset.records, dataset.sessions)
    keys, key_of = distinct(records, names)
    groups = [group(key) for key in keys.to_pylist()]
    numbers = {each: number for number, each in enumerate(dict.fromkeys(groups))}
    of_key = np.array([numbers[each] for each in groups], dtype=np.int64)
    medians = samples_of(of_key[key_of], run_means(records)).quantile(0.5)
    return dict(zip(numbers, medians.tolist(), strict=True))


def _counted(dataset: Dataset) -> Table:
    """Sessions with counters that did not fail."""
    sessions = dataset.sessions
    return sessions.filter(
        pc.and_(pc.is_valid(sessions.column("counters")), pc.is_null(sessions.column("failure")))
    )


def _counted_runs(dataset: Dataset) -> Observations:
    """Runs with counters, in the order of the sessions' key; times are medians over a session's runs.

    Counters, which kernels of a session share, are divided by its recorded runs, one if not known, as
    `crosscast measure` counts over all of them.
    """
    sessions = _counted(dataset).select([*SESSIONS.key, "kernels", "runs", "counters"]).to_pylist()
    rows = [
        {**session, "kernel": kernel, "settings": _settings(session)}
        for session in sessions
        for kernel in json.loads(session["kernels"])
    ]
    names, totals = _matrix([counters_of(row, dataset.label) for row in rows])
    configuration, settings = _matrix([numeric_settings(row["settings"]) for row in rows])
    times = _medians(dataset, _RUN, lambda key: tuple(key[name] for name in _RUN))
    time_s = np.array([times.get(tuple(row[name] for name in _RUN), np.nan) for row in rows])
    counters = totals / np.array([[row["runs"] or 1] for row in rows])
    scale = tuple(scale_of(row["settings"], row["size"]) for row in rows)
    labels = (tuple(row[name] for row in rows) for name in (*KERNEL_AT_A_SIZE, "device"))
    application, kernel, size, source = labels
    return Observations(
        application, kernel, size, scale, source, names, counters, configuration, settings, time_s
    )


def _matrix(rows: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], Reals]:
    """All names, sorted, and the values by row and name; NaN where a row has none."""
    names = tuple(sorted({name for row in rows for name in row}))
    values = [[row.get(name, np.nan) for name in names] for row in rows]
    return names, np.array(values, dtype=np.float64).reshape(len(rows), len(names))


def full_devices(known: Flags) -> list[int]:
    """Devices of the largest full table: the largest number of devices times work that all of them have.

    Devices are added in the order of their amounts of work; of two tables as large, more devices are taken.

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
    """The runs or profiles of a dataset, with or without times.

    Parameters
    ----------
    dataset
        Sessions with counters (docs/counters.md), or profiles.
    counters
        ``sessions`` or ``profiles``; by default those that the dataset has, profiles if both.

    Returns
    -------
    Observations
        ``r`` runs with ``k`` counters, of shape ``(r, k)``, for a model of relative times.

    Raises
    ------
    InputError
        If the dataset has neither.
    """
    if _kind(dataset, counters) == "sessions":
        return _counted_runs(dataset)
    return observations_of_profiles(ProfileBatch.of([from_row(row) for row in dataset.profiles.to_pylist()]))


def vectors_of(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
) -> Vectors:
    """The runs or profiles of a dataset whose work was timed on all chosen devices.

    By default the devices are those of the largest full table, and the runs those that were counted on one of
    them, if any were.
    """
    label = dataset.label
    if _kind(dataset, None) == "sessions":
        observations = _counted_runs(dataset)
        known, times_s = _times_of(dataset, observations)
    else:
        grid = grid_of(dataset)
        observations = observations_of_profiles(grid.profiles)
        known, times_s = tuple(device.key for device in grid.devices), np.exp(grid.log_time)
    chosen = tuple(_fullest(label, known, observations, times_s) if devices is None else devices)
    _check_known("devices", f"those with times in {label}", known, chosen)
    if len(set(chosen)) < max(2, len(chosen)):
        expected, found = "two or more, each once", ", ".join(chosen) or "none"
        raise InputError.of(where="devices", expected=expected, found=found)
    times_s = times_s[:, [known.index(device) for device in chosen]]
    timed: Flags = np.asarray(~np.isnan(times_s).any(axis=1))
    rows = timed & _counted_on(label, observations, timed, chosen, sources)
    if not rows.any():
        counted = "counted" if sources is None else f"counted on {', '.join(sources)}"
        expected = f"work {counted} with times on all of {', '.join(chosen)}"
        raise InputError.of(where=label, expected=expected, found="none")
    described = tuple(map(devices_of(dataset).__getitem__, chosen))
    vectors = Vectors(observations.rows(rows), chosen, times_s[rows], described)
    for row, column in np.argwhere(vectors.times_s <= 0)[:1].tolist():
        found = f"0 for {', '.join(vectors.observations.works[row][:3])} on {chosen[column]}"
        raise InputError.of(where=f"{label}: records", expected="times above 0", found=found)
    return vectors


def devices_left_out(dataset: Dataset, vectors: Vectors) -> tuple[str, ...]:
    """Devices of a dataset with times that are not among the compared ones, sorted."""
    timed = pc.unique(dataset.records.column("device")).to_pylist()
    return tuple(sorted(set(timed) - set(vectors.devices)))


def _kind(dataset: Dataset, counters: CounterKind | None) -> CounterKind:
    """Source of the counters: the requested one, or profiles before sessions."""
    rows: dict[CounterKind, int] = {
        "profiles": dataset.profiles.num_rows,
        "sessions": _counted(dataset).num_rows,
    }
    available = [kind for kind, count in rows.items() if count]
    if (counters or next(iter(available), None)) not in available:
        expected = {None: "profiles or sessions with counters", "sessions": "sessions with counters"}
        found = "none" if counters else "neither"
        raise InputError.of(where=dataset.label, expected=expected.get(counters, "profiles"), found=found)
    return counters or available[0]


def _times_of(dataset: Dataset, observations: Observations) -> tuple[tuple[str, ...], Reals]:
    """Devices with times, and times of each run's work on them; on its source, the run's own time."""
    times = work_times(dataset)
    devices = tuple(sorted({device for device, _ in times}))
    rows = [
        [run_s if source == device else times.get((device, work), np.nan) for device in devices]
        for work, source, run_s in zip(
            observations.works, observations.source, observations.time_s.tolist(), strict=True
        )
    ]
    return devices, np.array(rows, dtype=np.float64).reshape(len(observations), len(devices))


def _fullest(label: str, known: tuple[str, ...], observations: Observations, times_s: Reals) -> list[str]:
    """The devices of the largest full table of work."""
    numbers = {work: number for number, work in enumerate(dict.fromkeys(observations.works))}
    timed = np.zeros((len(numbers), len(known)), dtype=np.bool_)
    np.logical_or.at(timed, [numbers[work] for work in observations.works], ~np.isnan(times_s))
    columns = full_devices(timed)
    if not columns:
        expected = "counted work with times on two devices or more"
        found = f"none (devices with times: {', '.join(known) or 'none'})"
        raise InputError.of(where=label, expected=expected, found=found)
    return [known[column] for column in columns]


def _check_known(where: str, description: str, known: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            expected = f"some of {description} ({', '.join(known) or 'none'})"
            raise InputError.of(where=where, expected=expected, found=repr(name))


def _counted_on(
    label: str, observations: Observations, timed: Flags, chosen: Sequence[str], sources: Sequence[str] | None
) -> Flags:
    """Mask of the rows counted on the sources; by default on the chosen devices, if some are timed."""
    source = np.array(observations.source)
    if sources is None:
        of_chosen: Flags = np.isin(source, chosen)
        return of_chosen if np.any(of_chosen & timed) else np.ones_like(timed)
    _check_known("sources", f"those with counters in {label}", sorted(set(observations.source)), sources)
    return np.asarray(np.isin(source, sources))
