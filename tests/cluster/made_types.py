"""Job types that tests make up."""

import numpy as np

from crosscast.cluster.job_types import JobTypes

NONE = float("nan")


def made_types(**changed: object) -> JobTypes:
    """Three types on the devices ``cpu``, ``fpga`` and ``gpu``; no time on ``fpga`` but a prediction."""
    cells: dict[str, object] = {
        "devices": ("cpu", "fpga", "gpu"),
        "application": ("lud", "lud", "nw"),
        "kernel": ("diagonal", "internal", None),
        "size": ("small", "small", None),
        "procs": np.array([1, 2, 1]),
        "uses_gpu": np.array([True, True, False]),
        "repeats": np.array([10, 1, 1]),
        "submit_s": None,
        "user": (None, "ann", None),
        "times_s": np.array([[2.0, NONE, 0.5], [3.0, NONE, NONE], [NONE, NONE, 0.1]]),
        "predicted": np.array([[1.0, 0.75, 0.25], [NONE, NONE, NONE], [1.0, 0.5, 0.5]]),
        "source": ("cpu", None, "cpu"),
        "model": ("xgboost", None, "xgboost"),
    }
    return JobTypes(**(cells | changed))  # type: ignore[arg-type]
