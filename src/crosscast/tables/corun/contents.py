"""What a dataset holds of co-running: solo runs and bags of each device, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crosscast.tables.arrow import Table
from crosscast.tables.bags import BAGS
from crosscast.tables.keys import key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.solos import SOLOS

__all__ = ["BagCount", "CoRunContents", "CoRunFailure", "SoloCount", "contents_of"]


@dataclass(frozen=True)
class SoloCount:
    """How many applications were run alone on a device, and how many of these runs failed."""

    device: str
    solos: int
    failed: int


@dataclass(frozen=True)
class BagCount:
    """How many bags of a number of applications were run on a device.

    Parameters
    ----------
    device
        Key of the device.
    members
        Applications of each of these bags.
    bags
        How many there are, repeats and other configurations counted too.
    configurations
        Configurations of the device that they have.
    not_fitting
        How many do not fit on the device.
    failed
        How many have an application that failed.
    """

    device: str
    members: int
    bags: int
    configurations: int
    not_fitting: int
    failed: int


@dataclass(frozen=True)
class CoRunFailure:
    """An application that failed, in a bag or alone (``bag`` is ``None``): where, and why."""

    application: str
    size: str
    device: str
    configuration: str
    bag: str | None
    repeat: int | None
    reason: str


@dataclass(frozen=True)
class CoRunContents:
    """What a dataset holds of co-running; empty where it holds none.

    Parameters
    ----------
    solos
        Solo runs by device.
    bags
        Bags by device and number of applications.
    failed
        Applications that failed, alone first.
    """

    solos: tuple[SoloCount, ...]
    bags: tuple[BagCount, ...]
    failed: tuple[CoRunFailure, ...]


def contents_of(solos: Table, bags: Table) -> CoRunContents:
    """Count the rows of two valid tables."""
    return CoRunContents(
        tuple(_solo_counts(solos)), tuple(_bag_counts(bags)), (*_failures(solos), *_failures(bags))
    )


def _solo_counts(solos: Table) -> Iterator[SoloCount]:
    failed = Counter(solos.filter(pc.is_valid(solos.column("failure"))).column("device").to_pylist())
    for device, number in sorted(Counter(solos.column("device").to_pylist()).items()):
        yield SoloCount(device, number, failed[device])


def _bag_counts(bags: Table) -> Iterator[BagCount]:
    if not bags.num_rows:
        return
    (numbers,) = key_numbers([bags], BAGS.key[:-1])
    first, members = np.unique(numbers, return_index=True, return_counts=True)[1:]
    failed = np.bincount(numbers, weights=pc.is_valid(bags.column("failure")).to_numpy()) > 0
    found = bags.select(["device", "configuration", "fits"]).take(pa.array(first))
    table = pa.table(
        {
            "device": found.column("device"),
            "members": members,
            "configuration": found.column("configuration"),
            "not_fitting": pc.equal(found.column("fits"), 0),
            "failed": failed,
        }
    )
    groups = table.group_by(["device", "members"]).aggregate(
        [
            ("configuration", "count"),
            ("configuration", "count_distinct"),
            ("not_fitting", "sum"),
            ("failed", "sum"),
        ]
    )
    for row in groups.sort_by([("device", "ascending"), ("members", "ascending")]).to_pylist():
        yield BagCount(
            row["device"],
            row["members"],
            row["configuration_count"],
            row["configuration_count_distinct"],
            row["not_fitting_sum"] or 0,
            row["failed_sum"],
        )


def _failures(table: Table) -> Iterator[CoRunFailure]:
    rows = table.filter(pc.is_valid(table.column("failure")))
    if not rows.num_rows:
        return
    keys = BAGS.key if "bag" in table.column_names else SOLOS.key
    for row in rows.sort_by([(name, "ascending") for name in keys]).to_pylist():
        yield CoRunFailure(
            row["application"],
            row["size"],
            row["device"],
            row["configuration"],
            row.get("bag"),
            row.get("repeat"),
            row["failure"],
        )
