"""Times of single kernels that others published: tuned kernels, streams, elementwise kernels.

Each becomes a record whose size says how the kernel was launched, on a device of the catalogue.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from crosscast.data.configuration import Configuration, Setting
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, with_own_sessions
from crosscast.data.sources.source import File, Found, FoundFile, Source, required
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError
from crosscast.units import milliseconds

_VENDORS = re.compile(r"^(nvidia|amd|intel)\s+", re.IGNORECASE)


@cache
def _keys(source: str) -> Mapping[str, str]:
    """Keys of devices in the catalogue by their names in a source."""
    content = resources.files(__package__).joinpath(f"{source}.toml").read_text(encoding="utf-8")
    keys: dict[str, str] = tomllib.loads(content)["keys"]
    return keys


def device_key(name: str, source: str = "kernel_tuner") -> str | None:
    """Key in the catalogue of a device as a source or a driver names it.

    ``None`` if it is not there; empty if the source's rows of it are to be left out.

    >>> device_key("NVIDIA A100-PCIE-40GB")
    'a100-pcie-40gb'
    """
    known = _keys(source).get(name)
    if known is not None:
        return known
    keys = {_plain(text): key for key, row in catalogue().items() for text in (row.text("name"), key)}
    return keys.get(_plain(name))


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", _VENDORS.sub("", name).lower())


def dataset_on_catalogue(
    label: str, runs: Sequence[ConfiguredRun], notes: Mapping[str, Mapping[str, str]]
) -> Dataset:
    """Dataset of the runs, with the catalogue's rows of their devices."""
    there = {run.configuration.device for run in runs}
    if len(there) == 1:
        told = f"All times are of one device, {next(iter(there))}: nothing can be said of others from them."
        notes = {**notes, "records": {**notes.get("records", {}), "one device": told}}
    devices = [catalogue()[key] for key in sorted(there)]
    return dataset_of(label, devices, with_own_sessions(runs), notes)


def _key(file: FoundFile, number: int, name: str, source: str) -> str:
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
"""Kernels, and the devices that each was tuned on."""

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
        is_needed=False,
    ): (kernel, device)
    for kernel, devices in TUNED.items()
    for device in devices
}


def _kernel_tuner(found: Found) -> Dataset:
    runs = [
        ConfiguredRun(
            application=FAMILY[kernel],
            kernel=kernel,
            size=variant,
            configuration=Configuration(_key(file, number, device, "kernel_tuner"), {}),
            time_s=row.number("time_median_s"),
            powers=(),
            runs=row.integer("repetitions"),
        )
        for each, (kernel, device) in _TUNED_FILES.items()
        for file in found.files[each]
        for number, row, variant in _variants(file)
    ]
    return dataset_on_catalogue(found.label, runs, found.notes)


def _variants(file: FoundFile) -> Iterator[tuple[int, TableRow, str]]:
    """Rows with their number and parameters; those of the kernel without local memory are another kernel."""
    for number, row in enumerate(file.rows, 1):
        parts = [part.partition("=") for part in row.text("variant").split(";")]
        if not all(name and value for name, _, value in parts):
            raise file.refused(
                number, "parameters such as block_size_x=16;tile_size_x=2", row.text("variant"), "variant"
            )
        told = {name: value for name, _, value in parts}
        if told.pop("use_shmem", "1") == "1":
            yield number, row, variant_of(told)


def variant_of(parameters: Mapping[str, object]) -> str:
    """Parameters of a variant as the size of its records.

    >>> variant_of({"MWG": 16, "SA": 1})
    'MWG=16;SA=1'
    """
    return ";".join(f"{name}={value}" for name, value in parameters.items())


KERNEL_TUNER = Source("kernel_tuner", tuple(_TUNED_FILES), _kernel_tuner)


# --- BabelStream

_STREAM = "babelstream_"
LAUNCHED_MODELS = ("CUDA", "HIP", "OpenCL")
"""Programming models whose launches are known: a work-item an element."""


def _babelstream(found: Found) -> Dataset:
    file = found.only()
    runs = []
    for number, row in enumerate(file.rows, 1):
        told = dict(part.partition("=")[::2] for part in row.text("variant").split(";"))
        if not {"model", "type", "n"} <= told.keys():
            raise file.refused(number, "model=…;type=…;n=…", row.text("variant"), "variant")
        name = re.sub(r",? ?ECC\)$", ")", row.text("device")).removesuffix("()").strip()
        key = _key(file, number, name, "babelstream")
        if not key:
            continue
        settings: dict[str, Setting] = {"model": told["model"]}
        if "ECC" in row.text("device"):
            settings["ecc"] = "on"
        runs.append(
            ConfiguredRun(
                application="stream",
                kernel=row.text("kernel").removeprefix(_STREAM),
                size=f"{told['type']} n={told['n']}",
                configuration=Configuration(key, settings),
                time_s=row.number("time_s"),
                powers=(),
                runs=int(told["repetitions"]) if told.get("repetitions") else None,
            )
        )
    return dataset_on_catalogue(found.label, runs, found.notes)


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


def _elementwise(found: Found) -> Dataset:
    file = found.only()
    runs = []
    for number, row in enumerate(file.rows, 1):
        block = row.integer("block_x") * row.integer("block_y") * row.integer("block_z")
        if block > 1024:
            raise file.refused(number, "at most 1024 threads of a block", block)
        runs.append(
            ConfiguredRun(
                application="elementwise" if row.text("op") != "ln" else "layer_norm",
                kernel=row.text("op") if row.text("op") != "ln" else "layer_norm",
                size=f"B={row['B']};H={row['H']};grid={row['grid_x']}",
                configuration=Configuration(_key(file, number, row.text("device"), "elementwise"), {}),
                time_s=milliseconds(row.number("time_ms")),
                powers=(),
            )
        )
    return dataset_on_catalogue(found.label, runs, found.notes)


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
            # Cells are there twice with other times: only the same row once more is one too many.
            key=("op", "device", "B", "H", "time_ms"),
        ),
    ),
    _elementwise,
)


def known_device(name: str, where: str) -> str:
    """Key of a device of a tuning run; refused with the name where the catalogue lacks it."""
    key = device_key(name)
    if key is None:
        expected = "a device of the catalogue (crosscast devices --catalogue lists it); --device names one"
        raise InputError.of(where=where, field="device", expected=expected, found=name)
    return key
