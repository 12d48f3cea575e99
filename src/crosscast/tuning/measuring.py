"""Search a ranking by measurements on a device of this machine; a journal keeps the results."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from crosscast.characterization.launchfiles.launchfile import launch_head, toml_lines
from crosscast.device import Device
from crosscast.devices.catalogue import device_of
from crosscast.errors import CrosscastError, DeviceFault, InputError
from crosscast.evaluation.loop import State
from crosscast.kernel import Launch
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import OpenCLDevice, find
from crosscast.measure.processes import SessionJob, run_job
from crosscast.measure.subjects import LaunchFile, Settings
from crosscast.tuning.profiling import Progress
from crosscast.tuning.ranking import Ranking
from crosscast.tuning.search import Search
from crosscast.tuning.spaces import LaunchRule, Variant

_MOST_FAULTS = 3
_RUNS, _RUNS_S, _TIMEOUT_S = 7, 0.05, 60.0


def here(name: str | None) -> tuple[OpenCLDevice, Device]:
    """Find a device of this machine by its id, by default the first, and its description."""
    device = find(name)
    return device, device_of(known_row(device))


@dataclass(frozen=True, eq=False)
class Journal:
    """A file of measurements, one line per variant, from which an interrupted search resumes."""

    path: Path

    def read(self) -> dict[str, list[float] | str]:
        """Read the seconds of each variant's runs, or why it did not run, by label; skip a truncated line."""
        results: dict[str, list[float] | str] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []:
            try:
                entry = json.loads(line)
                results[entry["variant"]] = entry["failed"] if "failed" in entry else entry["times_s"]
            except (ValueError, KeyError, TypeError):
                continue
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
