"""The view of a dataset's co-running: solo runs and bags as objects that name each other."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.bag import Bag, Member
from crosscast.tables.corun.solo import Solo
from crosscast.tables.dataset import Dataset

__all__ = ["CoRuns", "co_runs"]


@dataclass(frozen=True, eq=False)
class CoRuns:
    """Solo runs and bags.

    Parameters
    ----------
    label
        Where they are from, for messages.
    solos
        Applications alone, in the order of their keys; those that failed are left out.
    bags
        Bags, in the order of their keys, those with a member that failed too.
    """

    label: str
    solos: tuple[Solo, ...]
    bags: tuple[Bag, ...]

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications of the bags, sorted."""
        return tuple(sorted({name for bag in self.bags for name in bag.applications}))


def co_runs(dataset: Dataset) -> CoRuns:
    """The solo runs and bags of a dataset.

    A member's solo run is that of its configuration, or of the defaults where there is none, as a way of
    sharing a device is nothing that an application alone has. A member without one gets a solo run of which
    nothing is known.

    Raises
    ------
    InputError
        If the features of a solo run are not finite numbers by name.
    """
    solos: dict[tuple[str, str, str, str], Solo] = {}
    for number, row in enumerate(dataset.solos.to_pylist(), start=1):
        if row["failure"] is None:
            solo = _solo(row, f"{dataset.label}: solos: row {number}")
            solos[solo.key] = solo
    rows = defaultdict(list)
    for row in dataset.bags.to_pylist():
        rows[tuple(row[name] for name in BAGS.key[:-1])].append(row)
    bags = tuple(
        _bag(sorted(found, key=lambda row: int(row["position"])), solos) for _, found in sorted(rows.items())
    )
    return CoRuns(dataset.label, tuple(solo for _, solo in sorted(solos.items())), bags)


def _solo(row: Mapping[str, Any], place: str) -> Solo:
    features = json.loads(row["features"])
    if not isinstance(features, dict) or not all(_is_finite(value) for value in features.values()):
        raise InputError(f"{place}: column 'features': expected finite numbers by name, found others")
    return Solo(
        row["application"],
        row["size"],
        row["device"],
        row["time_s"],
        row["configuration"],
        row["runs"] or 1,
        row["power_w"],
        row["memory_bytes"],
        {name: float(value) for name, value in sorted(features.items())},
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _bag(rows: list[dict[str, Any]], solos: Mapping[tuple[str, str, str, str], Solo]) -> Bag:
    first = rows[0]
    return Bag(
        first["bag"],
        first["device"],
        tuple(Member(_solo_of(row, solos), row["slowdown"], row["failure"]) for row in rows),
        first["configuration"],
        first["repeat"],
        None if first["fits"] is None else bool(first["fits"]),
        first["bag_time_s"],
        first["overlap"],
        first["power_w"],
    )


def _solo_of(row: Mapping[str, Any], solos: Mapping[tuple[str, str, str, str], Solo]) -> Solo:
    where = row["application"], row["size"], row["device"]
    found = solos.get((*where, row["configuration"])) or solos.get((*where, "{}"))
    return found or Solo(*where, None)
