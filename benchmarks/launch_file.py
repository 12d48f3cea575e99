"""Launch files of benchmark cases, so that the command line can run them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.kernels import Argument, Case, LocalBytes, Workload

_TYPES = {"float32": "float", "int32": "int", "uint32": "uint", "uint8": "uchar"}


def save(folder: Path, case: Case, workload: Workload) -> Path:
    """Write a workload's launch file, and a ``.npy`` file for each buffer, and return the former's path."""
    lines = [
        f'source = "{case.path}"',
        f'kernel = "{case.function}"',
        f"global = {list(workload.global_size)}",
        f"local = {list(workload.local_size)}",
    ]
    for index, arg in enumerate(workload.args):
        lines += ["", "[[arg]]", *_argument(folder, index, arg)]
    path = folder / f"{case.name}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _argument(folder: Path, index: int, arg: Argument) -> list[str]:
    """Fields of one argument; a buffer's values go into a file of their own."""
    if isinstance(arg, LocalBytes):
        return [f"local = {arg.nbytes}"]
    declared = f'type = "{_TYPES[arg.dtype.name]}"'
    if isinstance(arg, np.generic):
        return [declared, f"value = {arg.item()}"]
    np.save(folder / f"{index}.npy", arg.reshape(-1))
    return [declared, f'file = "{index}.npy"']
