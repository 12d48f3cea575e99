"""The dataset of a recorded program: profiles of its kernels, and times measured by the device."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES, to_row
from crosscast.data.schema import DEVICES, RECORDS, SESSIONS
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.tracing.summary import LaunchClass, Replayed, Summary
from crosscast.tracing.trace import TracedQueue

_TYPES = {2: "cpu", 4: "gpu", 8: "accelerator"}
"""Types of devices, as OpenCL numbers them."""


def dataset_of(summary: Summary, replayed: Sequence[Replayed]) -> Dataset:
    """Make a dataset: an entry for each class of launches that has a profile and times.

    A problem size is the sizes of a launch; where launches of a kernel differ in the sizes of memory alone,
    the second is marked ``#2``.
    """
    pairs = [
        (each, size, result)
        for each, size, result in zip(summary.classes, _labels(summary), replayed, strict=True)
        if result.profile and each.timed
    ]
    if not pairs:
        reason = next((each.refused for each in replayed if each.refused), "no launch was timed")
        raise InputError.of(
            where=summary.trace.folder, expected="kernels with a profile and times", found=f"none: {reason}"
        )
    processes = [process for each, _, _ in pairs for process, _ in each.rows]
    queues = {queue.device: queue for process in processes for queue in process.queues.values()}
    profiles = [
        replace(result.profile, size=size, invocation=0) for _, size, result in pairs if result.profile
    ]
    sessions: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each, size, _ in pairs:
        sessions[size, key_of(each.device)].append(each.kernel)
    return Dataset(
        str(summary.trace.folder),
        devices=table_of(DEVICES, [_device(queue) for queue in queues.values()]),
        profiles=table_of(PROFILES, map(to_row, profiles)),
        records=table_of(RECORDS, [_record(summary, each, size) for each, size, _ in pairs]),
        sessions=table_of(
            SESSIONS,
            [{**_key_columns(summary, *key), "kernels": each, "runs": 1} for key, each in sessions.items()],
        ),
    )


def key_of(device: str) -> str:
    """Return the key of a device in tables, from its driver's name."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def _labels(summary: Summary) -> Iterator[str]:
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for each in summary.classes:
        key = each.kernel, each.size_label, each.device
        seen[key] += 1
        yield each.size_label if seen[key] == 1 else f"{each.size_label} #{seen[key]}"


def _key_columns(summary: Summary, size: str, device: str) -> dict[str, object]:
    return {
        "application": summary.application,
        "size": size,
        "device": device,
        "configuration": {},
        "repeat": 0,
    }


def _record(summary: Summary, each: LaunchClass, size: str) -> dict[str, object]:
    columns = _key_columns(summary, size, key_of(each.device))
    # Some launches may not be timed, or disturbed by reads of their memory.
    times = each.times if len(each.times) == each.count else [fmean(each.times)]
    return {**columns, "kernel": each.kernel, "run": 0, "invocations": each.count, "time_s": times}


def _device(queue: TracedQueue) -> dict[str, object]:
    facts = {
        "name": queue.device,
        "vendor": queue.vendor,
        "type": _TYPES.get(queue.device_type & 14, "accelerator"),
        "platform": queue.version,
        "driver": queue.driver,
    }
    return {"device": key_of(queue.device), **facts, "sources": dict.fromkeys(facts, "OpenCL")}
