"""Jobs that share processors: slowdowns of pairs, and policies that accept them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Schedule
from crosscast.cluster.power import MOST_SLOWDOWN
from crosscast.cluster.site import LIMIT, MOST_TOGETHER, SHARING_POLICIES, SharingPolicy, rows_of_csv
from crosscast.errors import InputError, expect_known


@dataclass(frozen=True)
class Slowdowns:
    """Slowdown of each of ``c`` kinds of jobs (row) beside each kind (column).

    Of shape ``(c, c)``; infinite where they do not fit on the same processors.
    """

    kinds: tuple[str, ...]
    true: Reals
    predicted: Reals | None = None


@dataclass(frozen=True)
class Sharing:
    """Sharing of processors by ``n`` jobs, and their slowdowns.

    The slowdown beside several others is the product of the pairwise slowdowns.
    """

    kind: Integers  # Kind of each job, of shape `(n,)`
    true: Reals  # As in `Slowdowns`
    believed: Reals  # Slowdowns that the scheduler expects
    most: int = 2  # Most jobs on the same processors
    limit: float = LIMIT  # Limit on the expected slowdown, which jobs are promised
    # Least gain of a job in the sum of the speeds relative to running alone; minus infinity for any
    least_gain: float = 0.0
    by_gain: bool = True  # Whether a job joins those with the highest gain, or the first

    def __post_init__(self) -> None:
        # The simulator has room for so many on each seat.
        if not 2 <= self.most <= MOST_TOGETHER:
            expected = f"2 to {MOST_TOGETHER} jobs"
            raise InputError.of(where="sharing", field="most", expected=expected, found=self.most)


def sharing_for(
    policy: SharingPolicy, slowdowns: Slowdowns, kind: Integers, limit: float, least_gain: float, most: int
) -> Sharing | None:
    """Return how jobs of these kinds share under a policy; ``None`` if they do not."""
    expect_known(policy, SHARING_POLICIES, field="sharing")
    if policy == "never":
        return None
    if policy in ("threshold", "gain") and slowdowns.predicted is None:
        raise InputError.of(
            field="sharing", problem=f"{policy}: expected a table with predicted slowdowns, found none"
        )
    believed = slowdowns.predicted if policy in ("threshold", "gain") else slowdowns.true
    assert believed is not None
    # Whether two kinds fit together follows from their memory, and is known.
    believed = np.where(np.isfinite(slowdowns.true), believed, np.inf)
    if policy == "always":
        any_slowdown = float(np.finfo(np.float64).max)
        return Sharing(kind, slowdowns.true, believed, most, any_slowdown, -np.inf, by_gain=False)
    least = 0.0 if policy == "threshold" else least_gain
    return Sharing(kind, slowdowns.true, believed, most, limit, least, by_gain=policy != "threshold")


_COLUMNS = ("kind", "beside", "slowdown")
_PREDICTED = "predicted_slowdown"


def read_slowdowns(path: str | Path) -> Slowdowns:
    """Read slowdowns of pairs: a CSV file with a row for each ordered pair of kinds, equal ones included.

    Columns are `kind`, `beside`, `slowdown` (empty where they do not fit), and maybe `predicted_slowdown`.
    """
    header, rows = rows_of_csv(path, "slowdowns", _COLUMNS, (_PREDICTED,))
    names = ["slowdown", *([_PREDICTED] if _PREDICTED in header else [])]
    kinds = list(dict.fromkeys(cells["kind"] for _, cells in rows))
    index = {kind: number for number, kind in enumerate(kinds)}
    tables = np.full((len(names), len(kinds), len(kinds)), np.nan)
    for where, cells in rows:
        if cells["beside"] not in index:
            expected = "a kind that has rows of its own"
            raise InputError.of(where=where, field="beside", expected=expected, found=repr(cells["beside"]))
        pair = index[cells["kind"]], index[cells["beside"]]
        if not np.isnan(tables[0][pair]):
            expected, repeated = "each pair once", f"{cells['kind']} beside {cells['beside']} again"
            raise InputError.of(where=where, expected=expected, found=repeated)
        for table, name in zip(tables, names, strict=True):
            try:
                number = float(cells[name]) if cells[name] else np.inf
            except ValueError:
                number = np.nan
            if not (0 < number <= MOST_SLOWDOWN or number == np.inf):
                most = f" and at most {MOST_SLOWDOWN:g}" if number > 0 else ""
                expected = f"a number above 0{most}, or nothing if they do not fit"
                raise InputError.of(where=where, field=name, expected=expected, found=repr(cells[name]))
            table[pair] = number
    missing = np.argwhere(np.isnan(tables[0]))
    if len(missing):
        one, other = (kinds[number] for number in missing[0])
        raise InputError.of(where=path, expected=f"a row for {one} beside {other}", found="none")
    return Slowdowns(tuple(kinds), tables[0], tables[1] if len(tables) > 1 else None)


@dataclass(frozen=True)
class SharingMetrics:
    """Metrics of shared jobs."""

    slowed: float  # Share of the jobs that ran longer than alone
    mean_slowdown: float  # Mean time that jobs ran over that alone, of those with any
    broken_promises: float  # Share of the jobs that ran longer than they were promised at worst


_SAME = 1e-9


def sharing_metrics(schedule: Schedule, limit: float) -> SharingMetrics:
    """Compare run times with those alone, and count the jobs beyond their promised slowdown."""
    alone_s = schedule.on_machine(schedule.jobs.run_s)
    ran = alone_s > 0
    slowdown = schedule.ran_s[ran] / alone_s[ran]
    if not len(slowdown):
        return SharingMetrics(0.0, 1.0, 0.0)
    return SharingMetrics(
        slowed=float((slowdown > 1 + _SAME).mean()),
        mean_slowdown=float(slowdown.mean()),
        broken_promises=float((slowdown > limit * (1 + _SAME)).mean()),
    )
