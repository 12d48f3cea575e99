"""What each command of the command line does; a module is imported when its command runs."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Known to type checkers, so that what a command declares is compared with what does its work.
    from crosscast.commands import (
        calibrate,
        capture,
        characterize,
        choose,
        colocate,
        compare,
        corun,
        corun_translate,
        dataset,
        dataset_build,
        dataset_import,
        devices,
        doctor,
        embed,
        evaluate,
        explain,
        hooks,
        measure,
        models,
        placements,
        predict,
        predict_corun,
        predict_relative,
        report,
        reproduce,
        serve,
        simulate,
        train,
        tune,
    )

__all__ = [
    "calibrate",
    "capture",
    "characterize",
    "choose",
    "colocate",
    "compare",
    "corun",
    "corun_translate",
    "dataset",
    "dataset_build",
    "dataset_import",
    "devices",
    "doctor",
    "embed",
    "evaluate",
    "explain",
    "hooks",
    "measure",
    "models",
    "placements",
    "predict",
    "predict_corun",
    "predict_relative",
    "report",
    "reproduce",
    "serve",
    "simulate",
    "train",
    "tune",
]


def __getattr__(name: str) -> ModuleType:
    """Import the module of a command when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'crosscast.commands' has no attribute {name!r}")
    return importlib.import_module(f"crosscast.commands.{name}")
