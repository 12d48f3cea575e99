"""IsolatedRun runs and mixes that are made up, with a truth that models can find."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
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


def make_isolated_run(name: str, size: str = "small", *, seed: int = 0, **known: float) -> IsolatedRun:
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
    return IsolatedRun(
        name, size, "cpu", time_s, power_w=20 + 40 * utilisation, memory_bytes=1 << 20, features=features
    )


def true_slowdowns(mix: tuple[IsolatedRun, ...]) -> list[float]:
    """Cores are shared: as much slower as more than all of them is wanted."""
    wanted = sum(isolated_run.features["utilisation"] for isolated_run in mix)
    return [max(1.0, wanted) * (1 + 0.1 * isolated_run.features["utilisation"]) for isolated_run in mix]


def make_mix(isolated_runs: tuple[IsolatedRun, ...], *, repeat: int = 0, power: bool = True) -> MeasuredMix:
    """A mix as it would be measured."""
    slow = true_slowdowns(isolated_runs)
    members = tuple(
        Member(isolated_run, slowdown) for isolated_run, slowdown in zip(isolated_runs, slow, strict=True)
    )
    times = [
        (isolated_run.time_s or 0.0) * slowdown
        for isolated_run, slowdown in zip(isolated_runs, slow, strict=True)
    ]
    watts = 20 + 40 * min(1.0, sum(isolated_run.features["utilisation"] for isolated_run in isolated_runs))
    name = " + ".join(isolated_run.name for isolated_run in isolated_runs)
    return MeasuredMix(
        name, "cpu", members, repeat=repeat, fits=True, time_s=max(times), overlap=min(times) / max(times),
        power_w=watts if power else None,
    )  # fmt: skip


def made_co_runs(
    names: tuple[str, ...] = NAMES,
    sizes: tuple[str, ...] = ("small",),
    mixes: tuple[int, ...] = (2,),
    **kind: bool,
) -> CoRuns:
    """All mixes of some sizes of all applications."""
    isolated_runs = tuple(make_isolated_run(name, size) for name in names for size in sizes)
    made = [
        make_mix(chosen, **kind) for n in mixes for chosen in combinations_with_replacement(isolated_runs, n)
    ]
    return CoRuns("made up", isolated_runs, tuple(made))


APPLICATIONS = ("bfs", "cfd", "crc", "csr")
EXPONENT, FACTOR = 0.9, 0.5
"""Times on the other device: ``FACTOR * time ** EXPONENT``."""


def other_time(seconds: float) -> float:
    """How long the same takes on the other device."""
    return FACTOR * float(seconds**EXPONENT)


def counted(isolated_run: IsolatedRun) -> IsolatedRun:
    """An application with some of the published features."""
    random = np.random.default_rng([7, *isolated_run.name.encode()])
    told = {
        name: float(random.random())
        for name in ("mix_mem", "mix_alu", "mix_sse", "llc_miss", "l1_miss", "ipc")
    }
    return replace(isolated_run, features={"utilisation": isolated_run.features["utilisation"], **told})


def elsewhere(isolated_run: IsolatedRun) -> IsolatedRun:
    """The same application on the other device."""
    return replace(isolated_run, device="other", time_s=other_time(isolated_run.time_s or 1.0))


def mix_elsewhere(mix: MeasuredMix) -> MeasuredMix:
    """The same mix on the other device, whose members slow down as its times say."""
    members = []
    for member in mix.members:
        isolated_run, alone = elsewhere(member.isolated_run), member.isolated_run.time_s or 1.0
        slowdown = other_time(alone * (member.slowdown or 1.0)) / other_time(alone)
        members.append(replace(member, isolated_run=isolated_run, slowdown=slowdown))
    time_s = None if mix.time_s is None else other_time(mix.time_s)
    return replace(mix, device="other", members=tuple(members), time_s=time_s)


@cache
def counted_co_runs(sizes: tuple[int, ...] = (2, 3)) -> CoRuns:
    """Mixes of four applications on two devices, more of them on ``cpu``."""
    made = made_co_runs(APPLICATIONS, mixes=sizes)
    isolated_runs = {isolated_run.key: counted(isolated_run) for isolated_run in made.isolated_runs}
    mixes = tuple(
        replace(
            mix,
            members=tuple(
                replace(member, isolated_run=isolated_runs[member.isolated_run.key]) for member in mix.members
            ),
        )
        for mix in made.mixes
    )
    others = tuple(elsewhere(isolated_run) for isolated_run in isolated_runs.values())
    there = tuple(mix_elsewhere(mix) for mix in mixes if len(mix.members) == 2)
    return CoRuns("made up", (*isolated_runs.values(), *others), (*mixes, *there))


@cache
def studied() -> CoRunStudy:
    """An evaluation of these mixes with all studies, by models that take no time; made once for all tests."""
    co_runs = counted_co_runs()
    chosen = of_one_device(co_runs)
    linear, mean = models_named(["published-linear", "mean"])
    way: dict[str, Any] = {"progress": None, "cache": None, "jobs": 1}
    kinds = ("decision-tree", "linear", "svr")
    studies = CoRunStudies(
        clusters=cluster_mixes(chosen.mixes, 0),
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
    isolated_runs = [make_isolated_run(name) for name in names]
    mixes = []
    for members in sizes:
        for place, chosen in enumerate(combinations_with_replacement(isolated_runs, members)):
            mix = make_mix(chosen)
            failed = place == 3
            for position, member in enumerate(mix.members):
                mixes.append(
                    {
                        "mix": mix.name,
                        "device": "cpu",
                        "configuration": "{}",
                        "repeat": 0,
                        "position": position,
                        "application": member.isolated_run.application,
                        "size": member.isolated_run.size,
                        "slowdown": None if failed else member.slowdown,
                        "mix_time_s": None if failed else mix.time_s,
                        "power_w": None if failed else mix.power_w,
                        "failure": "killed" if failed else None,
                    }
                )
    return rows.dataset(
        devices=[rows.device("cpu", memory_bytes=1 << 34)],
        isolated_runs=[
            rows.isolated_run(
                isolated_run.application,
                size=isolated_run.size,
                time_s=isolated_run.time_s,
                power_w=isolated_run.power_w,
                memory_bytes=isolated_run.memory_bytes,
                features=dict(isolated_run.features),
            )
            for isolated_run in isolated_runs
        ],
        mixes=mixes,
    )
