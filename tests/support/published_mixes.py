"""Made-up applications with the features of Moolchandani et al. 2022, and mixes of them by a known law."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from support.mixes import mix_time, with_members

MIXES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
COUNTERS = ("ipc", "llc_miss", "branch_miss", "l1_miss", "dtlb_miss")


def application(place: int, rng: np.random.Generator, size: str = "large") -> IsolatedRun:
    """An application; the more it misses, the more it slows others down, and the less fair it is."""
    miss = float(rng.uniform(0, 0.9))
    features = {f"mix_{name}": float(rng.random()) for name in MIXES}
    features |= {name: float(rng.random()) for name in COUNTERS}
    features |= {"cpu_time_s": float(rng.uniform(1, 9)), "cpu_power_w": float(rng.uniform(20, 90))}
    features["llc_miss"] = miss
    for strength, level in enumerate(("low", "medium", "high"), start=1):
        features[f"fairness_{level}"] = 1 / (1 + miss * strength / 3)
    return IsolatedRun(
        f"app{place}",
        size,
        "gpu",
        float(rng.uniform(1, 4)),
        power_w=float(rng.uniform(30, 60)),
        features=features,
    )


def slowdowns(isolated_runs: tuple[IsolatedRun, ...]) -> list[float]:
    """The law: what all the others miss, and some of its own."""
    misses = [each.features["llc_miss"] for each in isolated_runs]
    return [1 + sum(misses) - own / 2 for own in misses]


def mix_of(runs: tuple[IsolatedRun, ...], *, time: bool, slowed: bool, power: bool) -> MeasuredMix:
    """A mix that follows the law."""
    told: list[float | None] = [*slowdowns(runs)] if slowed else [None] * len(runs)
    alone_s = [each.time_s or 0.0 for each in runs]
    time_s = mix_time(alone_s, lambda left: slowdowns(tuple(runs[place] for place in left)))
    return MeasuredMix(
        "+".join(each.application for each in runs),
        "gpu",
        tuple(map(Member, runs, told)),
        time_s=time_s if time else None,
        power_w=sum(each.power_w or 0.0 for each in runs) if power else None,
    )


def made_co_runs(
    sizes: tuple[int, ...] = (2,),
    *,
    applications: int = 8,
    seed: int = 1,
    time: bool = True,
    slowed: bool = True,
    power: bool = True,
) -> CoRuns:
    """All mixes of different applications of these sizes."""
    rng = np.random.default_rng(seed)
    isolated_runs = tuple(application(place, rng) for place in range(applications))
    mixes = tuple(
        mix_of(each, time=time, slowed=slowed, power=power)
        for size in sizes
        for each in combinations(isolated_runs, size)
    )
    return CoRuns("made-up", isolated_runs, mixes)


def featureless(co_runs: CoRuns) -> CoRuns:
    """The same as where only names, times and slowdowns were published."""
    runs = co_runs.isolated_runs
    found = with_members(
        co_runs, {each.application: replace(each, features={}, power_w=None) for each in runs}
    )
    return replace(found, mixes=tuple(replace(mix, power_w=None) for mix in found.mixes))
