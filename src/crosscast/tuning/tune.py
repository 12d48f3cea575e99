"""Find the best variants of a kernel on devices in one call, `crosscast.tune`: forecast, and measured here.

A journal keeps what was measured, from which an interrupted search resumes.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from crosscast.characterization.launchfiles import launch_head, toml_lines
from crosscast.data.files import cache_home, make_folder
from crosscast.device import Device
from crosscast.devices.catalogue import device_of
from crosscast.errors import CrosscastError, DeviceFault, InputError
from crosscast.evaluation.loop import State
from crosscast.kernel import Launch
from crosscast.measure.processes import SessionJob, run_job
from crosscast.measure.subjects import LaunchFile, Settings
from crosscast.tuning import LaunchRule, Space, Variant
from crosscast.tuning.profiling import Begin, Profiler, Progress, json_lines
from crosscast.tuning.ranking import PROFILES, Ranking, model_for, rank
from crosscast.tuning.search import Search
from crosscast.tuning.space_files import read_space

if TYPE_CHECKING:
    from crosscast.measure.opencl import OpenCLDevice

_MOST_FAULTS = 3
_RUNS, _RUNS_S, _TIMEOUT_S = 7, 0.05, 60.0


def tune(
    source: str | Path,
    space: str | Path | Space,
    devices: Sequence[str | Device] = (),
    *,
    kernel: str | None = None,
    model: str | Path | None = None,
    profiles: int = PROFILES,
    measure: int = 0,
    within: float = 0.02,
    on: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    jobs: int = 2,
    cache: str | Path | None = None,
    progress: Progress = lambda state: None,
    begin: Begin = lambda variants, seconds: None,
) -> Ranking:
    """Rank the variants of a kernel by the times that are forecast for them on devices.

    ``crosscast tune`` calls this function. A notebook shows its result as a table.

    Parameters
    ----------
    source
        The kernel's file.
    space
        File of the space, in TOML or in the T1 format of Kernel Tuner; or a space that was read, of which
        parameters and constraints are taken, and the launch from its file.
    devices
        Names of devices of the model or the catalogue, or descriptions.
    kernel
        The kernel's name, if the space does not name it.
    model
        Name or folder of a model of times that takes whole profiles; by default one that was calibrated on
        one of the devices, or else the bundled one.
    profiles
        Number of variants to profile; counts of the others are estimated from these.
    measure
        Largest number of variants to measure on a device of this machine, on which the forecasts are then
        conditioned; none by default. An interrupted call resumes when it is repeated.
    within
        Measuring ends when no variant is likely to be faster by this share of the time.
    on
        Id of the device that measures, as ``crosscast devices`` shows it; by default the first. It replaces
        `devices`.
    level
        Probability of the intervals.
    seed
        Seed of random choices.
    jobs
        Number of variants that are profiled at the same time.
    cache
        Folder for profiles and measured times; by default one in the user's cache.
    progress
        Called after each variant that was profiled or measured, and while many are forecast.
    begin
        Called with the number of variants and the seconds that the ranking takes roughly.

    Returns
    -------
    Ranking
        A row for each variant and device, the fastest first, also as ``to_pandas()`` and ``to_dict()``.

    Raises
    ------
    InputError
        If a file is not as expected, no variant is valid, or none can be profiled or runs.
    DeviceFault
        If the device that measures fails several times one after another.
    MissingExtraError
        If an optional part is missing, such as OpenCL for measuring.

    Examples
    --------
    >>> import crosscast
    >>> ranking = crosscast.tune("kernel.cl", "space.toml", ["rtx-a4000"])  # doctest: +SKIP
    >>> ranking.to_pandas().head(10)  # doctest: +SKIP
    """
    if measure < 0:
        raise InputError.of(where="measure", expected="at least 0", found=measure)
    if not 0 <= within < 1:
        raise InputError.of(where="within", expected="a share of the time from 0 to 1", found=within)
    if not 0 < level < 1:
        raise InputError.of(where="level", expected="a number between 0 and 1", found=level)
    if measure and devices:
        raise InputError.of(
            where="devices",
            expected="none with measure: variants are measured on this machine (on)",
            found=len(devices),
        )
    if not measure and not devices:
        raise InputError.of(where="devices", expected="at least one device", found="none")
    read = read_space(space.where if isinstance(space, Space) else space, source, kernel)
    # The launch of a space that was read is that of another source, or of none.
    space = replace(space, kernel=read.kernel, launches=read.launches) if isinstance(space, Space) else read
    rule = space.rule
    if measure and rule.program.form != "opencl-c":
        raise InputError.of(
            where=source,
            expected="OpenCL C to be measured here; Kernel Tuner measures others (docs/tuning.md)",
            found=rule.program.language,
        )
    folder = make_folder(cache_home() / "tuning" if cache is None else cache, "cache")
    profiler = Profiler(rule, jobs, folder=folder)
    if measure:
        device, description = here(on)
        devices = [description]
    times, descriptions = model_for(model, devices)
    ranking = rank(
        space,
        descriptions,
        times,
        profiler=profiler,
        profiles=profiles,
        seed=seed,
        level=level,
        progress=progress,
        begin=begin,
    )
    if not measure:
        return ranking
    name = hashlib.sha256(f"{profiler.name} {device.id} {device.driver}".encode()).hexdigest()[:32]
    journal = Journal(folder / f"{name}-times.jsonl")
    return measured_search(ranking, device, measure, journal, within=within, progress=progress)


def here(name: str | None) -> tuple[OpenCLDevice, Device]:
    """Find a device of this machine by its id, by default the first, and its description."""
    # Imported here: forecasts need no OpenCL.
    from crosscast.measure.inventory import known_row
    from crosscast.measure.opencl import find

    device = find(name)
    return device, device_of(known_row(device))


@dataclass(frozen=True, eq=False)
class Journal:
    """A file of measurements, one line per variant, from which an interrupted search resumes."""

    path: Path

    def read(self) -> dict[str, list[float] | str]:
        """Read the seconds of each variant's runs, or why it did not run, by label; skip damaged lines."""
        results: dict[str, list[float] | str] = {}
        for entry in json_lines(self.path):
            with suppress(KeyError, TypeError, ValueError):
                if "failed" in entry:
                    results[entry["variant"]] = str(entry["failed"])
                elif median(times_s := list(map(float, entry["times_s"]))) > 0:
                    results[entry["variant"]] = times_s
        return results

    def add(self, label: str, **result: object) -> None:
        """Append a result."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"variant": label, **result}) + "\n")


def measured_search(
    ranking: Ranking,
    device: OpenCLDevice,
    most: int,
    journal: Journal,
    *,
    within: float = 0.02,
    progress: Progress = lambda state: None,
) -> Ranking:
    """Measure the variants that are most likely to be fast on the first device of `ranking`, `device`.

    Forecasts are conditioned on each result. At most `most` are measured, those of the journal included; the
    search ends when no other variant is likely to be faster by the share `within` of the time. After several
    failures of the device one after another, measurements stay in the journal.
    """
    rule, search = ranking.space.rule, Search(ranking.candidates())
    runs: dict[int, list[float]] = {}
    failed: dict[int, str] = {}
    rows_by_label = {label: row for row, label in enumerate(ranking.variants.labels)}

    def learn(row: int, result: list[float] | str) -> None:
        if isinstance(result, str):
            failed[row] = result
        else:
            runs[row] = result
        search.add({row: None if isinstance(result, str) else median(result)})

    for label, result in journal.read().items():
        if label in rows_by_label:
            learn(rows_by_label[label], result)
    start, before = time.monotonic(), len(runs) + len(failed)
    faults: dict[str, str] = {}  # Added to the journal once the device runs another variant
    while len(runs) + len(failed) < most and not search.is_over(within):
        rows = search.next().tolist()
        if not rows:
            break
        label = ranking.variants.labels[rows[0]]
        try:
            times = _times(rule, ranking.variants[rows[0]], device)
            journal.add(label, times_s=times)
            learn(rows[0], times)
            for faulty, reason in faults.items():
                journal.add(faulty, failed=reason)
            faults = {}
        except DeviceFault as error:
            faults[label] = str(error)
            if len(faults) == _MOST_FAULTS:
                raise DeviceFault(
                    f"{device.id}: failed {_MOST_FAULTS} times one after another, the last time with {label} "
                    f"({error}); {len(runs)} variants were measured and are kept: the same command goes on"
                ) from error
            learn(rows[0], str(error))
        except InputError as error:
            journal.add(label, failed=str(error))
            learn(rows[0], str(error))
        done = len(runs) + len(failed)
        elapsed_s = time.monotonic() - start
        left_s = elapsed_s / max(done - before, 1) * (most - done)
        progress(State(done, most, elapsed_s, left_s, label))
    if not runs:
        reason = next(iter(failed.values()), "none was measured")
        raise InputError.of(where=device.id, expected="a variant that runs", found=reason)
    if len(runs) + len(failed) < most and search.is_over(within):
        why = f"Measuring ended, as no other variant is likely to be {100 * within:g} % faster."
        ranking = replace(ranking, notes=(*ranking.notes, why))
    return conditioned(ranking, search, {row: median(times) for row, times in runs.items()}, failed)


def conditioned(
    ranking: Ranking, search: Search, measured: Mapping[int, float], failed: Mapping[int, str]
) -> Ranking:
    """Condition a ranking on seconds measured on its first device, or reasons of failures, by row."""
    log_time, deviation = search.posterior()
    log_time[list(failed)] = np.inf
    return replace(
        ranking,
        log_time=np.where(np.isfinite(ranking.log_time[:, :1]), log_time[:, None], np.inf),
        deviation=deviation[:, None],
        shares=ranking.shares[:, :1],
        devices=ranking.devices[:1],
        count_error=ranking.count_error[:1],
        measured=dict(measured),
        not_run=dict(failed),
    )


def _times(rule: LaunchRule, variant: Variant, device: OpenCLDevice) -> list[float]:
    """Measure a variant in a separate process; return seconds of its runs by the device's timer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "variant.toml"
        path.write_text(variant_file(rule, variant), encoding="utf-8")
        settings = Settings(
            min_runs=_RUNS, min_time_s=_RUNS_S, warmups=1, timeout_s=_TIMEOUT_S, sensor="none", counters=False
        )
        answer = run_job(SessionJob(LaunchFile(str(path)), device.id, settings), _TIMEOUT_S)
    times = [float(record["time_s"][0]) for record in answer["records"]]
    if not times:
        raise CrosscastError(f"{device.id}: the runs of {rule.kernel} have no times")
    return times


def variant_file(rule: LaunchRule, variant: Variant) -> str:
    """Write the launch of a variant as a launch file, with absolute paths of files."""
    kernel, (groups, local) = rule.kernel_of(variant), rule.groups(variant)
    size = tuple(count * items for count, items in zip(groups, local, strict=True))
    launch = Launch(kernel, size, local, (), shared=rule.shared_bytes(variant))
    head = launch_head(launch, kernel.program, str(Path(rule.program.label).absolute()))
    parts = [toml_lines({**head, "seed": rule.seed})]
    for table in rule.tables(variant):
        if "file" in table:
            table["file"] = str((Path(rule.where).parent / str(table["file"])).absolute())
        parts.append(f"\n[[arg]]\n{toml_lines(table)}")
    return "".join(parts)
