"""Training jobs alone and in pairs on a GPU, as the scheduler Lucid has them: relative speeds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import device_row
from crosscast.tables.importers.published_corun import Job, bag_rows, corun_dataset, file_in, read_rows
from crosscast.tables.schema import Column, Schema

__all__ = ["import_lucid"]

_DEVICE = "lucid-gpu"
_ALONE, _PAIRS = "lucid_single.csv", "lucid_pairs.csv"
_SHARES = {"gpu_util": "utilisation", "gmem_util": "memory_utilisation"}
_MEBIBYTE = 1 << 20

_ALONE_FILE = Schema(
    "lucid_single",
    1,
    (
        *(Column(name, "text", required=True) for name in ("model", "dataset")),
        Column("batchsize", "integer", required=True, least=1),
        Column("amp", "integer", required=True, least=0),
        Column("speed", "real", required=True),
        *(Column(name, "real", required=True, least=0) for name in (*_SHARES, "gmem")),
    ),
    key=("model", "dataset", "batchsize", "amp"),
)
_PAIRS_FILE = Schema(
    "lucid_pairs",
    1,
    tuple(
        Column(f"{column.name}{member}", column.type, required=True, least=column.least)
        for member in (1, 2)
        for column in (*_ALONE_FILE.columns[:5], Column("gpu_num", "integer", least=1))
    ),
    key=tuple(f"{name}{member}" for member in (1, 2) for name in (*_ALONE_FILE.key, "gpu_num")),
)

_ORIGIN = {
    "origin": (
        "github.com/S-Lab-System-Group/Lucid, of the paper Lucid: A Non-intrusive, Scalable and "
        "Interpretable Scheduler for Deep Learning Training Jobs (ASPLOS 2023). S-Lab licence, for "
        "non-commercial use: pass neither the data nor a model made from it on."
    )
}
_NOTES = {
    "devices": {**_ORIGIN, "device": "The files do not say which GPU it is."},
    "solos": {
        **_ORIGIN,
        "times": (
            "Time of a sample: 1 over the speed, which the origin's programs count in samples a second (of "
            "PPO and TD3, steps or episodes: the files do not say). A job is a sample."
        ),
        "features": (
            "batch_size; amp, 1 with mixed precision; utilisation and memory_utilisation, as the driver "
            "tells them; dataset_<name>, 1 for the job's data set and 0 for the others."
        ),
        "left out": (
            "label: the origin's authors gave it by hand, by the speeds in pairs, so that it tells what is "
            "to be predicted."
        ),
    },
    "bags": {
        **_ORIGIN,
        "slowdown": "1 over the source's speed, which is that in the pair over that alone. Some are below 1.",
        "left out": "gpu_util, gmem_util and gmem of pairs, which the tables of bags have no columns for.",
        "chosen pairs": (
            "605 of the pairs that 48 jobs can make, all on one GPU. BERT, ResNet50 and Transformer are in "
            "none; models are in unlike numbers of them: weigh models equally, not rows."
        ),
    },
}


def import_lucid(path: str | Path) -> Dataset:
    """Make a dataset of jobs alone and of pairs.

    Parameters
    ----------
    path
        Folder with ``lucid_single.csv`` and ``lucid_pairs.csv``.

    Raises
    ------
    InputError
        If a file or column is missing, a cell holds what it must not, or two rows are of the same jobs. The
        message names file, column and row.
    """
    path = Path(path)
    alone_file, pairs_file = file_in(path, _ALONE), file_in(path, _PAIRS)
    alone = read_rows(alone_file, _ALONE_FILE, ("speed",))
    pairs = read_rows(pairs_file, _PAIRS_FILE, ("speed1", "speed2"))
    for file, rows, names in ((alone_file, alone, ("amp",)), (pairs_file, pairs, ("amp1", "amp2"))):
        _check_most(file, rows, dict.fromkeys(names, 1))
    _check_most(alone_file, alone, dict.fromkeys(_SHARES, 100))
    datasets = sorted({row["dataset"] for row in alone})
    device = device_row(_DEVICE, _ORIGIN["origin"], name="GPU of Lucid's measurements", type="gpu")
    bags = (
        row
        for pair in pairs
        for row in bag_rows(
            [_job(pair, "1"), _job(pair, "2")],
            [1 / pair["speed1"], 1 / pair["speed2"]],
            device=_DEVICE,
            fits=1,
        )
    )
    return corun_dataset(str(path), [device], [_solo(row, datasets) for row in alone], bags, _NOTES)


def _check_most(file: Path, rows: list[dict[str, Any]], most: Mapping[str, int]) -> None:
    for name, limit in most.items():
        for number, row in enumerate(rows, start=1):
            if row[name] > limit:
                raise InputError(
                    f"{file}: column {name!r}, row {number}: expected at most {limit}, found {row[name]:g}"
                )


def _job(row: Mapping[str, Any], member: str = "") -> Job:
    words = [row[f"dataset{member}"], f"b{row[f'batchsize{member}']}"]
    if row[f"amp{member}"]:
        words.append("amp")
    gpus = row.get(f"gpu_num{member}", 1)
    if gpus != 1:
        words.append(f"{gpus} GPUs")
    return Job(row[f"model{member}"], " ".join(words))


def _solo(row: Mapping[str, Any], datasets: list[str]) -> dict[str, Any]:
    job = _job(row)
    return {
        "application": job.application,
        "size": job.size,
        "device": _DEVICE,
        "configuration": "{}",
        "runs": 1,
        "time_s": 1 / row["speed"],
        "memory_bytes": round(row["gmem"] * _MEBIBYTE),
        "features": {
            "batch_size": float(row["batchsize"]),
            "amp": float(row["amp"]),
            **{feature: row[name] / 100 for name, feature in _SHARES.items()},
            **{f"dataset_{_word(name)}": float(name == row["dataset"]) for name in datasets},
        },
    }


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
