"""What stands in the buffers of a launch before and after a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosscast.characterization.engine.arguments import Memory

__all__ = ["copy_back", "restore", "snapshot"]


def snapshot(memory: Memory, is_written: Callable[[int], bool]) -> dict[int, bytes]:
    """Content of the buffers that a run would change for good, should it have to be run again.

    Parameters
    ----------
    memory
        The launch's memory.
    is_written
        Whether the kernel may write to the buffer of the argument at a position.
    """
    return {
        placed.position: placed.shared.data.tobytes()
        for placed in memory.placed
        if placed.copied_from is None and is_written(placed.position)
    }


def restore(memory: Memory, before: dict[int, bytes]) -> None:
    """Put back what `snapshot` found."""
    for placed in memory.placed:
        if placed.position in before:
            placed.shared.data[:] = np.frombuffer(before[placed.position], np.uint8)


def copy_back(memory: Memory) -> None:
    """Copy the output to the arrays that were copied into buffers."""
    for placed in memory.placed:
        array = placed.copied_from
        if array is not None and array.flags.writeable:
            array[...] = placed.shared.data.view(array.dtype).reshape(array.shape)
