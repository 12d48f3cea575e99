"""Published data on co-running: isolated runs and mixes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.schema import DEVICES, ISOLATED_RUNS, MIXES, json_text
from crosscast.data.sources.runs import device_row
from crosscast.data.sources.source import File, Source, SourceContents, SourceFile, required
from crosscast.data.table import table_of
from crosscast.errors import InputError

_Job = tuple[str, str]
"""An application at a size, as a source names both."""


def _mix_rows(
    jobs: Sequence[_Job], slowdowns: Sequence[float | None], **cells: object
) -> list[dict[str, object]]:
    """Make the rows of a mix, named after its jobs."""
    shared = {"mix": " + ".join(map(" ".join, jobs)), "configuration": "{}", "repeat": 0, **cells}
    return [
        {**shared, "position": position, "application": application, "size": size, "slowdown": slowdown}
        for position, ((application, size), slowdown) in enumerate(zip(jobs, slowdowns, strict=True))
    ]


def _corun_dataset(
    contents: SourceContents,
    devices: Iterable[Mapping[str, object]],
    isolated_runs: Iterable[Mapping[str, object]],
    mixes: Iterable[Mapping[str, object]],
) -> Dataset:
    return Dataset(
        contents.label,
        devices=table_of(DEVICES, devices, contents.notes["devices"]),
        isolated_runs=table_of(ISOLATED_RUNS, isolated_runs, contents.notes["isolated_runs"]),
        mixes=table_of(MIXES, mixes, contents.notes["mixes"]),
    )


GAVEL_SPEEDS = "simulation_throughputs"
"""The one of Gavel's two files that is used: the other, of its physical cluster, contradicts itself."""
GAVEL_SPREAD = "_unconsolidated"
"""Suffix of the names of GPUs that are spread over servers."""
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


def _gavel_pairs(contents: SourceContents) -> Dataset:
    """Make isolated runs and pairs of Gavel."""
    (alone,), (pairs,) = contents.files[GAVEL_ALONE], contents.files[_PAIRS]
    speeds = {
        (row.text("gpu"), row.text("job"), row.integer("gpus")): float(row.number("steps_per_s"))
        for row in alone.rows
        if row.text("file") == GAVEL_SPEEDS
    }
    isolated_runs, mixes = list(_isolated_runs(speeds)), list(_mixes(pairs, speeds))
    keys = sorted({str(row["device"]) for row in (*isolated_runs, *mixes)})
    origin = contents.notes["devices"]["origin"]
    return _corun_dataset(contents, (_device(key, origin) for key in keys), isolated_runs, mixes)


def _device(key: str, origin: str) -> dict[str, object]:
    base = key.removesuffix(GAVEL_SPREAD)
    name = _NAMES.get(base, base)
    return device_row(key, origin, name=name if key == base else f"{name}, spread", type="gpu")


def _job(name: str) -> _Job:
    match = _JOB.fullmatch(name)
    return (match["application"], match["size"]) if match else (name, "-")


def _settings(gpus: int) -> str:
    return json_text({} if gpus == 1 else {"gpus": gpus})


def _isolated_runs(speeds: Mapping[_Alone, float]) -> Iterator[dict[str, object]]:
    for (gpu, name, gpus), speed in speeds.items():
        if _is_copy(gpu, speed, speeds.get((gpu.removesuffix(GAVEL_SPREAD), name, gpus))):
            continue
        (application, size), batch = _job(name), _JOB.fullmatch(name)
        known = {f"{key}_steps_per_s": speeds.get((key, name, gpus), 0.0) for key in _NAMES}
        features = {feature: value for feature, value in known.items() if value > 0}
        yield {
            "application": application,
            "size": size,
            "device": gpu,
            "configuration": _settings(gpus),
            "runs": 1,
            "time_s": 1 / speed if speed > 0 else None,
            "features": features | ({"batch_size": float(batch["batch"])} if batch else {}),
            "failure": None if speed > 0 else "no steps in the source",
        }


def _is_copy(gpu: str, spread: object, consolidated: object) -> bool:
    """Whether the numbers of spread GPUs repeat those of GPUs in one server."""
    return gpu.endswith(GAVEL_SPREAD) and spread == consolidated


def _mixes(file: SourceFile, speeds: Mapping[_Alone, float]) -> Iterator[dict[str, object]]:
    rows = {n: row for n, row in enumerate(file.rows, start=1) if row.text("file") == GAVEL_SPEEDS}
    if not rows:
        raise InputError.of(where=file.path, expected=f"rows whose file is {GAVEL_SPEEDS}", found="none")
    for number, row in rows.items():
        if row.integer("gpus2") != row.integer("gpus1"):
            raise file.refused(number, f"{row['gpus1']} as gpus1", row.integer("gpus2"), "gpus2")
    pairs = {
        (row.text("gpu"), row.text("job1"), row.text("job2"), row.integer("gpus1")): (
            row.number("steps_per_s1"),
            row.number("steps_per_s2"),
        )
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
        # In the order of the first pair, as the mix would otherwise have two names.
        again = mirrored in done and names[0] != names[1]
        order = (1, 0) if again else (0, 1)
        yield from _mix_rows(
            [_job(names[index]) for index in order],
            [alone[index] / together[index] if fits else None for index in order],
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


def _lucid(contents: SourceContents) -> Dataset:
    """Make isolated runs and pairs of Lucid."""
    (alone,), (pairs,) = contents.files[_SINGLE], contents.files[_PACKED]
    datasets = sorted({row.text("dataset") for row in alone.rows})
    mixes = (
        row
        for pair in pairs.rows
        for row in _mix_rows(
            [_lucid_job(pair, "1"), _lucid_job(pair, "2")],
            [1 / pair.number("speed1"), 1 / pair.number("speed2")],
            device=_GPU,
            fits=1,
        )
    )
    return _corun_dataset(
        contents, contents.devices.values(), [_isolated_run(row, datasets) for row in alone.rows], mixes
    )


def _lucid_job(row: TableRow, member: str = "") -> _Job:
    words = [row.text(f"dataset{member}"), f"b{row[f'batchsize{member}']}"]
    if row[f"amp{member}"]:
        words.append("amp")
    gpus = row.get(f"gpu_num{member}", 1)
    if gpus != 1:
        words.append(f"{gpus} GPUs")
    return row.text(f"model{member}"), " ".join(words)


def _isolated_run(row: TableRow, datasets: list[str]) -> dict[str, object]:
    application, size = _lucid_job(row)
    return {
        "application": application,
        "size": size,
        "device": _GPU,
        "configuration": "{}",
        "runs": 1,
        "time_s": 1 / row.number("speed"),
        "memory_bytes": round(row.number("gmem") * _MEBIBYTE),
        "features": {
            "batch_size": float(row.integer("batchsize")),
            "amp": float(row.integer("amp")),
            **{feature: row.number(name) / 100 for name, feature in _SHARES.items()},
            **{f"dataset_{_word(name)}": float(name == row["dataset"]) for name in datasets},
        },
    }


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


LUCID = Source("lucid", (_SINGLE, _PACKED), _lucid)
