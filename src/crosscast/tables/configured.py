"""The view of configured runs: a row a cell, with its time, its power and its counters.

A cell's configuration is part of its key, so that the rows of a kernel at a size are its points of power and
performance.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.tables.arrow import Table, arrow_schema, in_order
from crosscast.tables.cells import CELL, cells_of, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.domains import whole_of
from crosscast.tables.keys import Numbers, key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.records import RECORDS
from crosscast.tables.samples import Reals
from crosscast.tables.schema import Column, Schema, json_text
from crosscast.tables.session_counters import counters_of
from crosscast.tables.sessions import SESSIONS

__all__ = ["CONFIGURED", "configured"]

_WHOLE = ("application", "size", "device", "configuration")
"""Columns that tell what the kernels of an application share: one sensor, one set of counters."""

CONFIGURED = Schema(
    "configured",
    1,
    (
        *(column for name in CELL for column in RECORDS.columns if column.name == name),
        Column("runs", "integer", "count", "runs in which it was timed", required=True, least=1),
        Column(
            "time_s", "real", "s", "mean time of an invocation in a run, median over the runs", required=True
        ),
        Column("power_w", "real", "W", "mean power of the chosen domain; empty where nothing measured it"),
        Column("powers", "json", title="mean power of each domain in watts, by name"),
        Column("counters", "json", title="counters of a run of the whole application, by name"),
    ),
    key=CELL,
)
"""Version 1."""


def configured(dataset: Dataset, *, domain: str | None = None) -> Table:
    """Join times, powers and counters into one row a cell that has records, in the order of the key.

    What sessions that failed left is passed over. The power of a domain is all energy of the cell over all
    time that it was watched; what a sensor saw of the whole application stands for each of its kernels that
    was not watched alone. Energy without a duration says nothing of power. Counters are divided by the
    recorded runs of their sessions, as `crosscast measure` counts over all of them; where a session does not
    say how many it had, they are taken as those of one.

    Parameters
    ----------
    dataset
        A valid dataset.
    domain
        Of which domain ``power_w`` is. By default, for each device: ``node`` if it has that domain; else
        the sum of its domains, without those inside another one, such as ``package-0/core`` in
        ``package-0`` and that in ``psys``. A cell that lacks one of those has no ``power_w``.

    Returns
    -------
    Table
        A table of `CONFIGURED`.

    Raises
    ------
    InputError
        If nothing measured the power of `domain`, or the counters of a session are not numbers by name.
    """
    cells = cells_of(sound(dataset.records, dataset.sessions))
    powers = _powers(cells.keys, sound(dataset.energy, dataset.sessions))
    if domain is not None and domain not in powers.domains:
        raise InputError(
            f"domain: expected one whose power {dataset.label} has ({', '.join(powers.domains) or 'none'}), "
            f"found {domain!r}"
        )
    chosen = powers.default(cells.keys) if domain is None else powers.watts[:, powers.domains.index(domain)]
    columns = [
        *cells.keys.columns,
        pa.array(cells.times.counts),
        pa.array(cells.times.quantile(0.5)),
        pa.array(chosen, mask=np.isnan(chosen)),
        pa.array(powers.texts(), type=pa.string()),
        pa.array(_counters(cells.keys, dataset), type=pa.string()),
    ]
    return in_order(CONFIGURED, pa.Table.from_arrays(columns, schema=arrow_schema(CONFIGURED)))


@dataclass(frozen=True)
class _Powers:
    """Watts of shape ``(cells, domains)``, not a number where nothing measured them; domains are sorted."""

    domains: list[str]
    watts: npt.NDArray[np.float64]

    def default(self, cells: Table) -> Reals:
        """Power of a cell on all that its device has."""
        chosen = np.full(len(self.watts), np.nan)
        (devices,) = key_numbers([cells], ("device",))
        for device in range(int(devices.max(initial=-1)) + 1):
            rows = devices == device
            places = self._counted(~np.isnan(self.watts[rows]).all(axis=0))
            if places:
                chosen[rows] = self.watts[np.ix_(rows, places)].sum(axis=1)
        return chosen

    def _counted(self, there: npt.NDArray[np.bool_]) -> list[int]:
        """Places of the domains that together are a device, of those that it has."""
        has = {name: place for place, name in enumerate(self.domains) if there[place]}
        return [has[name] for name in whole_of(has)]

    def texts(self) -> list[str | None]:
        """Powers of each cell as JSON."""
        found = (
            {name: watts for name, watts in zip(self.domains, row, strict=True) if watts == watts}
            for row in self.watts.tolist()
        )
        return [json_text(powers) if powers else None for powers in found]


def _powers(cells: Table, energy: Table) -> _Powers:
    energy = energy.filter(pc.fill_null(pc.greater(energy.column("duration_s"), 0), False))
    domains = sorted(pc.unique(energy.column("domain")).to_pylist())
    of_application = pc.is_null(energy.column("kernel"))
    watts = _watts(cells, energy.filter(pc.invert(of_application)), domains, CELL)
    whole = _watts(cells, energy.filter(of_application), domains, _WHOLE)
    return _Powers(domains, np.where(np.isnan(watts), whole, watts))


def _watts(
    cells: Table, energy: Table, domains: list[str], names: tuple[str, ...]
) -> npt.NDArray[np.float64]:
    """Energy over time, by cell and domain, of rows that agree with the cell in some columns."""
    wanted, numbers = key_numbers([cells, energy], names)
    place = pc.index_in(energy.column("domain"), value_set=pa.array(domains, type=pa.string()))
    shape = (_size(wanted, numbers), len(domains))
    at = numbers * len(domains) + place.to_numpy().astype(np.int64)
    joules, seconds = (
        np.bincount(at, weights=energy.column(name).to_numpy(), minlength=shape[0] * shape[1]).reshape(shape)
        for name in ("energy_j", "duration_s")
    )
    watts = np.divide(joules, seconds, out=np.full(shape, np.nan), where=seconds > 0)
    of_cells: npt.NDArray[np.float64] = watts[wanted]
    return of_cells


def _size(wanted: Numbers, numbers: Numbers) -> int:
    return int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1


def _counters(cells: Table, dataset: Dataset) -> list[str | None]:
    """Counters of a run, as JSON, for each cell."""
    sessions = dataset.sessions
    counted = sessions.filter(
        pc.and_(pc.is_valid(sessions.column("counters")), pc.is_null(sessions.column("failure")))
    )
    wanted, numbers = key_numbers([cells, counted], _WHOLE)
    by_cell: defaultdict[tuple[int, str], list[Mapping[str, Any]]] = defaultdict(list)
    rows = counted.select([*SESSIONS.key, "kernels", "runs", "counters"]).to_pylist()
    for number, row in zip(numbers.tolist(), rows, strict=True):
        # A session says nothing of kernels that it did not run.
        for kernel in json.loads(row["kernels"]):
            by_cell[number, kernel].append(row)
    texts = {cell: _a_run(found, dataset.label) for cell, found in by_cell.items()}
    kernels = cells.column("kernel").to_pylist()
    return [texts.get(cell) for cell in zip(wanted.tolist(), kernels, strict=True)]


def _a_run(sessions: list[Mapping[str, Any]], label: str) -> str | None:
    """Counters over the runs of all sessions that have them."""
    totals: defaultdict[str, float] = defaultdict(float)
    runs: defaultdict[str, int] = defaultdict(int)
    for session in sessions:
        for name, value in counters_of(session, label).items():
            totals[name] += value
            runs[name] += session["runs"] or 1
    return json_text({name: total / runs[name] for name, total in totals.items()}) if totals else None
