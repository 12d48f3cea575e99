"""Training jobs alone and in pairs on GPUs, as the scheduler Gavel has them: steps a second."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import device_row
from crosscast.tables.importers.published_corun import Job, bag_rows, corun_dataset, file_in, read_rows
from crosscast.tables.schema import Column, Schema, json_text

__all__ = ["import_gavel_pairs"]

_ALONE = "gavel_standalone.csv"
_PAIRS = ("gavel_pairs.csv.gz", "gavel_pairs.csv")
_FILE = "simulation_throughputs"
_SPREAD = "_unconsolidated"
_NAMES = {"k80": "Tesla K80", "p100": "Tesla P100", "v100": "Tesla V100"}
_JOB = re.compile(r"(?P<application>.+) \((?P<size>batch size (?P<batch>[0-9]{1,9}))\)")

_ALONE_FILE = Schema(
    "gavel_standalone",
    1,
    (
        *(Column(name, "text", required=True) for name in ("file", "gpu", "job")),
        Column("gpus", "integer", required=True, least=1),
        Column("steps_per_s", "real", required=True, least=0),
    ),
    key=("file", "gpu", "job", "gpus"),
)
_PAIRS_FILE = Schema(
    "gavel_pairs",
    1,
    (
        *(Column(name, "text", required=True) for name in ("file", "gpu", "job1", "job2")),
        *(Column(name, "integer", required=True, least=1) for name in ("gpus1", "gpus2")),
        *(Column(name, "real", required=True, least=0) for name in ("steps_per_s1", "steps_per_s2")),
    ),
    key=("file", "gpu", "job1", "gpus1", "job2", "gpus2"),
)

_ORIGIN = {
    "origin": (
        "github.com/stanford-futuredata/gavel (MIT): scheduler/simulation_throughputs.json, of the paper "
        "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads (OSDI 2020)."
    )
}
_NOTES = {
    "devices": {
        **_ORIGIN,
        "spread": f"Keys that end in {_SPREAD} are jobs whose GPUs are in several machines.",
    },
    "solos": {
        **_ORIGIN,
        "times": "Time of a training step: 1 over the steps a second. A job is a step.",
        "features": (
            "The batch size, and the steps a second alone on each GPU (k80_steps_per_s and so on) with as "
            "many GPUs: runs alone are cheap and known everywhere. GPUs that the job does not fit on are "
            "left out."
        ),
        "more GPUs": (
            "The number of GPUs is the setting gpus; without it, there is one. Speeds on one GPU are the "
            f"same numbers with and without {_SPREAD}: the second are left out."
        ),
    },
    "bags": {
        **_ORIGIN,
        "the other file": (
            "physical_cluster_throughputs.json is left out: its speeds of Recommendation on the V100 alone "
            "and in pairs contradict each other."
        ),
        "what does not fit": "The source has 0 steps a second for pairs that do not fit on the GPU together.",
        "left out": (
            "Pairs on more than one GPU, which are 0 throughout: nobody measured them. The second of each "
            f"pair, as the source has it in both orders with the same numbers. Pairs with {_SPREAD}, which "
            "on one GPU are the same numbers once more."
        ),
        "slowdown": "Steps a second alone over steps a second in the pair. None is below 1.",
    },
}

_Alone = tuple[str, str, int]
"""GPU, job, and number of GPUs."""


def import_gavel_pairs(path: str | Path) -> Dataset:
    """Make a dataset of jobs alone and of pairs.

    Parameters
    ----------
    path
        Folder with ``gavel_standalone.csv`` and ``gavel_pairs.csv``, the second packed with gzip or not.

    Raises
    ------
    InputError
        If a file or column is missing, a cell holds what it must not, two rows are of the same jobs, or a
        pair is of unlike numbers of GPUs or of jobs that have no speed alone. The message names file and row.
    """
    path = Path(path)
    alone_file, pairs_file = file_in(path, _ALONE), file_in(path, *_PAIRS)
    speeds = {
        (row["gpu"], row["job"], row["gpus"]): float(row["steps_per_s"])
        for row in read_rows(alone_file, _ALONE_FILE)
        if row["file"] == _FILE
    }
    rows = {
        f"{pairs_file}: row {number}": row
        for number, row in enumerate(read_rows(pairs_file, _PAIRS_FILE), start=1)
        if row["file"] == _FILE
    }
    if not rows:
        raise InputError(f"{pairs_file}: expected rows whose file is {_FILE}, found none")
    for place, row in rows.items():
        if row["gpus2"] != row["gpus1"]:
            raise InputError(
                f"{place}: column 'gpus2': expected {row['gpus1']} as gpus1, found {row['gpus2']}"
            )
    solos, bags = list(_solos(speeds)), list(_bags(rows, speeds))
    keys = sorted({row["device"] for row in (*solos, *bags)})
    return corun_dataset(str(path), map(_device, keys), solos, bags, _NOTES)


def _device(key: str) -> dict[str, Any]:
    base = key.removesuffix(_SPREAD)
    name = _NAMES.get(base, base)
    return device_row(key, _ORIGIN["origin"], name=name if key == base else f"{name}, spread", type="gpu")


def _job(name: str) -> Job:
    found = _JOB.fullmatch(name)
    return Job(found["application"], found["size"]) if found else Job(name, "-")


def _settings(gpus: int) -> str:
    return json_text({} if gpus == 1 else {"gpus": gpus})


def _solos(speeds: Mapping[_Alone, float]) -> Iterator[dict[str, Any]]:
    for (gpu, name, gpus), speed in speeds.items():
        if _is_copy(gpu, speed, speeds.get((gpu.removesuffix(_SPREAD), name, gpus))):
            continue
        job, batch = _job(name), _JOB.fullmatch(name)
        known = {f"{key}_steps_per_s": speeds.get((key, name, gpus), 0.0) for key in _NAMES}
        features = {feature: value for feature, value in known.items() if value > 0}
        yield {
            "application": job.application,
            "size": job.size,
            "device": gpu,
            "configuration": _settings(gpus),
            "runs": 1,
            "time_s": 1 / speed if speed > 0 else None,
            "features": features | ({"batch_size": float(batch["batch"])} if batch else {}),
            "failure": None if speed > 0 else "no steps in the source",
        }


def _is_copy(gpu: str, found: object, there: object) -> bool:
    """Whether numbers of spread GPUs are those of GPUs in one machine once more."""
    return gpu.endswith(_SPREAD) and found == there


def _bags(rows: Mapping[str, Mapping[str, Any]], speeds: Mapping[_Alone, float]) -> Iterator[dict[str, Any]]:
    pairs = {
        (row["gpu"], row["job1"], row["job2"], row["gpus1"]): (row["steps_per_s1"], row["steps_per_s2"])
        for row in rows.values()
    }
    done = set()
    for place, (key, together) in zip(rows, pairs.items(), strict=True):
        gpu, *names, gpus = key
        if gpus > 1 and not any(together):
            continue
        if _is_copy(gpu, together, pairs.get((gpu.removesuffix(_SPREAD), names[0], names[1], gpus))):
            continue
        mirrored = (gpu, names[1], names[0], gpus)
        if mirrored in done and pairs[mirrored] == together[::-1]:
            continue
        done.add(key)
        alone = [_alone(place, speeds, (gpu, name, gpus)) for name in names]
        fits = all(together)
        # In the order of the first, else the same bag would have two names.
        again = mirrored in done and names[0] != names[1]
        order = (1, 0) if again else (0, 1)
        yield from bag_rows(
            [_job(names[place]) for place in order],
            [alone[place] / together[place] if fits else None for place in order],
            device=gpu,
            configuration=_settings(gpus),
            repeat=int(again),
            fits=int(fits),
        )


def _alone(place: str, speeds: Mapping[_Alone, float], key: _Alone) -> float:
    speed = speeds.get(key, 0.0)
    if speed <= 0:
        gpu, name, gpus = key
        raise InputError(
            f"{place}: expected jobs with a speed in {_ALONE} on the same GPUs, found {name!r} on {gpus} "
            f"{gpu}"
        )
    return speed
