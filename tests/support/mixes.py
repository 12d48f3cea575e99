"""Solo runs and bags that are made up, with a truth that models can find."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from crosscast.data.corun import Bag, CoRuns, Member, Solo
from crosscast.data.dataset import Dataset
from crosscast.evaluation.corun.evaluation import evaluate_corun, of_one_device
from crosscast.prediction.corun.models import models_named
from crosscast.studies.moolchandani2022 import (
    CoRunStudies,
    CoRunStudy,
    cluster_mixes,
    size_study,
    translation_studies,
)
from crosscast.studies.moolchandani2022_features import combination_study, path_study
from support import tables as rows

NAMES = ("bfs", "cfd", "crc", "csr", "dwt", "fft")


def made_solo(name: str, size: str = "small", *, seed: int = 0, **known: float) -> Solo:
    """An application whose numbers come from its name and size."""
    random = np.random.default_rng([seed, *f"{name} {size}".encode()])
    utilisation = float(random.uniform(0.3, 1.0))
    features = {
        "utilisation": utilisation,
        "bandwidth_bytes_per_s": float(random.uniform(1e9, 2e10)),
        "inflicted_high": 1 + float(random.uniform(0, 1)),
        **{f"fairness_{level}": float(random.uniform(0.5, 1)) for level in ("low", "medium", "high")},
        **known,
    }
    time_s = float(random.uniform(0.1, 0.4))
    return Solo(
        name, size, "cpu", time_s, power_w=20 + 40 * utilisation, memory_bytes=1 << 20, features=features
    )


def true_slowdowns(bag: tuple[Solo, ...]) -> list[float]:
    """Cores are shared: as much slower as more than all of them is wanted."""
    wanted = sum(solo.features["utilisation"] for solo in bag)
    return [max(1.0, wanted) * (1 + 0.1 * solo.features["utilisation"]) for solo in bag]


def made_bag(solos: tuple[Solo, ...], *, repeat: int = 0, power: bool = True) -> Bag:
    """A bag as it would be measured."""
    slow = true_slowdowns(solos)
    members = tuple(Member(solo, slowdown) for solo, slowdown in zip(solos, slow, strict=True))
    times = [(solo.time_s or 0.0) * slowdown for solo, slowdown in zip(solos, slow, strict=True)]
    watts = 20 + 40 * min(1.0, sum(solo.features["utilisation"] for solo in solos))
    name = " + ".join(solo.name for solo in solos)
    return Bag(
        name, "cpu", members, repeat=repeat, fits=True, time_s=max(times), overlap=min(times) / max(times),
        power_w=watts if power else None,
    )  # fmt: skip


def made_co_runs(
    names: tuple[str, ...] = NAMES,
    sizes: tuple[str, ...] = ("small",),
    bags: tuple[int, ...] = (2,),
    **kind: bool,
) -> CoRuns:
    """All bags of some sizes of all applications."""
    solos = tuple(made_solo(name, size) for name in names for size in sizes)
    made = [made_bag(chosen, **kind) for n in bags for chosen in combinations_with_replacement(solos, n)]
    return CoRuns("made up", solos, tuple(made))


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
        replace(bag, members=tuple(replace(member, solo=solos[member.solo.key]) for member in bag.members))
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
        clusters=cluster_mixes(chosen.bags, 0),
        performance=combination_study(chosen, "performance", 0, kinds=kinds, **way),
        power=combination_study(chosen, "power", 0, kinds=kinds, **way),
        performance_paths=path_study(chosen, "performance", 0),
        power_paths=path_study(chosen, "power", 0),
        sizes=size_study(chosen, [linear, mean], 0, **way),
        translations=translation_studies(co_runs, "cpu", linear, 0, **way),
    )
    evaluation = evaluate_corun(chosen, [linear, mean], "leave-benchmark-out", baselines=["mean"], level=None)
    return CoRunStudy(evaluation, studies)


def measured_mixes(names: tuple[str, ...] = NAMES[:5], sizes: tuple[int, ...] = (2,)) -> Dataset:
    """A dataset of mixes on one device, one of which failed."""
    solos = [made_solo(name) for name in names]
    bags = []
    for members in sizes:
        for place, chosen in enumerate(combinations_with_replacement(solos, members)):
            bag = made_bag(chosen)
            failed = place == 3
            for position, member in enumerate(bag.members):
                bags.append(
                    {
                        "bag": bag.name,
                        "device": "cpu",
                        "configuration": "{}",
                        "repeat": 0,
                        "position": position,
                        "application": member.solo.application,
                        "size": member.solo.size,
                        "slowdown": None if failed else member.slowdown,
                        "bag_time_s": None if failed else bag.time_s,
                        "power_w": None if failed else bag.power_w,
                        "failure": "killed" if failed else None,
                    }
                )
    return rows.dataset(
        devices=[rows.device("cpu", memory_bytes=1 << 34)],
        solos=[
            rows.solo(
                solo.application,
                size=solo.size,
                time_s=solo.time_s,
                power_w=solo.power_w,
                memory_bytes=solo.memory_bytes,
                features=dict(solo.features),
            )
            for solo in solos
        ],
        bags=bags,
    )
