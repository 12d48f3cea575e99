"""Published times of single kernels: tuned kernels, streams, elementwise kernels.

Each becomes a record on a device of the catalogue, whose size has the parameters of the launch. The kernels
of seven suites on a CPU and a GPU (Cummins et al. 2017) come with their sources.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from crosscast.data.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.profiles import PROFILES
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, dataset_of_source, with_separate_sessions
from crosscast.data.sources.source import File, Source, SourceContents, SourceFile, keys_of, required
from crosscast.data.table import table_of
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError
from crosscast.units import milliseconds

_VENDORS = re.compile(r"^(nvidia|amd|intel)\s+", re.IGNORECASE)


def device_key(name: str, source: str = "kernel_tuner") -> str | None:
    """Find the key in the catalogue of a device by its name in a source or driver.

    ``None`` if the catalogue lacks it; empty if the source's rows of it are to be left out.

    >>> device_key("NVIDIA A100-PCIE-40GB")
    'a100-pcie-40gb'
    """
    mapped = keys_of(source).get(name)
    if mapped is not None:
        return mapped
    keys = {_plain(text): key for key, row in catalogue().items() for text in (row.text("name"), key)}
    return keys.get(_plain(name))


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", _VENDORS.sub("", name).lower())


def dataset_on_catalogue(
    label: str, runs: Sequence[ConfiguredRun], notes: Mapping[str, Mapping[str, str]]
) -> Dataset:
    """Make a dataset of the runs, with the catalogue's rows of their devices."""
    keys = {run.configuration.device for run in runs}
    if len(keys) == 1:
        warning = f"All times are of one device, {next(iter(keys))}: nothing can be said of others from them."
        notes = {**notes, "records": {**notes.get("records", {}), "one device": warning}}
    devices = [catalogue()[key] for key in sorted(keys)]
    return dataset_of(label, devices, with_separate_sessions(runs), notes)


def _key(file: SourceFile, number: int, name: str, source: str) -> str:
    key = device_key(name, source)
    if key is None:
        raise file.refused(
            number, "a device of the catalogue, or one that the source's file maps", name, "device"
        )
    return key


# --- Kernel Tuner: a table for each kernel and device

TUNED = {
    "convolution": ("RTX_2080_Ti", "RTX_3060_Laptop", "RTX_3090", "TITAN_RTX"),
    "convolution_milo": ("A100-PCIE-40GB", "RTX_A4000", "Radeon_PRO_W6600"),
    "gemm": ("RTX_2080_Ti", "RTX_3060_Laptop"),
}
"""Kernels, and the devices on which each was tuned."""

FAMILY = {"convolution": "convolution", "convolution_milo": "convolution", "gemm": "gemm"}
"""Application of each tuned kernel: the two convolutions compute the same, and are held out together."""

_TUNED_FILES = {
    File(
        (f"kt_{kernel}_{device}.csv.gz", f"kt_{kernel}_{device}.csv"),
        (
            *required("text", "variant"),
            *required("real", "time_median_s", unit="s", gt=0),
            *required("integer", "repetitions", ge=1),
        ),
        key=("variant",),
        is_required=False,
    ): (kernel, device)
    for kernel, devices in TUNED.items()
    for device in devices
}


def _kernel_tuner(contents: SourceContents) -> Dataset:
    runs = []
    for declared, (kernel, device) in _TUNED_FILES.items():
        for file in contents.files[declared]:
            for number, row, variant in _variants(file):
                defaults = Configuration(_key(file, number, device, "kernel_tuner"), {})
                time_s, repetitions = row.number("time_median_s"), row.integer("repetitions")
                cell = FAMILY[kernel], kernel, variant, defaults
                runs.append(ConfiguredRun(*cell, time_s, runs=repetitions))
    return dataset_on_catalogue(contents.label, runs, contents.notes)


def _variants(file: SourceFile) -> Iterator[tuple[int, TableRow, str]]:
    """Rows with their numbers and parameters, without the variants that do not use local memory."""
    for number, row in enumerate(file.rows, 1):
        parts = [part.partition("=") for part in row.text("variant").split(";")]
        if not all(name and value for name, _, value in parts):
            raise file.refused(
                number, "parameters such as block_size_x=16;tile_size_x=2", row.text("variant"), "variant"
            )
        parameters = {name: value for name, _, value in parts}
        if parameters.pop("use_shmem", "1") == "1":
            yield number, row, variant_of(parameters)


def variant_of(parameters: Mapping[str, object]) -> str:
    """Write the parameters of a variant as the size of its records.

    >>> variant_of({"MWG": 16, "SA": 1})
    'MWG=16;SA=1'
    """
    return ";".join(f"{name}={value}" for name, value in parameters.items())


KERNEL_TUNER = Source("kernel_tuner", tuple(_TUNED_FILES), _kernel_tuner)


# --- BabelStream

_STREAM = "babelstream_"


def _babelstream(contents: SourceContents) -> Dataset:
    file = contents.only()
    runs = []
    for number, row in enumerate(file.rows, 1):
        parameters = dict(part.partition("=")[::2] for part in row.text("variant").split(";"))
        repetitions = parameters.get("repetitions") or "0"
        if not {"model", "type", "n"} <= parameters.keys() or not repetitions.isdecimal():
            raise file.refused(number, "model=…;type=…;n=…", row.text("variant"), "variant")
        name = re.sub(r",? ?ECC\)$", ")", row.text("device")).removesuffix("()").strip()
        key = _key(file, number, name, "babelstream")
        if not key:
            continue
        settings: dict[str, Setting] = {"model": parameters["model"]}
        if "ECC" in row.text("device"):
            settings["ecc"] = "on"
        kernel, size = row.text("kernel").removeprefix(_STREAM), f"{parameters['type']} n={parameters['n']}"
        cell = "stream", kernel, size, Configuration(key, settings)
        runs.append(ConfiguredRun(*cell, row.number("time_s"), runs=int(repetitions) or None))
    return dataset_on_catalogue(contents.label, runs, contents.notes)


BABELSTREAM = Source(
    "babelstream",
    (
        File(
            ("times.csv",),
            (
                *required("text", "source", "device", "variant"),
                *required(
                    "text",
                    "kernel",
                    choices=tuple(f"{_STREAM}{k}" for k in ("copy", "mul", "add", "triad", "dot")),
                ),
                *required("real", "time_s", unit="s", gt=0),
            ),
            key=("source", "device", "kernel", "variant"),
        ),
    ),
    _babelstream,
)


# --- Elementwise kernels and layer norm of PyTorch

ELEMENTWISE_OPS = ("add", "addu", "mul", "mulu", "div", "divu", "relu", "gelu", "ln")
_GRID = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def _elementwise(contents: SourceContents) -> Dataset:
    file = contents.only()
    runs = []
    for number, row in enumerate(file.rows, 1):
        block = row.integer("block_x") * row.integer("block_y") * row.integer("block_z")
        if block > 1024:
            raise file.refused(number, "at most 1024 threads of a block", block)
        op = row.text("op")
        names = ("layer_norm", "layer_norm") if op == "ln" else ("elementwise", op)
        size = f"B={row['B']};H={row['H']};grid={row['grid_x']}"
        defaults = Configuration(_key(file, number, row.text("device"), "elementwise"), {})
        runs.append(ConfiguredRun(*names, size, defaults, milliseconds(row.number("time_ms"))))
    return dataset_on_catalogue(contents.label, runs, contents.notes)


ELEMENTWISE = Source(
    "elementwise",
    (
        File(
            ("times.csv.gz", "times.csv"),
            (
                *required("text", "op", choices=ELEMENTWISE_OPS),
                *required("text", "device"),
                *required("real", "time_ms", unit="ms", gt=0),
                *required("integer", "B", "H", *_GRID, ge=1),
            ),
            # The source has cells twice with different times, so that only equal rows are duplicates.
            key=("op", "device", "B", "H", "time_ms"),
        ),
    ),
    _elementwise,
)


def known_device(name: str, where: str) -> str:
    """Find the key of a tuning run's device, or raise InputError with its name."""
    key = device_key(name)
    if key is None:
        expected = "a device of the catalogue (crosscast devices --catalogue lists it); --device names one"
        raise InputError.of(where=where, field="device", expected=expected, found=name)
    return key


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
        for column, device in _DEVICES.items():
            cell = application, kernel, size, Configuration(device, {})
            runs.append(ConfiguredRun(*cell, milliseconds(row.number(column)), counters=counters))
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
