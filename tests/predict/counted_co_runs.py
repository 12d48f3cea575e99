"""Made-up bags with counters and power on two devices, and the studies of them."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from made_co_runs import made_co_runs

from crosscast.evaluate.corun import evaluate_corun, of_one_device
from crosscast.predict.corun.models import models_named
from crosscast.studies.corun import CoRunStudies, CoRunStudy, cluster_bags, translation_studies
from crosscast.studies.moolchandani2022 import (
    performance_combinations,
    performance_paths,
    power_combinations,
    power_paths,
    sizes_study,
)
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

APPLICATIONS = ("bfs", "cfd", "crc", "csr")
EXPONENT, FACTOR = 0.9, 0.5
"""Times on the other device: ``FACTOR * time ** EXPONENT``."""


def other_time(seconds: float) -> float:
    """How long the same takes on the other device."""
    return FACTOR * float(seconds**EXPONENT)


def counted(solo: Solo) -> Solo:
    """An application with some of the published features."""
    random = np.random.default_rng([7, *solo.name.encode()])
    told = {
        name: float(random.random())
        for name in ("mix_mem", "mix_alu", "mix_sse", "llc_miss", "l1_miss", "ipc")
    }
    return replace(solo, features={"utilisation": solo.features["utilisation"], **told})


def elsewhere(solo: Solo) -> Solo:
    """The same application on the other device."""
    return replace(solo, device="other", time_s=other_time(solo.time_s or 1.0))


def bag_elsewhere(bag: Bag) -> Bag:
    """The same bag on the other device, whose members slow down as its times say."""
    members = []
    for member in bag.members:
        solo, alone = elsewhere(member.solo), member.solo.time_s or 1.0
        slowdown = other_time(alone * (member.slowdown or 1.0)) / other_time(alone)
        members.append(replace(member, solo=solo, slowdown=slowdown))
    time_s = None if bag.time_s is None else other_time(bag.time_s)
    return replace(bag, device="other", members=tuple(members), time_s=time_s)


@cache
def counted_co_runs(sizes: tuple[int, ...] = (2, 3)) -> CoRuns:
    """Bags of four applications on two devices, more of them on ``cpu``."""
    made = made_co_runs(APPLICATIONS, bags=sizes)
    solos = {solo.key: counted(solo) for solo in made.solos}
    bags = tuple(
        replace(
            bag,
            members=tuple(replace(member, solo=solos[member.solo.key]) for member in bag.members),
        )
        for bag in made.bags
    )
    others = tuple(elsewhere(solo) for solo in solos.values())
    there = tuple(bag_elsewhere(bag) for bag in bags if len(bag.members) == 2)
    return CoRuns("made up", (*solos.values(), *others), (*bags, *there))


@cache
def studied() -> CoRunStudy:
    """An evaluation of these bags with all studies, by models that take no time; made once for all tests."""
    co_runs = counted_co_runs()
    chosen = of_one_device(co_runs)
    linear, mean = models_named(["published-linear", "mean"])
    way: dict[str, Any] = {"progress": None, "cache": None, "jobs": 1}
    kinds = ("decision-tree", "linear", "svr")
    studies = CoRunStudies(
        clusters=cluster_bags(chosen.bags, 0),
        performance=performance_combinations(chosen, 0, kinds=kinds, **way),
        power=power_combinations(chosen, 0, kinds=kinds, **way),
        performance_paths=performance_paths(chosen, 0),
        power_paths=power_paths(chosen, 0),
        sizes=sizes_study(chosen, [linear, mean], 0, **way),
        translations=translation_studies(co_runs, "cpu", linear, 0, **way),
    )
    evaluation = evaluate_corun(chosen, [linear, mean], "leave-benchmark-out", baselines=["mean"], level=None)
    return CoRunStudy(evaluation, studies)
