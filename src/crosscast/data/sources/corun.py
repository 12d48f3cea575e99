"""Published co-running: isolated runs and mixes of others' files, put into a dataset."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.data.array_file import DAMAGE, array_header
from crosscast.data.corun import DUMMY
from crosscast.data.dataset import Dataset
from crosscast.data.library import pa
from crosscast.data.schema import BAGS, DEVICES, SOLOS, json_text
from crosscast.data.sources.runs import device_row
from crosscast.data.sources.source import File, Found, FoundFile, Source, required
from crosscast.data.table import Table, arrow_schema, table_of
from crosscast.errors import InputError


@dataclass(frozen=True)
class Job:
    """An application at a size, as a source names it."""

    application: str
    size: str

    @property
    def name(self) -> str:
        """Both, for the names of mixes."""
        return f"{self.application} {self.size}"


def bag_rows(jobs: Sequence[Job], slowdowns: Sequence[float | None], **cells: Any) -> list[dict[str, Any]]:
    """Rows of a mix that is named after its jobs."""
    shared = {"bag": " + ".join(job.name for job in jobs), "configuration": "{}", "repeat": 0, **cells}
    return [
        {**shared, "position": place, "application": job.application, "size": job.size, "slowdown": slowdown}
        for place, (job, slowdown) in enumerate(zip(jobs, slowdowns, strict=True))
    ]


def _corun_dataset(
    found: Found,
    devices: Iterable[Mapping[str, Any]],
    solos: Iterable[Mapping[str, Any]],
    bags: Iterable[Mapping[str, Any]],
) -> Dataset:
    return Dataset(
        found.label,
        devices=table_of(DEVICES, devices, found.notes["devices"]),
        solos=table_of(SOLOS, solos, found.notes["solos"]),
        bags=table_of(BAGS, bags, found.notes["bags"]),
    )


GAVEL_SPEEDS = "simulation_throughputs"
"""Of the two files that Gavel has: the other, of its physical cluster, contradicts itself."""
GAVEL_SPREAD = "_unconsolidated"
"""End of the name of GPUs that are not in one server."""
_NAMES = {"k80": "Tesla K80", "p100": "Tesla P100", "v100": "Tesla V100"}
_JOB = re.compile(r"(?P<application>.+) \((?P<size>batch size (?P<batch>[0-9]{1,9}))\)")

GAVEL_ALONE = File(
    ("gavel_standalone.csv",),
    (
        *required("text", "file", "gpu", "job"),
        *required("integer", "gpus", ge=1),
        *required("real", "steps_per_s", ge=0),
    ),
    key=("file", "gpu", "job", "gpus"),
)
_PAIRS = File(
    ("gavel_pairs.csv.gz", "gavel_pairs.csv"),
    (
        *required("text", "file", "gpu", "job1", "job2"),
        *required("integer", "gpus1", "gpus2", ge=1),
        *required("real", "steps_per_s1", "steps_per_s2", ge=0),
    ),
    key=("file", "gpu", "job1", "gpus1", "job2", "gpus2"),
)

_Alone = tuple[str, str, int]
"""GPU, job, and number of GPUs."""


def _gavel_pairs(found: Found) -> Dataset:
    """Jobs alone, and pairs."""
    (alone,), (pairs,) = found.files[GAVEL_ALONE], found.files[_PAIRS]
    speeds = {
        (row["gpu"], row["job"], row["gpus"]): float(row["steps_per_s"])
        for row in alone.rows
        if row["file"] == GAVEL_SPEEDS
    }
    solos, bags = list(_solos(speeds)), list(_bags(pairs, speeds))
    keys = sorted({row["device"] for row in (*solos, *bags)})
    origin = found.notes["devices"]["origin"]
    return _corun_dataset(found, (_device(key, origin) for key in keys), solos, bags)


def _device(key: str, origin: str) -> dict[str, Any]:
    base = key.removesuffix(GAVEL_SPREAD)
    name = _NAMES.get(base, base)
    return device_row(key, origin, name=name if key == base else f"{name}, spread", type="gpu")


def _job(name: str) -> Job:
    found = _JOB.fullmatch(name)
    return Job(found["application"], found["size"]) if found else Job(name, "-")


def _settings(gpus: int) -> str:
    return json_text({} if gpus == 1 else {"gpus": gpus})


def _solos(speeds: Mapping[_Alone, float]) -> Iterator[dict[str, Any]]:
    for (gpu, name, gpus), speed in speeds.items():
        if _is_copy(gpu, speed, speeds.get((gpu.removesuffix(GAVEL_SPREAD), name, gpus))):
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
    return gpu.endswith(GAVEL_SPREAD) and found == there


def _bags(file: FoundFile, speeds: Mapping[_Alone, float]) -> Iterator[dict[str, Any]]:
    rows = {n: row for n, row in enumerate(file.rows, start=1) if row["file"] == GAVEL_SPEEDS}
    if not rows:
        raise InputError.of(where=file.path, expected=f"rows whose file is {GAVEL_SPEEDS}", found="none")
    for number, row in rows.items():
        if row["gpus2"] != row["gpus1"]:
            raise file.refused(number, f"{row['gpus1']} as gpus1", row["gpus2"], "gpus2")
    pairs = {
        (row["gpu"], row["job1"], row["job2"], row["gpus1"]): (row["steps_per_s1"], row["steps_per_s2"])
        for row in rows.values()
    }
    done = set()
    for number, (key, together) in zip(rows, pairs.items(), strict=True):
        gpu, *names, gpus = key
        if gpus > 1 and not any(together):
            continue
        if _is_copy(gpu, together, pairs.get((gpu.removesuffix(GAVEL_SPREAD), names[0], names[1], gpus))):
            continue
        mirrored = (gpu, names[1], names[0], gpus)
        if mirrored in done and pairs[mirrored] == together[::-1]:
            continue
        done.add(key)
        alone = [speeds.get((gpu, name, gpus), 0.0) for name in names]
        for name, speed in zip(names, alone, strict=True):
            if speed <= 0:
                expected = f"jobs with a speed in {GAVEL_ALONE.names[0]} on the same GPUs"
                raise file.refused(number, expected, f"{name!r} on {gpus} {gpu}")
        fits = all(together)
        # In the order of the first, else the same mix would have two names.
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


GAVEL_PAIRS = Source("gavel_pairs", (GAVEL_ALONE, _PAIRS), _gavel_pairs)

_GPU = "lucid-gpu"
_SHARES = {"gpu_util": "utilisation", "gmem_util": "memory_utilisation"}
_MEBIBYTE = 1 << 20

_SINGLE_KEY = ("model", "dataset", "batchsize", "amp")
_SINGLE = File(
    ("lucid_single.csv",),
    (
        *required("text", "model", "dataset"),
        *required("integer", "batchsize", ge=1),
        *required("integer", "amp", ge=0, le=1),
        *required("real", "speed", gt=0),
        *required("real", *_SHARES, ge=0, le=100),
        *required("real", "gmem", ge=0),
    ),
    key=_SINGLE_KEY,
)
_PACKED = File(
    ("lucid_pairs.csv",),
    tuple(
        replace(column, name=f"{column.name}{member}")
        for member in (1, 2)
        for column in (*_SINGLE.columns[:5], *required("integer", "gpu_num", ge=1))
    ),
    key=tuple(f"{name}{member}" for member in (1, 2) for name in (*_SINGLE_KEY, "gpu_num")),
)


def _lucid(found: Found) -> Dataset:
    """Jobs alone, and pairs."""
    (alone,), (pairs,) = found.files[_SINGLE], found.files[_PACKED]
    datasets = sorted({row["dataset"] for row in alone.rows})
    bags = (
        row
        for pair in pairs.rows
        for row in bag_rows(
            [_lucid_job(pair, "1"), _lucid_job(pair, "2")],
            [1 / pair["speed1"], 1 / pair["speed2"]],
            device=_GPU,
            fits=1,
        )
    )
    return _corun_dataset(found, found.devices.values(), [_solo(row, datasets) for row in alone.rows], bags)


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
        "device": _GPU,
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


LUCID = Source("lucid", (_SINGLE, _PACKED), _lucid)

_A100 = "a100"
_ROWS = {
    "mps": [json_text({"mps_percent": percent}) for percent in (100, 50, 14)],
    "mig": [json_text({"mig_gpcs": slices}) for slices in (7, 4, 3)],
}
_DUMMY_MIG = (0.8889, 1.0, 0.8889)
_DIGITS = 4
_MOST_MIXES = 100_000
_MOST_JOBS = 16


def _miso(found: Found) -> Dataset:
    """Mixes, each at three levels of MPS and on three sizes of parts of the GPU.

    Mixes that differ in the order of their jobs alone are one, and mixes of the same jobs with other numbers
    are repeats of a mix.
    """
    file = found.only().path
    arrays = _read(file)
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = " and ".join(str(array.shape) for array in arrays.values())
        raise InputError(f"{file}: expected arrays mps and mig of one shape, found {shapes}")
    return Dataset(
        found.label,
        devices=table_of(DEVICES, found.devices.values(), found.notes["devices"]),
        bags=_miso_bags(arrays["mps"], arrays["mig"], found.notes["bags"]),
    )


MISO = Source("miso", (File(("miso_mps_mig.npz",), ()),), _miso)


def _read(file: Path) -> dict[str, Reals]:
    try:
        with zipfile.ZipFile(file) as archive:
            return {name: _array(archive, name, f"{file}: array {name!r}") for name in _ROWS}
    except FileNotFoundError:
        raise InputError(f"{file}: cannot read the mixes (no such file)") from None
    except DAMAGE as error:
        raise InputError(f"{file}: expected an archive with the arrays mps and mig ({error})") from error


def _array(archive: zipfile.ZipFile, name: str, place: str) -> Reals:
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
    values: Reals = found.astype(np.float64).round(_DIGITS + 2)
    wrong = np.argwhere(~((values >= 0) & (values <= 1)))
    if len(wrong):
        mix, level, job = (int(index) for index in wrong[0])
        raise InputError(
            f"{place}: mix {mix + 1}, row {level + 1}, job {job + 1}: expected a number of 0 to 1, found "
            f"{values[mix, level, job]}"
        )
    return values


def _miso_bags(mps: Reals, mig: Reals, notes: Mapping[str, str]) -> Table:
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
        "device": _texts([_A100], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "configuration": _texts(levels, _along(np.arange(len(levels)), 1, shape)),
        "repeat": pa.array(_along(repeats, 0, shape)),
        "position": pa.array(_along(np.arange(shape[2]), 2, shape)),
        "application": _texts(names, np.broadcast_to(applications[:, None, :], shape).ravel()),
        "size": _texts(["-"], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "fits": pa.array(np.ones(values.size, dtype=np.int64), mask=~_along(is_mps, 1, shape)),
        "slowdown": pa.array(values.ravel(), mask=(values == 0).ravel()),
    }
    schema = arrow_schema(BAGS, notes)
    arrays = [columns.get(field.name, pa.nulls(values.size, field.type)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _applications(mig: Reals) -> tuple[list[str], Integers]:
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


def _without_orders(values: Reals) -> Integers:
    """The first of all mixes that differ in the order of their jobs alone, in the order of the source."""
    columns = values.transpose(0, 2, 1)
    numbers = np.unique(columns.reshape(-1, columns.shape[2]), axis=0, return_inverse=True)[1]
    return np.sort(_first_of_same(np.sort(numbers.reshape(columns.shape[:2]), axis=1))[0])


def _mixes(applications: Integers) -> tuple[Integers, Integers]:
    """For each measured mix, the number of its jobs' mix, by first appearance, and that of its repeat."""
    first, same = _first_of_same(np.sort(applications, axis=1))
    mixes = np.argsort(np.argsort(first))[same]
    order = np.argsort(mixes, kind="stable")
    starts = np.searchsorted(mixes[order], mixes[order])
    repeats = np.empty_like(mixes)
    repeats[order] = np.arange(len(mixes)) - starts
    return mixes, repeats


def _first_of_same(rows: Integers) -> tuple[Integers, Integers]:
    """Where each distinct row is first, and for each row the number of its like."""
    _, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, same.ravel()


def _along(numbers: npt.NDArray[Any], axis: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """For each row of the table, what an axis of the values has there."""
    return np.broadcast_to(
        numbers.reshape([-1 if place == axis else 1 for place in range(len(shape))]), shape
    ).ravel()


def _texts(values: list[str], numbers: Integers) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(values)).cast(pa.string())
