"""Fixtures that tests of several rooms share."""

from collections.abc import Callable
from typing import Any

import pytest

from crosscast.profile import METRICS, Profile

ProfileMaker = Callable[..., Profile]


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
