"""How much another toolchain's profiles change predictions, where both have profiled the same launches."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from made_grids import NAMES, lawful_grid

from crosscast.arrays import Reals
from crosscast.evaluate.time_study import effect_of
from crosscast.predict.time.data import Grid, Profiles, Toolchain, metric

OTHER = Toolchain("gcc", ("-O0",))


@dataclass(frozen=True)
class Counting:
    """A model by which time is instructions, times the number of launches."""

    def log_time(self, profiles: Profiles) -> Reals:
        times: Reals = np.log(metric(profiles, "total_instruction_count") * profiles.invocations)[:, None]
        return times


def changed(grid: Grid, name: str, factor: Reals | float) -> Grid:
    metrics = grid.profiles.metrics.copy()
    metrics[:, NAMES.index(name)] *= factor
    return replace(grid, profiles=replace(grid.profiles, metrics=metrics))


def test_the_effect_is_the_ratio_of_predictions_over_all_launches_in_both() -> None:
    grid = lawful_grid()
    factors = np.linspace(0.8, 1.6, len(grid.profiles))
    effect = effect_of(Counting(), grid, changed(grid, "total_instruction_count", factors), OTHER)
    assert effect is not None
    assert (effect.toolchain, effect.kernels) == (OTHER, 48)
    assert effect.factor == pytest.approx(1.2, rel=1e-3)
    assert effect.low == pytest.approx(0.88, rel=1e-3)
    assert effect.high == pytest.approx(1.52, rel=1e-3)


def test_launches_of_another_amount_of_work_are_not_the_same() -> None:
    grid = lawful_grid()
    factors = np.where(np.arange(len(grid.profiles)) < 40, 3.0, 1.5)
    effect = effect_of(Counting(), grid, changed(grid, "total_instruction_count", factors), OTHER)
    assert effect is not None
    assert effect.kernels == 8
    assert effect_of(Counting(), grid, changed(grid, "work_items", 2.0), OTHER) is None


def test_how_often_a_kernel_was_launched_is_no_effect() -> None:
    grid = lawful_grid()
    often = replace(grid, profiles=replace(grid.profiles, invocations=np.full(48, 9)))
    effect = effect_of(Counting(), grid, often, OTHER)
    assert effect is not None
    assert effect.factor == pytest.approx(1)


def test_kernels_of_other_names_are_not_compared() -> None:
    grid = lawful_grid()
    renamed = replace(grid.profiles, kernel=tuple(f"{name}_" for name in grid.profiles.kernel))
    assert effect_of(Counting(), grid, replace(grid, profiles=renamed), OTHER) is None
