"""IsolatedRun runs and mixes that are made up, with a truth that models can find."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from crosscast.data.dataset import Dataset
from crosscast.evaluation.corun.evaluation import evaluate_corun, of_one_device
from crosscast.prediction.corun.models import models_named
from crosscast.prediction.corun.slowdowns import mix_times
from crosscast.studies.moolchandani2022 import (
    CoRunStudies,
    CoRunStudy,
    cluster_mixes,
    size_study,
    translation_studies,
)
from crosscast.studies.moolchandani2022_features import combination_study, path_study
from support import tables as rows


def mix_time(
    isolated_s: Sequence[float], slowdowns_of: Callable[[tuple[int, ...]], Sequence[float]]
) -> float:
    """Time of one mix, by a function of who still runs."""

    def asked(_: Integers, places: Integers) -> Reals:
        return np.array([slowdowns_of(tuple(places.tolist()))], dtype=np.float64)

    times = np.array([isolated_s], dtype=np.float64)
    whole = asked(np.zeros(1, np.int64), np.arange(len(isolated_s))) if len(isolated_s) > 1 else times
    return float(mix_times(times, whole, asked)[0])


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
    wanted = sum(each.features["utilisation"] for each in mix)
    return [max(1.0, wanted) * (1 + 0.1 * each.features["utilisation"]) for each in mix]


def make_mix(isolated_runs: tuple[IsolatedRun, ...], *, repeat: int = 0, power: bool = True) -> MeasuredMix:
    """A mix as it would be measured."""
    members = tuple(map(Member, isolated_runs, true_slowdowns(isolated_runs)))
    times = [(each.isolated_run.time_s or 0.0) * (each.slowdown or 0.0) for each in members]
    watts = 20 + 40 * min(1.0, sum(each.features["utilisation"] for each in isolated_runs))
    name = " + ".join(each.name for each in isolated_runs)
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
    names = ("mix_mem", "mix_alu", "mix_sse", "llc_miss", "l1_miss", "ipc")
    told = {name: float(random.random()) for name in names}
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


def with_members(co_runs: CoRuns, members: dict[str, IsolatedRun]) -> CoRuns:
    """The same mixes of other applications alone, by names of applications."""

    def other(alone: IsolatedRun) -> IsolatedRun:
        return members.get(alone.application, alone)

    def mixed(mix: MeasuredMix) -> MeasuredMix:
        own = tuple(replace(each, isolated_run=other(each.isolated_run)) for each in mix.members)
        return replace(mix, members=own)

    return CoRuns(co_runs.label, tuple(map(other, co_runs.isolated_runs)), tuple(map(mixed, co_runs.mixes)))


@cache
def counted_co_runs(sizes: tuple[int, ...] = (2, 3)) -> CoRuns:
    """Mixes of four applications on two devices, more of them on ``cpu``."""
    made = made_co_runs(APPLICATIONS, mixes=sizes)
    isolated_runs = {each.application: counted(each) for each in made.isolated_runs}
    runs = with_members(made, isolated_runs)
    others = tuple(map(elsewhere, runs.isolated_runs))
    there = tuple(mix_elsewhere(mix) for mix in runs.mixes if len(mix.members) == 2)
    return CoRuns("made up", (*runs.isolated_runs, *others), (*runs.mixes, *there))


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


def dataset_of(co_runs: CoRuns, failed: int | None = None) -> Dataset:
    """A dataset of these runs alone and mixes, one of which may have failed."""
    told = ("application", "size", "device", "time_s", "power_w", "memory_bytes", "features")
    isolated_runs = [
        rows.isolated_run(**{name: getattr(each, name) for name in told}) for each in co_runs.isolated_runs
    ]
    mixes = []
    for place, mix in enumerate(co_runs.mixes):
        for position, member in enumerate(mix.members):
            measured: rows.Row = {"mix_time_s": mix.time_s, "power_w": mix.power_w}
            measured |= {"slowdown": member.slowdown}
            if place == failed:
                measured = {**dict.fromkeys(measured), "failure": "killed"}
            one = member.isolated_run
            at = {"position": position, "application": one.application, "size": one.size}
            mixes += rows.mix(None, name=mix.name, device=mix.device, **at, **measured)
    keys = dict.fromkeys(each.device for each in co_runs.isolated_runs)
    devices = [rows.device(key, memory_bytes=1 << 34) for key in keys]
    return rows.dataset(devices=devices, isolated_runs=isolated_runs, mixes=mixes)


def measured_mixes(names: tuple[str, ...] = NAMES[:5], sizes: tuple[int, ...] = (2,)) -> Dataset:
    """A dataset of mixes on one device, one of which failed."""
    return dataset_of(made_co_runs(names, mixes=sizes), failed=3)
