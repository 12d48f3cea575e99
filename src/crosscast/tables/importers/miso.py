"""Mixes of seven training jobs on a GPU, as MISO has them: relative times under MPS, and on its parts."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.tables.array_file import DAMAGE, array_header
from crosscast.tables.arrow import Table, arrow_schema, table_of
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.mixes import DUMMY
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.importers.configured_runs import device_row, file_at
from crosscast.tables.keys import Numbers
from crosscast.tables.library import pa
from crosscast.tables.schema import json_text

__all__ = ["DUMMY", "import_miso"]

_NAME = "miso_mps_mig.npz"
_DEVICE = "a100"
_ROWS = {
    "mps": [json_text({"mps_percent": percent}) for percent in (100, 50, 14)],
    "mig": [json_text({"mig_gpcs": slices}) for slices in (7, 4, 3)],
}
_DUMMY_MIG = (0.8889, 1.0, 0.8889)
_DIGITS = 4
_MOST_MIXES = 100_000
_MOST_JOBS = 16
_Reals = npt.NDArray[np.float64]

_ORIGIN = {
    "origin": (
        "github.com/boringlee24/socc22-miso (MIT), of the paper MISO: Exploiting Multi-Instance GPU "
        "Capability on Multi-Tenant GPU Clusters (SoCC 2022): what its predictor learns from, mixes on an "
        "A100 of 40 GB."
    )
}
_NOTES = {
    "devices": _ORIGIN,
    "bags": {
        **_ORIGIN,
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

    Parameters
    ----------
    path
        The file, or a folder with ``miso_mps_mig.npz``: the arrays ``mps`` and ``mig`` of shape
        ``(n, 3, k)``, for ``n`` mixes of ``k`` jobs.

    Raises
    ------
    InputError
        If the file is missing, damaged, or holds other arrays, or a number is not in 0 to 1. The message
        names the array.
    """
    path = Path(path)
    file = file_at(path, _NAME)
    arrays = _read(file)
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = " and ".join(str(array.shape) for array in arrays.values())
        raise InputError(f"{file}: expected arrays mps and mig of one shape, found {shapes}")
    device = device_row(_DEVICE, _ORIGIN["origin"], name="A100-40GB", vendor="NVIDIA", type="gpu")
    return Dataset(
        str(path),
        devices=table_of(DEVICES, [device], _NOTES["devices"]),
        bags=_bags(arrays["mps"], arrays["mig"]),
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


def _bags(mps: _Reals, mig: _Reals) -> Table:
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
        "device": _texts([_DEVICE], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "configuration": _texts(levels, _along(np.arange(len(levels)), 1, shape)),
        "repeat": pa.array(_along(repeats, 0, shape)),
        "position": pa.array(_along(np.arange(shape[2]), 2, shape)),
        "application": _texts(names, np.broadcast_to(applications[:, None, :], shape).ravel()),
        "size": _texts(["-"], _along(np.zeros(1, dtype=np.int64), 0, shape)),
        "fits": pa.array(np.ones(values.size, dtype=np.int64), mask=~_along(is_mps, 1, shape)),
        "slowdown": pa.array(values.ravel(), mask=(values == 0).ravel()),
    }
    schema = arrow_schema(BAGS, _NOTES["bags"])
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
