"""Make the tables on which a model of time is trained: profiles, times, and which profiles a time is of.

``python -m benchmarks.training_profiles DATA OUT [--sources NAME,...] [--kernels FOLDER]`` reads the public
data below DATA (docs/importing.md says where each is from; folders aiwc2018, opendwarfs/launches,
kernel_tuner, babelstream and elementwise), profiles each launch, and writes OUT/profiles.parquet,
OUT/times.parquet and OUT/parts.parquet. Kernels of Kernel Tuner are those of `--kernels`, by default
DATA/kernel_tuner/launches/src; all others are written here, or come with the launch files.

DATA/suite has datasets of ``crosscast dataset build``, each a folder with one device and the file of it that
``crosscast calibrate --minutes 0`` wrote, ``device.toml``; these devices are in OUT/devices.json.

A launch that would run longer than `--limit` seconds is run with some of its work-groups, and its counts
are extended (crosscast.characterization.sampling). Profiles are kept in OUT/profiles.jsonl as they
are made: a run
that was interrupted goes on where it was, unless what makes profiles has changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

import crosscast
from benchmarks.training_launches import (
    REPRESENTATIVES,
    STREAM_GROUPS,
    TUNED_SOURCES,
    Characterize,
    Job,
    Key,
    Part,
    covers,
    elementwise_job,
    facts_of,
    region_jobs,
    strata,
    stream_job,
    tuned_job,
)
from benchmarks.training_regions import regions
from crosscast.characterization.run import Options, characterize_launch
from crosscast.commands.output import StatusLine, time_left
from crosscast.data.dataset import read_dataset
from crosscast.data.files import atomic_file
from crosscast.data.profiles import LOOSE_PROFILES, to_row
from crosscast.data.schema import Schema
from crosscast.data.sources import import_source
from crosscast.data.table import save, table_of
from crosscast.data.times import PARTS, TIMES
from crosscast.data.views import KERNEL_AT_A_SIZE, join
from crosscast.device import Device
from crosscast.devices.device_files import read_device
from crosscast.errors import CrosscastError, InputError
from crosscast.kernel import Launch
from crosscast.prediction.time.datasets import launch_tables_of
from crosscast.profile import Profile

SOURCES = ("babelstream", "elementwise", "suite", "aiwc2018", "kernel_tuner")
_FIRST_GUESS_S = {"convolution": 30.0, "gemm": 8.0, "stream": 0.2, "elementwise": 0.2, "layer_norm": 0.3}
_OTHER_GUESS_S = 0.4
"""Seconds of a profile by application before any of it is made, as measured on two cores."""

Time = dict[str, Any]
Cell = tuple[str, str, str]


@dataclass
class Plan:
    """What to make of a source."""

    source: str
    jobs: list[Job] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    parts: dict[Cell, list[Part]] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)  # That no catalogue has

    def add(self, job: Job) -> None:
        """Add a job whose one profile is its cell's."""
        (key,) = job.keys
        if key[:3] not in self.parts:
            self.jobs.append(job)
            self.parts[key[:3]] = [Part(key, 1)]


def main() -> int:
    """Make the tables, and return the exit status."""
    options = _options()
    try:
        _make(options)
    except CrosscastError as error:
        print(f"training_profiles: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"\ninterrupted: the same command goes on, as {options.out} keeps what is made", file=sys.stderr
        )
        return 130
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_profiles", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the public data")
    parser.add_argument("out", type=Path, help="folder for the tables")
    parser.add_argument("--sources", default=",".join(SOURCES), help="those to read (default: all)")
    parser.add_argument("--kernels", type=Path, help="folder with the kernels of Kernel Tuner")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds that a launch may run (default: 3)")
    parser.add_argument(
        "--sample", type=int, default=100, help="configurations of a tuned kernel (default: 100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of that sample (default: 0)")
    parser.add_argument("--minutes", type=float, help="stop after so long, with tables of what there is")
    parser.add_argument("--most", type=int, help="jobs of each source at most, for a trial")
    return parser.parse_args()


def _make(options: argparse.Namespace) -> None:
    names = options.sources.split(",")
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InputError.of(where="--sources", expected=f"some of {', '.join(SOURCES)}", found=unknown[0])
    plans = [_PLANS[name](options) for name in names]
    options.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.out / "profiles.jsonl")
    made, failed = _characterize(plans, journal, options.most, options.minutes)
    kept = {key[:3] for key in made}
    parts = [
        {
            **dict(zip(("application", "kernel", "launch"), cell, strict=True)),
            "part": number,
            **dict(zip(("profile_kernel", "profile_size", "profile_invocation"), part.key[1:], strict=True)),
            "launches": part.launches,
        }
        for plan in plans
        for cell, found in plan.parts.items()
        if all(part.key in made for part in found)
        for number, part in enumerate(found)
    ]
    there = {(row["application"], row["kernel"], row["launch"]) for row in parts}
    times = [row for plan in plans for row in plan.times]
    for row in times:
        cell = (row["application"], row["kernel"], row["launch"])
        if cell not in there and not row.get("left_out"):
            row["left_out"] = failed.get(cell, "its launch was not profiled")
    _write(LOOSE_PROFILES, made.values(), options.out / "profiles.parquet")
    _write(PARTS, parts, options.out / "parts.parquet")
    _write(TIMES, times, options.out / "times.parquet")
    with atomic_file(options.out / "devices.json") as temporary:
        temporary.write_bytes(msgspec.json.encode([device for plan in plans for device in plan.devices]))
    _report(times, len(made), len(kept))


# --- What there is to make


def _aiwc2018(options: argparse.Namespace) -> Plan:
    plan = Plan("aiwc2018")
    plan.jobs, plan.parts = region_jobs(options.data / "opendwarfs" / "launches", options.limit)
    found: dict[tuple[str, ...], list[float]] = {}
    records = import_source("aiwc2018", options.data / "aiwc2018").records
    for row in records.select(["application", "kernel", "size", "device", "time_s"]).to_pylist():
        cell = (row["application"], row["kernel"], row["size"], row["device"])
        found.setdefault(cell, []).append(row["time_s"][0])
    for (application, kernel, size, device), seconds in found.items():
        region = regions()[application, kernel, size]
        plan.times.append(
            _time("aiwc2018", (application, kernel, size), device, median(seconds), "median of means")
            | {
                "timed": f"region {region.region}, from before the enqueue to after clFinish",
                "total": int(region.total),
                "runs": len(seconds),
                "note": region.note or None,
                "left_out": region.left_out or None,
            }
        )
    return plan


def _time(source: str, cell: Cell, device: str, time_s: float, statistic: str) -> Time:
    application, kernel, launch = cell
    place = {"application": application, "kernel": kernel, "launch": launch, "device": device}
    fixed = {"configuration": {}, "total": 0, "timed": "the kernel on the device"}
    return {"source": source, **place, **fixed, "time_s": time_s, "statistic": statistic}


def _kernel_tuner(options: argparse.Namespace) -> Plan:
    plan = Plan("kernel_tuner")
    folder = options.kernels or options.data / "kernel_tuner" / "launches" / "src"
    for file, _ in TUNED_SOURCES.values():
        if not (folder / file).is_file():
            raise InputError.of(
                where=folder / file, expected="a kernel of Kernel Tuner (--kernels)", found="no file"
            )
    dataset = import_source("kernel_tuner", options.data / "kernel_tuner")
    runs = {_place(row): row["runs"] for row in dataset.sessions.to_pylist()}
    rows = dataset.records.to_pylist()
    for kernel in TUNED_SOURCES:
        mine = [row for row in rows if row["kernel"] == kernel]
        chosen = spread(_common(mine), options.sample, options.seed)
        for row in mine:
            if row["size"] in chosen:
                cell = (row["application"], kernel, row["size"])
                time_row = _time("kernel_tuner", cell, row["device"], row["time_s"][0], "median")
                plan.times.append(time_row | {"runs": runs[_place(row)]})
        for variant in chosen:
            plan.add(tuned_job(folder, mine[0]["application"], kernel, variant, options.limit))
    # Unrolled convolutions take most of a minute to compile, so that gemm comes first; and however many are
    # made before the time is over, they are spread over the space.
    rng = np.random.default_rng(options.seed)
    shuffled = [plan.jobs[int(k)] for k in rng.permutation(len(plan.jobs))]
    plan.jobs = sorted(shuffled, key=lambda job: job.keys[0][0] == "convolution")
    return plan


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("application", "size", "device", "configuration", "repeat"))


def _common(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Configurations that ran on all devices."""
    by_device: dict[str, set[str]] = {}
    for row in rows:
        by_device.setdefault(row["device"], set()).add(row["size"])
    return sorted(set.intersection(*by_device.values()))


def spread(variants: Sequence[str], count: int, seed: int) -> list[str]:
    """Choose some of many configurations: one of each of `count` equal parts of the space in its order.

    In the order of the parameters' values, neighbours are alike, so that equal parts of it cover the space as
    often as configurations do.
    """

    def values(variant: str) -> list[int]:
        return [int(part.rpartition("=")[2]) for part in variant.split(";")]

    ordered = sorted(variants, key=values)
    count = min(count, len(ordered))
    rng = np.random.default_rng(seed)
    edges = [len(ordered) * k // count for k in range(count + 1)]
    return [ordered[int(rng.integers(low, high))] for low, high in pairwise(edges)]


def _babelstream(options: argparse.Namespace) -> Plan:
    plan = Plan("babelstream")
    dataset = import_source("babelstream", options.data / "babelstream")
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in dataset.records.to_pylist():
        found.setdefault((row["kernel"], row["size"], row["device"], row["configuration"]), []).append(row)
    runs = {_place(row): row["runs"] for row in dataset.sessions.to_pylist()}
    for (kernel, size, device, configuration), rows in found.items():
        model = json.loads(configuration)["model"]
        group = STREAM_GROUPS.get(model)
        launch = f"{size} group={group or 'unknown'}"
        counts = {runs[_place(row)] for row in rows}
        plan.times.append(
            _time(
                "babelstream",
                ("stream", kernel, launch),
                device,
                min(row["time_s"][0] for row in rows),
                "least",
            )
            | {
                "configuration": json.loads(configuration),
                "runs": max((n for n in counts if n is not None), default=None),
                "timed": "from before the launch to after its end, by the host's clock",
                "left_out": None if group else f"{model} makes its launches itself: they are not known",
            }
        )
        if group:
            plan.add(stream_job(kernel, launch, options.limit))
    return plan


def _elementwise(options: argparse.Namespace) -> Plan:
    plan = Plan("elementwise")
    found: dict[tuple[str, ...], list[float]] = {}
    for row in import_source("elementwise", options.data / "elementwise").records.to_pylist():
        cell = (row["application"], row["kernel"], row["size"], row["device"])
        found.setdefault(cell, []).append(row["time_s"][0])
    for (application, kernel, size, device), seconds in found.items():
        known = kernel == "layer_norm" or covers(size)
        row = _time("elementwise", (application, kernel, size), device, median(seconds), "mean")
        plan.times.append(row | {"left_out": None if known else "its grid is not that of one launch"})
        if known:
            plan.add(elementwise_job(application, kernel, size, options.limit))
    return plan


def _suite(options: argparse.Namespace) -> Plan:
    plan = Plan("suite")
    for folder in sorted(each.parent for each in (options.data / "suite").glob("*/device.toml")):
        device = read_device(folder / "device.toml")
        dataset = read_dataset(folder)
        tables = launch_tables_of(dataset, device)
        plan.devices.append(device)
        for (application, kernel, size), parts in tables.parts.items():
            cell = (application, kernel, _of_suite(size))
            chosen = [
                (tables.profiles[parts[middle][0]], count)
                for middle, count in strata(len(parts), REPRESENTATIVES)
            ]
            plan.parts[cell] = [Part((*cell, profile.invocation or 0), count) for profile, count in chosen]
            keys = tuple(part.key for part in plan.parts[cell])
            plan.jobs.append(Job(keys, partial(_made, [profile for profile, _ in chosen])))
        # The least, as rates are the best of their runs, too.
        for row in join(dataset).select([*KERNEL_AT_A_SIZE, "time_min_s"]).to_pylist():
            cell = (row["application"], row["kernel"], _of_suite(row["size"]))
            plan.times.append(_time("suite", cell, device.key, row["time_min_s"], "least"))
    return plan


def _of_suite(size: str) -> str:
    """Size of a profile of the suite, as applications of 2018 have the same names and sizes."""
    return f"suite {size}"


def _made(profiles: list[Profile], _: Characterize) -> list[Profile]:
    return profiles


_PLANS = {
    "suite": _suite,
    "aiwc2018": _aiwc2018,
    "kernel_tuner": _kernel_tuner,
    "babelstream": _babelstream,
    "elementwise": _elementwise,
}


# --- Making it


class Journal:
    """Rows of profiles in a file, one a line, as they are made."""

    def __init__(self, path: Path) -> None:
        """Read those that the same code made; a last line that was cut off is not one."""
        self.path = path
        self.rows: dict[Key, dict[str, Any]] = {}
        mark = json.dumps({"made_by": _code_hash()})
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if lines[:1] == [mark]:
            for line in lines[1:]:
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    break
                self.rows[row["application"], row["kernel"], row["size"], row["invocation"]] = row
        elif lines:
            print(f"{path}: made by another version of the package, and made again", file=sys.stderr)
        kept = [mark, *(json.dumps(row) for row in self.rows.values())]
        with atomic_file(path) as temporary:
            temporary.write_text("\n".join(kept) + "\n", encoding="utf-8")

    def add(self, profiles: Iterable[Profile]) -> None:
        """Keep profiles, in the file too."""
        rows: list[dict[str, Any]] = [to_row(profile) for profile in profiles]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        for row in rows:
            self.rows[row["application"], row["kernel"], row["size"], row["invocation"]] = row


def _code_hash() -> str:
    """Hash of what makes profiles: the rooms that count, and the kernels and rules here."""
    here = Path(__file__).parent
    folders = [(Path(crosscast.__file__).parent / "characterization", "**/*")]
    folders += [
        (here, "training_kernels/*.cl"),
        (here, "training_launches.py"),
    ]
    digest = hashlib.sha256()
    for folder, pattern in folders:
        for path in sorted(folder.glob(pattern)):
            if path.suffix in (".py", ".c", ".h", ".ll", ".cl", ".cuh"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _characterize(
    plans: Sequence[Plan], journal: Journal, most: int | None, minutes: float | None
) -> tuple[dict[Key, dict[str, Any]], dict[Cell, str]]:
    """Rows of all profiles by key, and why a cell has none."""
    todo = []
    for plan in plans:
        wanted = plan.jobs if most is None else plan.jobs[:: max(1, len(plan.jobs) // most)][:most]
        todo += [(plan, job) for job in wanted if not all(key in journal.rows for key in job.keys)]
    spent: dict[str, list[float]] = {}
    failed: dict[Cell, str] = {}
    count, total = sum(len(job.keys) for _, job in todo), _seconds_of(todo, spent)
    print(f"{count} profiles to make, about {total / 60:.0f} min", file=sys.stderr)
    began = time.perf_counter()
    with StatusLine() as line:
        for number, (plan, job) in enumerate(todo):
            start = time.perf_counter()
            if minutes is not None and start - began > 60 * minutes:
                line.close()
                print(f"stopped after {minutes:g} min: the same command goes on", file=sys.stderr)
                break
            try:
                profiles = job.make(_run)
            except CrosscastError as error:
                reason = str(error).splitlines()[0]
                failed |= {
                    cell: f"no profile: {reason}"
                    for cell, parts in plan.parts.items()
                    if parts[0].key in job.keys
                }
                line.close()
                print(f"{' '.join(map(str, job.keys[0]))}: {reason}", file=sys.stderr)
                continue
            journal.add(facts_of(profile, key) for profile, key in zip(profiles, job.keys, strict=True))
            seconds = (time.perf_counter() - start) / len(job.keys)
            spent.setdefault(job.keys[0][0], []).append(seconds)
            left_s = _seconds_of(todo[number + 1 :], spent)
            state = f"{number + 1} of {len(todo)}, {plan.source}, {time_left(left_s)}"
            line.show(line.elapsed_s, partial(str, state))
    for application, taken in sorted(spent.items()):
        told = f"{application}: {len(taken)} jobs, {sum(taken) / len(taken):.2f} s a profile"
        print(f"{told} (median {median(taken):.2f}, most {max(taken):.1f})", file=sys.stderr)
    wanted_keys = {key for plan in plans for job in plan.jobs for key in job.keys}
    return {key: row for key, row in journal.rows.items() if key in wanted_keys}, failed


def _seconds_of(todo: Sequence[tuple[Plan, Job]], spent: Mapping[str, Sequence[float]]) -> float:
    """Seconds that jobs will take, by those of their application that are made."""
    total = 0.0
    for _, job in todo:
        application = job.keys[0][0]
        own = spent.get(application)
        each = sum(own) / len(own) if own else _FIRST_GUESS_S.get(application, _OTHER_GUESS_S)
        total += each * len(job.keys)
    return total


def _run(launch: Launch) -> Profile:
    return characterize_launch(launch, options=Options(optimize=True))


def _write(schema: Schema, rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    with atomic_file(path) as temporary:
        save(table_of(schema, rows), temporary)


def _report(times: Sequence[Time], profiles: int, cells: int) -> None:
    counted: dict[tuple[str, str], list[int]] = {}
    for row in times:
        count = counted.setdefault((row["source"], row["device"]), [0, 0])
        count[bool(row.get("left_out"))] += 1
    print(f"{profiles} profiles of {cells} launches\n{'source':14} {'device':18} times  left out")
    for (source, device), (used, out) in sorted(counted.items()):
        print(f"{source:14} {device:18} {used:5} {out:9}")


if __name__ == "__main__":
    sys.exit(main())
