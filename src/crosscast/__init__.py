"""Crosscast: predict run time and power on devices and configurations you have not measured.

The public names below load on first use, so that ``import crosscast`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosscast import errors
    from crosscast.api import QUESTIONS, evaluate, train
    from crosscast.characterization import characterize
    from crosscast.characterization.launchfiles import read_launches
    from crosscast.cluster import Machine
    from crosscast.cluster.metrics import metrics_of as schedule_metrics
    from crosscast.cluster.simulate import simulate
    from crosscast.cluster.trace_files import read_swf
    from crosscast.comparison import compare
    from crosscast.data.configuration import Configuration
    from crosscast.data.corun import read_profile as read_corun_profile
    from crosscast.data.dataset import Dataset, bundled_dataset, read_dataset
    from crosscast.data.views import join
    from crosscast.decide.colocation import choose_colocation as colocate
    from crosscast.decide.selector import Selector
    from crosscast.devices.catalogue import device_named
    from crosscast.evaluation.schema import evaluation_schema
    from crosscast.forecasting import explain, predict
    from crosscast.kernel import Image, Kernel, Launch, Local, Parameter, Program, Sampler
    from crosscast.measure.calibration import calibrate
    from crosscast.measure.measurement import measure_times
    from crosscast.measure.regions import read_history
    from crosscast.measure.regions.recorder import Profiled as profiled  # noqa: N813 - its public name
    from crosscast.measure.regions.recorder import ProfiledQueue
    from crosscast.prediction.named_models import load_model
    from crosscast.prediction.relative.observed import observations_of as read_runs
    from crosscast.profile import METRICS, Profile
    from crosscast.report.page import write_report
    from crosscast.suite.application import (
        Application,
        Array,
        Parameters,
        Queue,
        application,
        expect_close,
        whole_groups,
        working_set,
    )
    from crosscast.suite.profiles import profiles_of
    from crosscast.tracing.program import capture
    from crosscast.tuning.tune import tune

__version__ = "0.2.0"

__all__ = [
    "METRICS",
    "QUESTIONS",
    "Application",
    "Array",
    "Configuration",
    "Dataset",
    "Image",
    "Kernel",
    "Launch",
    "Local",
    "Machine",
    "Parameter",
    "Parameters",
    "Profile",
    "ProfiledQueue",
    "Program",
    "Queue",
    "Sampler",
    "Selector",
    "__version__",
    "application",
    "bundled_dataset",
    "calibrate",
    "capture",
    "characterize",
    "colocate",
    "compare",
    "device_named",
    "errors",
    "evaluate",
    "evaluation_schema",
    "expect_close",
    "explain",
    "join",
    "load_model",
    "measure_times",
    "predict",
    "profiled",
    "profiles_of",
    "read_corun_profile",
    "read_dataset",
    "read_history",
    "read_launches",
    "read_runs",
    "read_swf",
    "schedule_metrics",
    "simulate",
    "train",
    "tune",
    "whole_groups",
    "working_set",
    "write_report",
]

_NAMES = {
    "crosscast.api": "QUESTIONS evaluate train",
    "crosscast.characterization": "characterize",
    "crosscast.characterization.launchfiles": "read_launches",
    "crosscast.cluster": "Machine",
    "crosscast.cluster.metrics": "schedule_metrics=metrics_of",
    "crosscast.cluster.simulate": "simulate",
    "crosscast.cluster.trace_files": "read_swf",
    "crosscast.comparison": "compare",
    "crosscast.data.configuration": "Configuration",
    "crosscast.data.corun": "read_corun_profile=read_profile",
    "crosscast.data.dataset": "Dataset bundled_dataset read_dataset",
    "crosscast.data.views": "join",
    "crosscast.decide.colocation": "colocate=choose_colocation",
    "crosscast.decide.selector": "Selector",
    "crosscast.devices.catalogue": "device_named",
    "crosscast.evaluation.schema": "evaluation_schema",
    "crosscast.forecasting": "explain predict",
    "crosscast.kernel": "Image Kernel Launch Local Parameter Program Sampler",
    "crosscast.measure.calibration": "calibrate",
    "crosscast.measure.measurement": "measure_times",
    "crosscast.measure.regions": "read_history",
    "crosscast.measure.regions.recorder": "ProfiledQueue profiled=Profiled",
    "crosscast.prediction.named_models": "load_model",
    "crosscast.prediction.relative.observed": "read_runs=observations_of",
    "crosscast.profile": "METRICS Profile",
    "crosscast.report.page": "write_report",
    "crosscast.suite.application": (
        "Application Array Parameters Queue application expect_close whole_groups working_set"
    ),
    "crosscast.suite.profiles": "profiles_of",
    "crosscast.tracing.program": "capture",
    "crosscast.tuning.tune": "tune",
}
"""Public names by the module that defines them, after ``=`` the name that it has there."""

_HOMES = {
    word.partition("=")[0]: f"{module}:{word.rpartition('=')[2]}"
    for module, words in _NAMES.items()
    for word in words.split()
}
"""Definitions of the public names, as ``module:name``."""


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name == "errors":
        return importlib.import_module("crosscast.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'crosscast' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted(__all__)
