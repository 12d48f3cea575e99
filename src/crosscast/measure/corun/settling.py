"""Times alone of a whole campaign: the median of all that were measured, which slowdowns are over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import replace
from statistics import median
from typing import Any

from crosscast.tables.arrow import notes_of, table_of
from crosscast.tables.bags import BAGS
from crosscast.tables.dataset import Dataset
from crosscast.tables.solos import SOLOS

__all__ = ["ALONE", "settled"]

ALONE = "times_alone_s"
"""Where the environment of a solo run has all times that were measured of it."""

_SAME = 1e-9

_Key = tuple[str, str, str, str]


def settled(dataset: Dataset) -> Dataset:
    """Compare bags with the median of all times alone, where single ones were measured before them.

    A time alone that is measured once is off by as much as the machine is disturbed at that moment; in all
    slowdowns over it, the same way. What was measured before a bag is its time in the bag over its slowdown.

    Parameters
    ----------
    dataset
        What a campaign has measured, settled before or not.
    """
    bags, alone_rows = dataset.bags.to_pylist(), dataset.solos.to_pylist()
    alone_keys = {_key(row) for row in alone_rows}
    before: defaultdict[_Key, list[float]] = defaultdict(list)
    for row in bags:
        if row["time_s"] and row["slowdown"]:
            before[_key_alone(row, alone_keys)].append(row["time_s"] / row["slowdown"])
    solos = [_solo(row, before[_key(row)]) for row in alone_rows]
    times = {_key(row): row["time_s"] for row in solos}
    for row in bags:
        alone = times.get(_key_alone(row, alone_keys))
        if row["slowdown"] and row["time_s"] and alone:
            row["slowdown"] = row["time_s"] / alone
    return replace(
        dataset,
        solos=table_of(SOLOS, solos, notes_of(dataset.solos)),
        bags=table_of(BAGS, bags, notes_of(dataset.bags)),
    )


def _key(row: Mapping[str, Any]) -> _Key:
    return row["application"], row["size"], row["device"], row["configuration"]


def _key_alone(row: Mapping[str, Any], known: Set[_Key]) -> _Key:
    """Key of a member's solo run: with no setting where there is none with the bag's, such as MPS."""
    key = _key(row)
    return key if key in known else (*key[:3], "{}")


def _solo(row: dict[str, Any], before: list[float]) -> dict[str, Any]:
    """The row with the median of its times, all of which go into its environment."""
    if not row["time_s"]:
        return row
    environment = json.loads(row["environment"] or "{}")
    known = [float(time_s) for time_s in environment.get(ALONE, [row["time_s"]])]
    for time_s in sorted(before):
        # Several bags follow one measurement, and settled ones follow the median.
        if not any(abs(time_s - each) <= _SAME * each for each in (*known, row["time_s"])):
            known.append(time_s)
    return {**row, "time_s": median(known), "environment": {**environment, ALONE: known}}
