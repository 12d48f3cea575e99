"""Made-up applications with the features of Moolchandani et al. 2022, and mixes of them by a known law."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from crosscast.data.corun import Bag, CoRuns, Member, Solo
from support.mix_times import mix_time

MIXES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
COUNTERS = ("ipc", "llc_miss", "branch_miss", "l1_miss", "dtlb_miss")


def application(place: int, rng: np.random.Generator, size: str = "large") -> Solo:
    """An application; the more it misses, the more it slows others down, and the less fair it is."""
    miss = float(rng.uniform(0, 0.9))
    features = {f"mix_{name}": float(rng.random()) for name in MIXES}
    features |= {name: float(rng.random()) for name in COUNTERS}
    features |= {"cpu_time_s": float(rng.uniform(1, 9)), "cpu_power_w": float(rng.uniform(20, 90))}
    features["llc_miss"] = miss
    for strength, level in enumerate(("low", "medium", "high"), start=1):
        features[f"fairness_{level}"] = 1 / (1 + miss * strength / 3)
    return Solo(
        f"app{place}",
        size,
        "gpu",
        float(rng.uniform(1, 4)),
        power_w=float(rng.uniform(30, 60)),
        features=features,
    )


def slowdowns(solos: tuple[Solo, ...]) -> list[float]:
    """The law: what all the others miss, and some of its own."""
    misses = [solo.features["llc_miss"] for solo in solos]
    return [1 + sum(misses) - own / 2 for own in misses]


def bag_of(solos: tuple[Solo, ...], *, time: bool = True, slowed: bool = True, power: bool = True) -> Bag:
    """A bag that follows the law."""
    told = slowdowns(solos)
    time_s = mix_time(
        [solo.time_s or 0.0 for solo in solos], lambda left: slowdowns(tuple(solos[place] for place in left))
    )
    return Bag(
        "+".join(solo.application for solo in solos),
        "gpu",
        tuple(Member(solo, each if slowed else None) for solo, each in zip(solos, told, strict=True)),
        time_s=time_s if time else None,
        power_w=sum(solo.power_w or 0.0 for solo in solos) if power else None,
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
    """All bags of different applications of these sizes."""
    rng = np.random.default_rng(seed)
    solos = tuple(application(place, rng) for place in range(applications))
    bags = tuple(
        bag_of(each, time=time, slowed=slowed, power=power)
        for size in sizes
        for each in combinations(solos, size)
    )
    return CoRuns("made-up", solos, bags)


def without(solo: Solo, *names: str) -> Solo:
    """An application of which less is known."""
    return replace(solo, features={name: value for name, value in solo.features.items() if name not in names})


def with_members(co_runs: CoRuns, members: dict[str, Solo]) -> CoRuns:
    """The same bags of other applications alone, by names of applications."""
    bags = tuple(
        replace(
            bag,
            members=tuple(
                replace(member, solo=members.get(member.solo.application, member.solo))
                for member in bag.members
            ),
        )
        for bag in co_runs.bags
    )
    return CoRuns(co_runs.label, tuple(members.get(solo.application, solo) for solo in co_runs.solos), bags)


def featureless(co_runs: CoRuns) -> CoRuns:
    """The same as where only names, times and slowdowns were published."""
    solos = {solo.application: replace(solo, features={}, power_w=None) for solo in co_runs.solos}
    found = with_members(co_runs, solos)
    return replace(found, bags=tuple(replace(bag, power_w=None) for bag in found.bags))
