"""Crosscast: predict run time and power on devices and configurations you have not measured.

The public names below load on first use, so that ``import crosscast`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosscast import errors
    from crosscast.characterization import characterize
    from crosscast.characterization.launchfiles.launches import read_launches
    from crosscast.cluster.machines import Machine
    from crosscast.cluster.simulate import simulate
    from crosscast.cluster.traces.swf_reading import read_swf
    from crosscast.configuration import Configuration
    from crosscast.decide.selector import Selector
    from crosscast.kernel import Image, Kernel, Launch, Local, Parameter, Program, Sampler
    from crosscast.measure.opencl.profiled_queue import ProfiledQueue
    from crosscast.measure.regions.profiled import profiled
    from crosscast.measure.regions.reading import read_history
    from crosscast.predict.loading import load_model
    from crosscast.profile import METRICS, Profile
    from crosscast.questions import evaluate, train
    from crosscast.tables.bundled import bundled_dataset
    from crosscast.tables.dataset import Dataset, read_dataset
    from crosscast.tables.joined import join

__version__ = "0.1.0"

__all__ = [
    "METRICS",
    "Configuration",
    "Dataset",
    "Image",
    "Kernel",
    "Launch",
    "Local",
    "Machine",
    "Parameter",
    "Profile",
    "ProfiledQueue",
    "Program",
    "Sampler",
    "Selector",
    "__version__",
    "bundled_dataset",
    "characterize",
    "errors",
    "evaluate",
    "join",
    "load_model",
    "profiled",
    "read_dataset",
    "read_history",
    "read_launches",
    "read_swf",
    "simulate",
    "train",
]

_HOMES = {
    "METRICS": "crosscast.profile",
    "Configuration": "crosscast.configuration",
    "Dataset": "crosscast.tables.dataset",
    "Image": "crosscast.kernel",
    "Kernel": "crosscast.kernel",
    "Launch": "crosscast.kernel",
    "Local": "crosscast.kernel",
    "Machine": "crosscast.cluster.machines",
    "Parameter": "crosscast.kernel",
    "Profile": "crosscast.profile",
    "ProfiledQueue": "crosscast.measure.opencl.profiled_queue",
    "Program": "crosscast.kernel",
    "Sampler": "crosscast.kernel",
    "Selector": "crosscast.decide.selector",
    "bundled_dataset": "crosscast.tables.bundled",
    "characterize": "crosscast.characterization",
    "evaluate": "crosscast.questions",
    "join": "crosscast.tables.joined",
    "load_model": "crosscast.predict.loading",
    "profiled": "crosscast.measure.regions.profiled",
    "read_dataset": "crosscast.tables.dataset",
    "read_history": "crosscast.measure.regions.reading",
    "read_launches": "crosscast.characterization.launchfiles.launches",
    "read_swf": "crosscast.cluster.traces.swf_reading",
    "simulate": "crosscast.cluster.simulate",
    "train": "crosscast.questions",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name == "errors":
        return importlib.import_module("crosscast.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'crosscast' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted(__all__)
