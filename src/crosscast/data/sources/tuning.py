"""Times of a kernel's configurations: caches of Kernel Tuner, and results in the community's T4 format.

Kernel Tuner: https://kerneltuner.github.io (cache files; times in milliseconds). T4: F. J. Willemsen et al.,
A methodology for comparing optimization algorithms for auto-tuning (2024); units are those of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.fields import is_finite
from crosscast.data.files import read_text
from crosscast.data.sources.kernel_times import dataset_on_catalogue, known_device, variant_of
from crosscast.data.sources.runs import ConfiguredRun
from crosscast.errors import InputError

_UNITS = {
    "s": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
}
_MOST_BYTES = 1 << 30
_FAILED = 1e19  # Kernel Tuner's older caches have 1e20 for the time of a configuration that failed


@dataclass(frozen=True)
class _Result:
    where: str  # Position in the file
    parameters: Mapping[str, object]
    time_s: float | None  # Median; `None` if the configuration failed
    runs: int | None


def import_tuning(path: str | Path, *, kernel: str | None = None, device: str | None = None) -> Dataset:
    """Make a dataset from a cache file of Kernel Tuner or results in the T4 format.

    It has a record for each variant that ran. The kernel is by default the file's, and without that the
    file's own name; the device, a key or name of the catalogue, by default the one that the file names.
    """
    path = Path(path)
    content = _read(path)
    cached, published = content.get("cache"), content.get("results")
    if isinstance(cached, dict):
        results = list(_of_cache(path, cached))
    elif isinstance(published, list):
        results = list(_of_t4(path, published))
    else:
        raise InputError.of(
            where=path,
            expected="a cache of Kernel Tuner ('cache') or T4 results ('results')",
            found="neither",
        )
    _refuse_duplicates(path, results)
    ran = [result for result in results if result.time_s is not None]
    if not ran:
        failed = f"{len(results)} that failed" if results else "none"
        raise InputError.of(where=path, expected="configurations with a time", found=failed)
    metadata = content.get("metadata")
    header = metadata if isinstance(metadata, dict) else {}
    named = str(device or content.get("device_name") or header.get("device_name") or "no name")
    key = known_device(named, str(path))
    name = str(kernel or content.get("kernel_name") or header.get("kernel_name") or path.name.split(".")[0])
    runs = [
        ConfiguredRun(
            *(name, name, variant_of(each.parameters), Configuration(key, {})),
            each.time_s or 0.0,
            runs=each.runs,
        )
        for each in ran
    ]
    notes = {
        "origin": f"Times of a tuning run, {path.name}.",
        "times": "Median of the repetitions where the file has them, else the time that it has.",
        "left out": f"{len(results) - len(ran)} of {len(results)} configurations failed.",
    }
    return dataset_on_catalogue(str(path), runs, {"records": notes})


def _read(path: Path) -> Mapping[str, object]:
    text = read_text(path, "results of tuning", _MOST_BYTES)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        # Kernel Tuner writes the closing brackets when a run ends; an interrupted cache lacks only these.
        try:
            content = json.loads(text.rstrip().rstrip(",") + "}}")
        except (ValueError, RecursionError):
            raise InputError.of(where=path, expected=f"JSON ({error})") from error
    if not isinstance(content, dict):
        raise InputError.of(where=path, expected="an object", found=type(content).__name__)
    return content


def _of_cache(path: Path, cached: Mapping[str, object]) -> Iterator[_Result]:
    for key, entry in cached.items():
        where = f"cache {key!r}"
        if not isinstance(entry, dict) or "time" not in entry:
            raise InputError.of(
                where=path, field=where, expected="an object with a time", found=repr(entry)[:60]
            )
        measured = ("time", "times", "GFLOP/s", "compile_time", "verification_time", "benchmark_time")
        parameters = {
            name: value
            for name, value in entry.items()
            if name not in measured and not isinstance(value, (list, dict)) and not _is_measured(name)
        }
        time, times = entry["time"], entry.get("times") or [entry["time"]]
        if (
            isinstance(time, (str, dict))
            or time is None
            or (isinstance(time, (int, float)) and time > _FAILED)
        ):
            yield _Result(where, parameters, None, None)
            continue
        if not isinstance(times, list) or not all(map(is_finite, times)):
            found = repr(times)[:60]
            raise InputError.of(where=path, field=f"{where}, time", expected="numbers", found=found)
        yield _Result(where, parameters, _seconds(path, where, median(times), "ms"), len(times))


def _is_measured(name: str) -> bool:
    return name.endswith(("_time", "timestamp")) or name.startswith(("nvml_", "framework"))


def _of_t4(path: Path, results: list[object]) -> Iterator[_Result]:
    for number, result in enumerate(results, 1):
        where = f"result {number}"
        if not isinstance(result, dict) or not isinstance(result.get("configuration"), dict):
            raise InputError.of(where=path, field=where, expected="a configuration", found=repr(result)[:60])
        parameters = result["configuration"]
        if result.get("invalidity", "correct") != "correct":
            yield _Result(where, parameters, None, None)
            continue
        listed, times = result.get("measurements"), result.get("times")
        measured = [
            each
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict) and each.get("name") == "time"
        ]
        if len(measured) != 1:
            raise InputError.of(
                where=path, field=where, expected="one measurement 'time'", found=len(measured)
            )
        value, unit = measured[0].get("value"), str(measured[0].get("unit"))
        runtimes = times.get("runtimes") if isinstance(times, dict) else None
        runs = len(runtimes) if isinstance(runtimes, list) else 0
        yield _Result(where, parameters, _seconds(path, where, value, unit), runs or None)


def _seconds(path: Path, where: str, value: object, unit: str) -> float:
    if unit not in _UNITS:
        raise InputError.of(
            where=path, field=f"{where}, unit", expected=f"one of {', '.join(_UNITS)}", found=unit or "none"
        )
    if not is_finite(value) or value <= 0:
        raise InputError.of(where=path, field=f"{where}, time", expected="a time above 0", found=repr(value))
    return float(value) * _UNITS[unit]


def _refuse_duplicates(path: Path, results: list[_Result]) -> None:
    first: dict[str, str] = {}
    for result in results:
        variant = variant_of(result.parameters)
        if first.setdefault(variant, result.where) != result.where:
            expected = f"another configuration than in {first[variant]}"
            raise InputError.of(where=path, field=result.where, expected=expected, found=f"{variant} again")
