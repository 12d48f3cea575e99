"""Mixes of jobs that were run together at levels of MPS, and each alone on parts of the GPU, as arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.tables.arrow import Table
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import key_numbers
from crosscast.tables.library import pa, pc

__all__ = ["DUMMY", "Mixes", "has_mixes", "mixes_of"]

DUMMY = "dummy"
"""Name of the application that fills mixes up: it shares the device, and is not judged."""

_LEVEL, _PART = "mps_percent", "mig_gpcs"
_BAG = ("device", "bag", "repeat")
_DIGITS = 6
_MOST_MEMBERS, _MOST_SIZES = 64, 64

_Reals = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Mixes:
    """``n`` mixes of ``k`` members, at ``l`` levels of MPS and on ``s`` sizes of parts.

    Parameters
    ----------
    label
        Where they are from, for messages.
    device
        Key of the device.
    levels
        Percentages of the threads that a member may take, the highest first.
    slices
        Slices of the parts, the most first.
    jobs
        Names of the applications, sorted.
    job
        Number of each member among ``jobs``, of shape ``(n, k)``.
    shared
        Relative time of each member while the whole mix runs, of shape ``(n, k, l)``: its time at a level
        over that at its slowest level, above 0 and at most 1.
    alone
        Relative time of each member alone on a part of each size, of shape ``(n, k, s)``: over that on the
        part on which it is slowest.
    """

    label: str
    device: str
    levels: tuple[float, ...]
    slices: tuple[float, ...]
    jobs: tuple[str, ...]
    job: _Integers
    shared: _Reals
    alone: _Reals

    def __len__(self) -> int:
        """Number of mixes."""
        return len(self.job)

    @property
    def judged(self) -> _Flags:
        """Whether each member is an application and no dummy, of shape ``(n, k)``."""
        return np.array([name != DUMMY for name in self.jobs], dtype=np.bool_)[self.job]

    @property
    def job_set(self) -> _Integers:
        """A number for each mix, from 0, equal where the members are the same, of shape ``(n,)``."""
        return _numbers_of(np.sort(self.job, axis=1))

    def where(self, chosen: _Flags | _Integers) -> Mixes:
        """Some of the mixes."""
        return replace(self, job=self.job[chosen], shared=self.shared[chosen], alone=self.alone[chosen])

    def without_copies(self) -> Mixes:
        """The first of those mixes that differ in the order of their members alone."""
        n, k = self.job.shape
        members = np.concatenate([self.job[..., None], self.shared, self.alone], axis=2).round(_DIGITS)
        number = _numbers_of(members.reshape(n * k, -1)).reshape(n, k)
        first = np.unique(np.sort(number, axis=1), axis=0, return_index=True)[1]
        return self.where(np.sort(first))


def has_mixes(bags: Table) -> bool:
    """Whether bags were run at levels of MPS and their members on parts of the GPU."""
    return {_LEVEL, _PART} <= {name for name, _ in _settings(bags).values()}


def mixes_of(dataset: Dataset, device: str | None = None) -> Mixes:
    """The mixes of a dataset in which all numbers are known, in the order of its rows.

    Rows stay in Arrow's columns: as objects, half a million of them would take gigabytes.

    Parameters
    ----------
    dataset
        Bags with the configurations ``{"mps_percent": p}`` and ``{"mig_gpcs": g}``; others are passed over.
    device
        Key of the device; the one with the most rows by default.

    Raises
    ------
    InputError
        If there are no such bags or too many configurations, numbers of members differ, a member is not the
        same application throughout, or a number is not above 0, or on parts above 1.
    """
    place = f"{dataset.label}: bags"
    settings = _settings(dataset.bags)
    table = _where(dataset.bags, "configuration", settings)
    device = _device(table, device, place)
    table = _where(table, "device", [device])
    settings = {text: settings[text] for text in pc.unique(table.column("configuration")).to_pylist()}
    wanted = [
        sorted((number for name, number in settings.values() if name == kind), reverse=True)
        for kind in (_LEVEL, _PART)
    ]
    if not all(wanted):
        raise InputError(
            f"{place}: expected bags at levels of MPS (mps_percent) and on parts (mig_gpcs) of {device}, "
            f"found {', '.join(sorted(settings))}"
        )
    if len(settings) > _MOST_SIZES:
        raise InputError(f"{place}: expected at most {_MOST_SIZES} levels and parts, found {len(settings)}")
    places = {
        text: (len(wanted[0]) if name == _PART else 0) + wanted[name == _PART].index(number)
        for text, (name, number) in settings.items()
    }
    jobs, job, values = _placed(table, places, place)
    levels = len(wanted[0])
    whole: _Flags = np.asarray(np.isfinite(values).all(axis=(1, 2)))
    if not whole.any():
        raise InputError(f"{place}: expected bags with a number at each level and part, found none")
    found = Mixes(
        dataset.label, device, tuple(wanted[0]), tuple(wanted[1]), jobs, job,
        values[..., :levels], values[..., levels:],
    ).where(whole)  # fmt: skip
    if (found.shared <= 0).any() or (found.alone <= 0).any() or (found.alone > 1).any():
        raise InputError(
            f"{place}: column 'slowdown': expected relative times above 0, and at most 1 on parts, found "
            "others"
        )
    return found


def _placed(table: Table, places: Mapping[str, int], place: str) -> tuple[tuple[str, ...], _Integers, _Reals]:
    """Names of the applications; the number of each member, ``(n, k)``; its numbers, ``(n, k, l + s)``."""
    (mix,) = key_numbers([table], _BAG)
    position = table.column("position").to_numpy()
    n, k = int(mix.max()) + 1, int(position.max()) + 1
    last = np.zeros(n, dtype=np.int64)
    np.maximum.at(last, mix, position)
    if k > _MOST_MEMBERS or (last < k - 1).any():
        raise InputError(
            f"{place}: expected bags of one number of members, at most {_MOST_MEMBERS}, found "
            f"{last.min() + 1} to {k}"
        )
    configuration, at = _codes(table, "configuration")
    application, number = _codes(table, "application")
    jobs = sorted(application)
    number = np.array([jobs.index(name) for name in application], dtype=np.int64)[number]
    values = np.full((n, k, len(places)), np.nan)
    column = np.array([places[text] for text in configuration], dtype=np.int64)[at]
    values[mix, position, column] = table.column("slowdown").to_numpy()
    job = np.zeros((n, k), dtype=np.int64)
    job[mix, position] = number
    other = np.flatnonzero(job[mix, position] != number)
    if len(other):
        bag = table.column("bag")[int(other[0])].as_py()
        raise InputError(
            f"{place}: bag {bag!r}, position {position[other[0]]}: expected the same application at all "
            "levels and parts, found others"
        )
    return tuple(jobs), job, values


def _settings(bags: Table) -> dict[str, tuple[str, float]]:
    """What is set by those configurations that set a level or a part and nothing else."""
    found = {}
    for text in pc.unique(bags.column("configuration")).to_pylist():
        content = json.loads(text)
        if isinstance(content, dict) and len(content) == 1:
            ((name, value),) = content.items()
            if name in (_LEVEL, _PART) and isinstance(value, int | float):
                found[text] = name, float(value)
    return found


def _where(table: Table, column: str, values: Iterable[str]) -> Table:
    return table.filter(pc.is_in(table.column(column), value_set=pa.array(list(values), pa.string())))


def _device(table: Table, device: str | None, place: str) -> str:
    counts = pc.value_counts(table.column("device")).to_pylist()
    found: dict[str, int] = {each["values"]: each["counts"] for each in counts}
    if not found or (device is not None and device not in found):
        raise InputError(
            f"{place}: expected bags at levels of MPS and on parts on {device or 'a device'}, found those on "
            f"{', '.join(sorted(found)) or 'none'}"
        )
    return device if device is not None else max(sorted(found), key=lambda name: found[name])


def _codes(table: Table, name: str) -> tuple[list[str], _Integers]:
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _numbers_of(rows: npt.NDArray[Any]) -> _Integers:
    """A number for each row, equal where rows are, from 0."""
    number: _Integers = np.unique(rows, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return number
