"""What a profile says about the launch and the program that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.frontend import Frontend
from crosscast.kernel import Argument, Launch, Parameter, Program


def describe_launch(launch: Launch, parameters: Sequence[Parameter], threads: int) -> dict[str, Any]:
    """Sizes and arguments of a launch."""
    shared = {} if launch.shared is None else {"shared_bytes": launch.shared}
    return {
        "global_size": list(launch.global_size),
        "local_size": list(launch.local_size),
        "global_offset": list(launch.global_offset or (0,) * len(launch.global_size)),
        **shared,
        "threads": threads,
        "arguments": [_describe(p, a) for p, a in zip(parameters, launch.args, strict=True)],
    }


def work_counts(counts: Counts) -> dict[str, Any]:
    """What a launch did, for a verdict on it (docs/metrics.md): operations, bytes, instructions by class."""
    return {**dict(sorted(counts.work.items())), "instructions": dict(sorted(counts.classes.items()))}


def describe_program(program: Program, compiled: Frontend) -> dict[str, Any]:
    """Where a program comes from, and what compiled it how."""
    return {
        "path": str(program.path) if program.path else None,
        "form": program.form,
        "sha256": program.sha256,
        "compiler": compiled.compiler,
        "standard": program.standard,
        "options": list(program.options),
    }


def _describe(parameter: Parameter, argument: Argument) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": parameter.name, "type": parameter.type_name, "kind": parameter.kind}
    array = getattr(argument, "array", argument)
    if isinstance(array, np.ndarray) and parameter.kind != "value":
        entry["nbytes"] = int(array.nbytes)
        entry["shape"] = list(array.shape)
    elif parameter.kind == "local":
        entry["nbytes"] = int(getattr(argument, "nbytes", 0))
    elif isinstance(argument, np.generic) and argument.dtype.names is None:
        entry["value"] = argument.item()
    return entry
