"""One characterization and nothing else, in a process of its own, so that its memory can be measured.

``python -m benchmarks.whole FOLDER`` characterizes the launch that `save` has put into the folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import crosscast
from benchmarks.kernels import Array, Case, LocalBytes, Workload
from crosscast.kernel import Argument

__all__ = ["save"]

_LAUNCH = "launch.json"


def save(folder: Path, case: Case, workload: Workload) -> None:
    """Write a launch: its sizes, and its arguments as files."""
    args: list[str | int] = []
    for index, arg in enumerate(workload.args):
        if isinstance(arg, LocalBytes):
            args.append(arg.nbytes)
        else:
            np.save(folder / f"{index}.npy", arg)
            args.append(f"{index}.npy")
    launch = {
        "source": str(case.path),
        "kernel": case.name,
        "global_size": workload.global_size,
        "local_size": workload.local_size,
        "args": args,
    }
    (folder / _LAUNCH).write_text(json.dumps(launch), encoding="utf-8")


def _argument(folder: Path, saved: str | int) -> Argument:
    """An argument as `save` has left it: a file, or bytes of local memory."""
    if isinstance(saved, int):
        return crosscast.Local(saved)
    array: Array = np.load(folder / saved)
    scalar: np.generic = array[()]
    return array if array.ndim else scalar


def main() -> None:
    """Characterize the saved launch, with as many threads as Crosscast takes by itself."""
    folder = Path(sys.argv[1])
    launch = json.loads((folder / _LAUNCH).read_text(encoding="utf-8"))
    crosscast.characterize(
        crosscast.Kernel.from_file(launch["source"], launch["kernel"]),
        global_size=launch["global_size"],
        local_size=launch["local_size"],
        args=[_argument(folder, arg) for arg in launch["args"]],
    )


if __name__ == "__main__":
    main()
