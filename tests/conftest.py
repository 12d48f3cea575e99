"""Fixtures that tests of several rooms share."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import crosscast
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.profile import METRICS, Profile
from support import compile_cache, fit_cache
from support.examples import FAST_EXAMPLES
from support.grids import lawful_grid, noisy_grid

# A law holds however busy the machine is. `make test-full` takes the second profile.
_LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", _LAW, max_examples=FAST_EXAMPLES, derandomize=True)
settings.register_profile("full", _LAW, max_examples=100)
settings.load_profile("fast")

# Tens of thousands of collected cases live until the end: the collector of garbage need not pass over them.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--hypothesis-profile") != "full":
        patch = pytest.MonkeyPatch()
        compile_cache.install(patch)
        fit_cache.install(patch)
        if not hasattr(config, "workerinput"):
            compile_cache.prune()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


ProfileMaker = Callable[..., Profile]
ApplicationMaker = Callable[..., Path]

KERNELS = """
kernel void twice(global const int *in, global int *out) { out[get_global_id(0)] = 2 * in[get_global_id(0)]; }
kernel void nothing() {}
kernel void crash(global int *in, global int *out) { out[(long)in[get_global_id(0)] << 40] = 1; }
kernel void endless(global volatile int *in, global int *out) { while (in[0] == 0) out[0]++; }
"""
DRIVER = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from crosscast.errors import CheckFailed, MissingExtraError
from crosscast.suite.application import Application, expect_equal

class Own(Application):
    name = {name!r}
    kernels = {kernels!r}

    def __init__(self, parameters, seed):
        self.values = np.arange(parameters["items"], dtype=np.int32)
        self.out = np.zeros_like(self.values)
        self.arrays = (self.values, self.out)
        self.count = 0
        {init}

    @classmethod
    def fit(cls, nbytes):
        {fit}
        return {{"items": 1024}}

    def run(self, queue):
        self.count += 1
        queue.write(self.values)
        {run}
        for kernel in self.kernels:
            queue.launch(kernel, (1024,), (64,), self.values, self.out)
        queue.read(self.out)

    def check(self):
        {check}
        if self.kernels == ("twice",):
            expect_equal("twice", self.out, 2 * self.values)
"""


@pytest.fixture
def make_profile() -> ProfileMaker:
    """Maker of profiles with plausible facts; named metrics get the given values, others a small one."""

    def make(kernel: str = "reduce", invocation: int = 0, **metrics: Any) -> Profile:
        reals = {metric.name: 0.5 for metric in METRICS if metric.unit in ("1", "bits")}
        counts = {metric.name: 7 for metric in METRICS if metric.unit not in ("1", "bits")}
        values = {**counts, **reals, **metrics}
        return Profile(
            kernel=kernel,
            invocation=invocation,
            metrics={metric.name: values[metric.name] for metric in METRICS},
            timing_s={"compile": 0.011, "instrument": 0.05, "run": 1.5, "run_cpu": 2.5, "metrics": 0.0004},
            launch={"global_size": [256], "local_size": [64], "arguments": ["in: float* 4 KiB"]},
            program={"path": "reduce.cl", "sha256": "ab" * 32, "compiler": "clang 22", "options": ["-DN=3"]},
            environment={"crosscast": "0.1.0", "machine": "x86_64"},
        )

    return make


@pytest.fixture
def make_application(tmp_path: Path) -> ApplicationMaker:
    """Maker of folders with an application of one's own, whose methods begin with the given statements."""

    def make(
        name: str = "own", *, kernels: tuple[str, ...] = ("twice",), source: str = KERNELS, **statements: str
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        body = {method: statements.get(method, "pass") for method in ("init", "fit", "run", "check")}
        (folder / f"{name}.cl").write_text(source)
        (folder / "driver.py").write_text(DRIVER.format(name=name, kernels=kernels, **body))
        return folder

    return make


@pytest.fixture(scope="session")
def lawful() -> Grid:
    """Times that the physical model can tell."""
    return lawful_grid()


@pytest.fixture(scope="session")
def noisy() -> Grid:
    """The same with errors that devices share in part."""
    return noisy_grid()


@pytest.fixture(scope="session")
def bundled() -> Grid:
    """The grid of the dataset that comes with the package."""
    return grid_of(crosscast.bundled_dataset())


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What regions keep for a whole process, as it is when that begins on a machine without sensors."""
    from crosscast.measure.regions import recorder, say_once

    say_once.cache_clear()
    monkeypatch.setattr(recorder, "_OPENED", {"auto": recorder.Metering([])})
    monkeypatch.setattr(recorder, "_applied", None)
    monkeypatch.setattr(recorder, "_HISTORIES", {})
