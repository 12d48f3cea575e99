"""Launch files as subjects of measurements, which need the compiler's frontend for types of arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crosscast.characterization import frontend
from crosscast.characterization.engine.arguments import lay_out
from crosscast.characterization.launchfiles.launchfile import read_launches
from crosscast.errors import InputError
from crosscast.kernel import Argument, Launch
from crosscast.suite.application import Array, Queue


class LaunchRunner:
    """Runs the launches of a file: writes their buffers, and launches one after another.

    Nothing is read back, so that each run starts from the same contents.
    """

    def __init__(self, path: Path) -> None:
        launches = read_launches(path)
        programs = {launch.kernel.program for launch in launches}
        if len(programs) != 1:
            raise InputError(f"{path}: expected launches of one program, found {len(programs)} programs")
        for launch in launches:
            if any(launch.global_offset):
                raise InputError(f"{launch.kernel.name}: a launch with a global offset is not measured")
        self.program = programs.pop()
        self.kernels = tuple(dict.fromkeys(launch.kernel.name for launch in launches))
        self._launches = [(launch, _arguments(launch)) for launch in launches]
        buffers = {id(arg): arg for _, args in self._launches for arg in args if isinstance(arg, np.ndarray)}
        self.arrays: tuple[Array, ...] = tuple(buffers.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(array.nbytes for array in self.arrays)

    def run(self, queue: Queue) -> None:
        """Write all buffers, then launch."""
        queue.write(*self.arrays)
        for launch, args in self._launches:
            queue.launch(launch.kernel.name, launch.global_size, launch.local_size, *args)

    def check(self) -> None:
        """Do nothing: a launch file has no expected result."""


def _arguments(launch: Launch) -> tuple[Argument, ...]:
    """Return arguments with vectors and structures as bytes, so that only buffers are arrays."""
    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    # OpenCL checks sizes only; this checks number and types too.
    lay_out(launch, parameters, 0, is_accessed=lambda position: True)
    return tuple(
        np.asarray(arg).tobytes() if parameter.kind == "value" and isinstance(arg, np.ndarray) else arg
        for parameter, arg in zip(parameters, launch.args, strict=True)
    )
