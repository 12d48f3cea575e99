"""OpenCL kernels of seven suites on a CPU and a GPU (Cummins et al. 2017), with their sources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.sources.runs import ConfiguredRun, dataset_of_source, with_separate_sessions
from crosscast.data.sources.source import File, Source, SourceContents, required
from crosscast.data.table import table_of
from crosscast.units import milliseconds

Launch: TypeAlias = tuple[str, int, int]
"""The source of a kernel, the work-items of a work-group, and the bytes of the buffers."""

Profiles: TypeAlias = Callable[[Sequence[Launch]], Sequence[Mapping[str, object] | str]]
"""Function that returns the cells of a profile for each launch, or the reason why there are none."""

_DEVICES = {"runtime_cpu": "i7-3820", "runtime_gpu": "gtx970"}
_STATIC = ("comp", "rational", "mem", "localmem", "coalesced", "atomic")
_SIZES = ("transfer", "wgsize")
_IN_TEXT = {
    "loops": r"\b(?:for|while)\b",
    "branches": r"\bif\b|\?",
    "barriers": r"\bbarrier\b",
    "doubles": r"\bdouble\d*\b",
    "floats": r"\bfloat\d*\b",
    "vectors": r"\b(?:u?int|float|double)(?:2|4|8|16)\b",
    "locals": r"\b(?:__)?local\b",
    "globals": r"\b(?:__)?global\b",
    "constants": r"\b(?:__)?constant\b",
    "divisions": r"/",
    "remainders": r"%",
    "functions": r"\b(?:\w*sqrt|\w*exp|\w*log|pow|\w*sin|\w*cos|fabs|fm\w+|mad\w*|native_\w+)\s*\(",
    "subscripts": r"\[",
    "assignments": r"=",
    "ids": r"\bget_\w+_id\b",
    "further_dimensions": r"\bget_\w+_id\([12]\)",
    "returns": r"\breturn\b",
    "lines": r"\n",
    "characters": r"(?s).",
}
"""Expressions counted in the source of a kernel, as counters `text_...`; also for kernels that cannot run."""

_NAME = re.compile(r"(?P<application>[a-z-]+-[0-9.]+-[^-]+)-(?P<kernel>.+)")


def _cgo17(contents: SourceContents, *, profiles: Profiles | None = None) -> Dataset:
    """Make runs on both devices; with `profiles`, also profiles of the launches."""
    cases, sources = (files[0] for files in contents.files.values())
    texts = {row.text("benchmark"): row.text("src") for row in sources.rows}
    counted = {
        name: {f"text_{what}": float(len(re.findall(pattern, text))) for what, pattern in _IN_TEXT.items()}
        for name, text in texts.items()
    }
    keys, runs = [], []
    for number, row in enumerate(cases.rows, 1):
        benchmark, size = row.text("benchmark"), row.text("dataset")
        named = _NAME.fullmatch(benchmark)
        if named is None:
            raise cases.refused(number, "suite-version-program-kernel", repr(benchmark), "benchmark")
        if benchmark not in texts:
            raise cases.refused(number, f"a kernel of {sources.path.name}", benchmark, "benchmark")
        application, kernel = named["application"], named["kernel"]
        keys.append({"application": application, "kernel": kernel, "size": size})
        counters = {name: float(row.integer(name)) for name in (*_STATIC, *_SIZES)} | counted[benchmark]
        runs += [
            ConfiguredRun(
                application,
                kernel,
                size,
                configuration=Configuration(device, {}),
                time_s=milliseconds(row.number(column)),
                powers=(),
                counters=counters,
            )
            for column, device in _DEVICES.items()
        ]
    dataset = dataset_of_source(contents, with_separate_sessions(runs))
    if profiles is None:
        return dataset
    cells = profiles(
        [(texts[row.text("benchmark")], row.integer("wgsize"), row.integer("transfer")) for row in cases.rows]
    )
    rows = [{**cell, **key} for cell, key in zip(cells, keys, strict=True) if not isinstance(cell, str)]
    reasons = Counter(cell for cell in cells if isinstance(cell, str))
    excluded = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
    notes = {**contents.notes.get("profiles", {}), "rows without a profile": excluded or "none"}
    return replace(dataset, profiles=table_of(PROFILES, rows, notes))


CGO17 = Source(
    "cgo17",
    (
        File(
            ("cgo17_nvidia.csv", "cgo17_nvidia.csv.gz"),
            (
                *required("text", "benchmark", "dataset"),
                *required("integer", *_STATIC, ge=0),
                *required("integer", *_SIZES, ge=0),
                *required("real", *_DEVICES, unit="ms", gt=0),
            ),
            key=("benchmark", "dataset"),
        ),
        File(
            ("cgo17_sources.csv.gz", "cgo17_sources.csv"),
            required("text", "benchmark", "src"),
            key=("benchmark",),
        ),
    ),
    _cgo17,
)
