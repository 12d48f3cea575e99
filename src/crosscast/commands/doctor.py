"""``crosscast doctor``: state of the installation and the machine, with advice."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Literal

import numpy as np

import crosscast
from crosscast.characterization import toolchain
from crosscast.cli.machine import Doctor
from crosscast.commands.output import show
from crosscast.data.environment import facts, version_of
from crosscast.data.files import cache_home, is_writable
from crosscast.errors import CrosscastError, EnvironmentFault
from crosscast.measure.host_state import doubts
from crosscast.measure.microbenchmarks import cuda
from crosscast.measure.sensors import sensors
from crosscast.prediction.named_models import named_models
from crosscast.report.document import Report
from crosscast.report.fields import table_of

State = Literal["ok", "missing", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """State of one part of the installation or machine."""

    part: str
    state: State
    detail: str


def doctor(options: Doctor) -> None:
    """Run ``crosscast doctor``."""
    findings = [finding for check in _CHECKS for finding in _checked(check)]
    columns = {"part": "part", "state": "state", "what": "detail"}
    show(
        options.output,
        lambda: {"findings": list(map(asdict, findings))},
        lambda: Report([table_of(findings, columns, words=range(3))]),
    )
    failed = [finding.part for finding in findings if finding.state == "failed"]
    if failed:
        raise EnvironmentFault(f"{', '.join(failed)}: kernels cannot be characterized here")


def _checked(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check; its failure is a finding, too."""
    try:
        yield from check()
    except CrosscastError as error:
        yield Finding(check.__name__.strip("_"), "warning", str(error))


def _crosscast() -> Iterator[Finding]:
    machine = facts()
    text = f"Python {machine['python']}, {machine['system']}, {machine['processor']}, {machine['cores']} CPUs"
    yield Finding("crosscast", "ok", f"{crosscast.__version__}; {text}")


def _compiler() -> Iterator[Finding]:
    """Compile, run and count a kernel, as `crosscast characterize` does."""
    source = "kernel void f(global float *x) { x[get_global_id(0)] += 1; }"
    began = time.perf_counter()
    try:
        kernel = crosscast.Kernel.from_source(source, "f")
        crosscast.characterize(kernel, global_size=64, args=[np.zeros(64, dtype=np.float32)])
        version = toolchain.compiler_version()
    except CrosscastError as error:
        yield Finding("compiler", "failed", str(error))
        return
    seconds = time.perf_counter() - began
    yield Finding("compiler", "ok", f"{version}; compiled, ran and counted a kernel in {seconds:.2g} s")


def _extras() -> Iterator[Finding]:
    """Find the packages that each extra lacks."""
    for extra, packages in sorted(_packages_of_extras().items()):
        if absent := [name for name in packages if version_of(name) is None]:
            detail = f"without {', '.join(absent)}: pip install 'crosscast[{extra}]'"
            yield Finding(f"extra {extra}", "missing", detail)
        else:
            yield Finding(f"extra {extra}", "ok", ", ".join(packages))


def _packages_of_extras() -> dict[str, list[str]]:
    direct: dict[str, list[str]] = {}
    for requirement in metadata.requires("crosscast") or ():
        named = re.match(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[^]]*)\])?", requirement)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if named is None or extra is None or extra[1] == "dev":
            continue
        others = [f"[{name.strip()}]" for name in (named["extras"] or "").split(",") if name]
        direct.setdefault(extra[1], []).extend(others if named["name"] == "crosscast" else [named["name"]])

    def resolved(extra: str) -> list[str]:
        names: list[str] = []
        for name in direct.get(extra, ()):
            names += resolved(name.strip("[]")) if name.startswith("[") else [name]
        return list(dict.fromkeys(names))

    return {extra: resolved(extra) for extra in direct}


def _opencl() -> Iterator[Finding]:
    if version_of("pyopencl") is None:
        return
    from crosscast.measure.opencl import devices

    try:
        yield Finding("OpenCL", "ok", ", ".join(f"{device.id} ({device.name})" for device in devices()))
    except CrosscastError as error:
        yield Finding("OpenCL", "warning", str(error))


def _cuda() -> Iterator[Finding]:
    if version_of("cuda-bindings") is not None:
        yield Finding("CUDA", "ok", ", ".join(f"{each.id} ({each.name})" for each in cuda.devices()))


def _sensors() -> Iterator[Finding]:
    for sensor in sensors(None):
        state: State = "ok" if sensor.reason is None else "missing"
        yield Finding(f"sensor {sensor.name}", state, sensor.reason or "works")


def _cache() -> Iterator[Finding]:
    folder = cache_home()
    if is_writable(folder):
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield Finding("cache", "ok", f"{folder}, {size / 1e6:.0f} MB")
    else:
        yield Finding(
            "cache", "warning", f"{folder} is not writable: each run compiles anew; set XDG_CACHE_HOME"
        )


def _models() -> Iterator[Finding]:
    names = [model.name for model in named_models()]
    yield Finding("models", "ok", f"{len(names)}: {', '.join(names)}")


def _load() -> Iterator[Finding]:
    reasons = doubts()
    yield Finding("load", "warning" if reasons else "ok", reasons[0] if reasons else "nothing else runs")


_CHECKS = (_crosscast, _compiler, _models, _cache, _extras, _opencl, _cuda, _sensors, _load)
