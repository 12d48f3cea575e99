"""A small program whose loop is a profiled region.

``python examples/profiled_stencil.py [HISTORY.jsonl]`` smooths two grids step by step, and prints what the
history knows of them afterwards: the grids' sizes are told apart by themselves. Without a file the history
is in memory only. Power is there where the machine has a sensor that may be read.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

import crosscast

Grid = npt.NDArray[np.float64]

HISTORY = sys.argv[1] if len(sys.argv) > 1 else None
STEPS = 200


@crosscast.profiled("smooth", history=HISTORY)
def smooth(grid: Grid, new: Grid) -> None:
    """Set each inner point to the mean of its neighbours."""
    new[1:-1, 1:-1] = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4


def relax(size: int) -> float:
    """Smooth a grid with one hot edge; return its mean."""
    grid = np.zeros((size, size))
    grid[0] = 100.0
    new = grid.copy()
    for _ in range(STEPS):
        smooth(grid, new)
        grid, new = new, grid
    return float(grid.mean())


def main() -> None:
    """Relax a small grid and a large one, each a region of its own, and print the history."""
    for size in (128, 512):
        with crosscast.profiled("relax", arguments=(size,), history=HISTORY) as run:
            mean = relax(size)
        print(f"grid of {size} x {size}: mean {mean:.4f}")
    history = run.history
    for key in (*history.keys("relax"), *history.keys("smooth")):
        time_s, power_w = history.mean_time_s(key), history.mean_power_w(key)
        power = "no power" if power_w is None else f"{power_w:.1f} W"
        print(f"{key}: {len(history.runs(key))} runs, {1e6 * (time_s or 0):.0f} µs on average, {power}")


if __name__ == "__main__":
    main()
