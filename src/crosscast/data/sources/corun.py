"""Published co-running: solo runs and bags of others' files, put into a dataset."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.data.array_file import DAMAGE, array_header
from crosscast.data.corun import DUMMY
from crosscast.data.dataset import Dataset
from crosscast.data.library import pa
from crosscast.data.schema import BAGS, DEVICES, SOLOS, Column, Schema, json_text
from crosscast.data.sources.runs import device_row, file_at
from crosscast.data.sources.source import read_source
from crosscast.data.table import Numbers, Table, arrow_schema, table_of
from crosscast.errors import InputError


@dataclass(frozen=True)
class Job:
    """An application at a size, as a source names it."""

    application: str
    size: str

    @property
    def name(self) -> str:
        """Both, for names of bags."""
        return f"{self.application} {self.size}"


def file_in(folder: Path, *names: str) -> Path:
    """The first of these files that a folder has."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    found = "none" if folder.is_dir() else "no folder"
    raise InputError(f"{folder}: expected a folder with {' or '.join(names)}, found {found}")


def read_rows(path: Path, schema: Schema, positive: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of a source's file."""
    rows = read_source(path, schema)
    if not rows:
        raise InputError(f"{path}: expected rows of the table of {schema.table}, found none")
    for name in positive:
        for number, row in enumerate(rows, start=1):
            if row[name] <= 0:
                raise InputError(
                    f"{path}: column {name!r}, row {number}: expected more than 0, found {row[name]:g}"
                )
    return rows


def bag_rows(jobs: Sequence[Job], slowdowns: Sequence[float | None], **cells: Any) -> list[dict[str, Any]]:
    """Rows of a bag that is named after its jobs."""
    shared = {"bag": " + ".join(job.name for job in jobs), "configuration": "{}", "repeat": 0, **cells}
    return [
        {**shared, "position": place, "application": job.application, "size": job.size, "slowdown": slowdown}
        for place, (job, slowdown) in enumerate(zip(jobs, slowdowns, strict=True))
    ]


def corun_dataset(
    label: str,
    devices: Iterable[Mapping[str, Any]],
    solos: Iterable[Mapping[str, Any]],
    bags: Iterable[Mapping[str, Any]],
    notes: Mapping[str, Mapping[str, str]],
) -> Dataset:
    """Make a dataset of rows."""
    return Dataset(
        label,
        devices=table_of(DEVICES, devices, notes.get(DEVICES.table)),
        solos=table_of(SOLOS, solos, notes.get(SOLOS.table)),
        bags=table_of(BAGS, bags, notes.get(BAGS.table)),
    )


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
    """Make a dataset of jobs alone and of pairs."""
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


_DEVICE = "lucid-gpu"
_LUCID_ALONE, _LUCID_PAIRS = "lucid_single.csv", "lucid_pairs.csv"
_SHARES = {"gpu_util": "utilisation", "gmem_util": "memory_utilisation"}
_MEBIBYTE = 1 << 20

_LUCID_ALONE_FILE = Schema(
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
_LUCID_PAIRS_FILE = Schema(
    "lucid_pairs",
    1,
    tuple(
        Column(f"{column.name}{member}", column.type, required=True, least=column.least)
        for member in (1, 2)
        for column in (*_LUCID_ALONE_FILE.columns[:5], Column("gpu_num", "integer", least=1))
    ),
    key=tuple(f"{name}{member}" for member in (1, 2) for name in (*_LUCID_ALONE_FILE.key, "gpu_num")),
)

_LUCID_ORIGIN = {
    "origin": (
        "github.com/S-Lab-System-Group/Lucid, of the paper Lucid: A Non-intrusive, Scalable and "
        "Interpretable Scheduler for Deep Learning Training Jobs (ASPLOS 2023). S-Lab licence, for "
        "non-commercial use: pass neither the data nor a model made from it on."
    )
}
_LUCID_NOTES = {
    "devices": {**_LUCID_ORIGIN, "device": "The files do not say which GPU it is."},
    "solos": {
        **_LUCID_ORIGIN,
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
        **_LUCID_ORIGIN,
        "slowdown": "1 over the source's speed, which is that in the pair over that alone. Some are below 1.",
        "left out": "gpu_util, gmem_util and gmem of pairs, which the tables of bags have no columns for.",
        "chosen pairs": (
            "605 of the pairs that 48 jobs can make, all on one GPU. BERT, ResNet50 and Transformer are in "
            "none; models are in unlike numbers of them: weigh models equally, not rows."
        ),
    },
}


def import_lucid(path: str | Path) -> Dataset:
    """Make a dataset of jobs alone and of pairs."""
    path = Path(path)
    alone_file, pairs_file = file_in(path, _LUCID_ALONE), file_in(path, _LUCID_PAIRS)
    alone = read_rows(alone_file, _LUCID_ALONE_FILE, ("speed",))
    pairs = read_rows(pairs_file, _LUCID_PAIRS_FILE, ("speed1", "speed2"))
    for file, rows, names in ((alone_file, alone, ("amp",)), (pairs_file, pairs, ("amp1", "amp2"))):
        _check_most(file, rows, dict.fromkeys(names, 1))
    _check_most(alone_file, alone, dict.fromkeys(_SHARES, 100))
    datasets = sorted({row["dataset"] for row in alone})
    device = device_row(_DEVICE, _LUCID_ORIGIN["origin"], name="GPU of Lucid's measurements", type="gpu")
    bags = (
        row
        for pair in pairs
        for row in bag_rows(
            [_lucid_job(pair, "1"), _lucid_job(pair, "2")],
            [1 / pair["speed1"], 1 / pair["speed2"]],
            device=_DEVICE,
            fits=1,
        )
    )
    return corun_dataset(str(path), [device], [_solo(row, datasets) for row in alone], bags, _LUCID_NOTES)


def _check_most(file: Path, rows: list[dict[str, Any]], most: Mapping[str, int]) -> None:
    for name, limit in most.items():
        for number, row in enumerate(rows, start=1):
            if row[name] > limit:
                raise InputError(
                    f"{file}: column {name!r}, row {number}: expected at most {limit}, found {row[name]:g}"
                )


def _lucid_job(row: Mapping[str, Any], member: str = "") -> Job:
    words = [row[f"dataset{member}"], f"b{row[f'batchsize{member}']}"]
    if row[f"amp{member}"]:
        words.append("amp")
    gpus = row.get(f"gpu_num{member}", 1)
    if gpus != 1:
        words.append(f"{gpus} GPUs")
    return Job(row[f"model{member}"], " ".join(words))


def _solo(row: Mapping[str, Any], datasets: list[str]) -> dict[str, Any]:
    job = _lucid_job(row)
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


_NAME = "miso_mps_mig.npz"
_MISO_DEVICE = "a100"
_ROWS = {
    "mps": [json_text({"mps_percent": percent}) for percent in (100, 50, 14)],
    "mig": [json_text({"mig_gpcs": slices}) for slices in (7, 4, 3)],
}
_DUMMY_MIG = (0.8889, 1.0, 0.8889)
_DIGITS = 4
_MOST_MIXES = 100_000
_MOST_JOBS = 16
_Reals = npt.NDArray[np.float64]

_MISO_ORIGIN = {
    "origin": (
        "github.com/boringlee24/socc22-miso (MIT), of the paper MISO: Exploiting Multi-Instance GPU "
        "Capability on Multi-Tenant GPU Clusters (SoCC 2022): what its predictor learns from, mixes on an "
        "A100 of 40 GB."
    )
}
_MISO_NOTES = {
    "devices": _MISO_ORIGIN,
    "bags": {
        **_MISO_ORIGIN,
        "slowdown": (
            "The source's numbers as they are. They are relative times, not relative to a job alone: a "
            "job's time of an iteration over that at the slowest of the three levels (of MPS, or of MIG), "
            "so that each is at most 1. Nothing in the files ties those of MPS to those of MIG."
        ),
        "order of rows": (
            "The source does not name its rows. They are taken as 100, 50 and 14 % of the threads, and as "
            "7, 4 and 3 slices: so 25 of the 32 jobs' columns are, within 0.01, ratios of the times in the "
            "origin's logs of 7g.40gb, 4g.20gb and 3g.20gb, and one job beside dummies is slowest at 14 %."
        ),
        "MIG": (
            "The rows of mig_gpcs are each job alone on a part of that many slices; they are the same in "
            "all mixes of a job, and not at the same time. fits is empty there."
        ),
        "orders": (
            "The source has 14,000 mixes: 2,800, each in five orders of the same numbers, of which the "
            "first is kept. A split of its rows tests what was learned. Mixes of the same jobs that have "
            "other numbers are repeats of a bag: 2,300 bags."
        ),
        "jobs": (
            "The source does not name jobs. Those with the same three numbers of MIG are taken as one; `job"
            " 01` and so on are in the order of these numbers. `dummy` is the small job that fills mixes up"
            " to seven, 43 % of all: leave it out of what is judged."
        ),
    },
}


def import_miso(path: str | Path) -> Dataset:
    """Make a dataset of mixes: each is a bag, at three levels of MPS and on three sizes of parts of the GPU.

    Mixes that differ in the order of their jobs alone are one, and mixes of the same jobs with other numbers
    are repeats of a bag.
    """
    path = Path(path)
    file = file_at(path, _NAME)
    arrays = _read(file)
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = " and ".join(str(array.shape) for array in arrays.values())
        raise InputError(f"{file}: expected arrays mps and mig of one shape, found {shapes}")
    device = device_row(_MISO_DEVICE, _MISO_ORIGIN["origin"], name="A100-40GB", vendor="NVIDIA", type="gpu")
    return Dataset(
        str(path),
        devices=table_of(DEVICES, [device], _MISO_NOTES["devices"]),
        bags=_miso_bags(arrays["mps"], arrays["mig"]),
    )


def _read(file: Path) -> dict[str, _Reals]:
    try:
        with zipfile.ZipFile(file) as archive:
            return {name: _array(archive, name, f"{file}: array {name!r}") for name in _ROWS}
    except FileNotFoundError:
        raise InputError(f"{file}: cannot read the mixes (no such file)") from None
    except DAMAGE as error:
        raise InputError(f"{file}: expected an archive with the arrays mps and mig ({error})") from error


def _array(archive: zipfile.ZipFile, name: str, place: str) -> _Reals:
    # First the header alone: memory is taken for what it says.
    with archive.open(f"{name}.npy") as member:
        shape, dtype = array_header(member)
    if dtype.kind != "f":
        raise InputError(f"{place}: expected real numbers, found {dtype}")
    if (
        len(shape) != 3
        or shape[1] != 3
        or not 1 <= shape[0] <= _MOST_MIXES
        or not 2 <= shape[2] <= _MOST_JOBS
    ):
        raise InputError(
            f"{place}: expected the shape (n, 3, k), n up to {_MOST_MIXES:,} and k from 2 to {_MOST_JOBS}, "
            f"found {shape}"
        )
    with archive.open(f"{name}.npy") as member:
        found: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    # The source has four digits, in single precision.
    values: _Reals = found.astype(np.float64).round(_DIGITS + 2)
    wrong = np.argwhere(~((values >= 0) & (values <= 1)))
    if len(wrong):
        mix, level, job = (int(index) for index in wrong[0])
        raise InputError(
            f"{place}: mix {mix + 1}, row {level + 1}, job {job + 1}: expected a number of 0 to 1, found "
            f"{values[mix, level, job]}"
        )
    return values


def _miso_bags(mps: _Reals, mig: _Reals) -> Table:
    """Rows of all mixes, in arrays: as objects, they would take a minute and gigabytes."""
    names, applications = _applications(mig)
    # (mix, level, job), in the order of the rows.
    values = np.concatenate([mps, mig], axis=1)
    kept = _without_orders(values)
    values, applications = values[kept], applications[kept]
    mixes, repeats = _mixes(applications)
    shape = values.shape
    levels = [*_ROWS["mps"], *_ROWS["mig"]]
    is_mps = np.arange(len(levels)) < len(_ROWS["mps"])
    digits = len(str(mixes.max() + 1))
    columns = {
        "bag": _texts([f"mix {mix:0{digits}}" for mix in range(1, mixes.max() + 2)], _along(mixes, 0, shape)),
        "device": _texts([_MISO_DEVICE], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "configuration": _texts(levels, _along(np.arange(len(levels)), 1, shape)),
        "repeat": pa.array(_along(repeats, 0, shape)),
        "position": pa.array(_along(np.arange(shape[2]), 2, shape)),
        "application": _texts(names, np.broadcast_to(applications[:, None, :], shape).ravel()),
        "size": _texts(["-"], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "fits": pa.array(np.ones(values.size, dtype=np.int64), mask=~_along(is_mps, 1, shape)),
        "slowdown": pa.array(values.ravel(), mask=(values == 0).ravel()),
    }
    schema = arrow_schema(BAGS, _MISO_NOTES["bags"])
    arrays = [columns.get(field.name, pa.nulls(values.size, field.type)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _applications(mig: _Reals) -> tuple[list[str], Numbers]:
    """Names of the jobs, and the number of each job of each mix among them, of shape ``(n, k)``."""
    columns = mig.round(_DIGITS).transpose(0, 2, 1)
    known, numbers = np.unique(columns.reshape(-1, 3), axis=0, return_inverse=True)
    is_dummy = (known == _DUMMY_MIG).all(axis=1)
    digits = max(2, len(str(len(known))))
    names = [
        DUMMY if dummy else f"job {n:0{digits}}"
        for dummy, n in zip(is_dummy, np.cumsum(~is_dummy), strict=True)
    ]
    return names, numbers.reshape(columns.shape[:2])


def _without_orders(values: _Reals) -> Numbers:
    """The first of all mixes that differ in the order of their jobs alone, in the order of the source."""
    columns = values.transpose(0, 2, 1)
    numbers = np.unique(columns.reshape(-1, columns.shape[2]), axis=0, return_inverse=True)[1]
    return np.sort(_first_of_same(np.sort(numbers.reshape(columns.shape[:2]), axis=1))[0])


def _mixes(applications: Numbers) -> tuple[Numbers, Numbers]:
    """For each measured mix, the number of its jobs' mix, by first appearance, and that of its repeat."""
    first, same = _first_of_same(np.sort(applications, axis=1))
    mixes = np.argsort(np.argsort(first))[same]
    order = np.argsort(mixes, kind="stable")
    starts = np.searchsorted(mixes[order], mixes[order])
    repeats = np.empty_like(mixes)
    repeats[order] = np.arange(len(mixes)) - starts
    return mixes, repeats


def _first_of_same(rows: Numbers) -> tuple[Numbers, Numbers]:
    """Where each distinct row is first, and for each row the number of its like."""
    _, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, same.ravel()


def _along(numbers: npt.NDArray[Any], axis: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """For each row of the table, what an axis of the values has there."""
    return np.broadcast_to(
        numbers.reshape([-1 if place == axis else 1 for place in range(len(shape))]), shape
    ).ravel()


def _texts(values: list[str], numbers: Numbers) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(values)).cast(pa.string())
