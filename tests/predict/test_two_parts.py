"""Level and preference, and trees on both."""

import numpy as np
from small_grids import small_grid

from crosscast.predict.time.features import FEATURES
from crosscast.predict.time.regressors import LEVEL, PREFERENCE, two_parts

NAMES = {each.name for each in FEATURES}


def test_both_parts_look_at_features_that_there_are() -> None:
    assert set(LEVEL) <= NAMES
    assert set(PREFERENCE) <= NAMES


def test_the_parts_add_up_to_the_times() -> None:
    grid = small_grid()
    parts = two_parts(grid)
    np.testing.assert_allclose(parts.level[:, None] + parts.preference, grid.log_time, atol=1e-12)
    np.testing.assert_allclose(parts.preference.mean(axis=1), 0, atol=1e-12)


def test_columns_of_both_parts_are_theirs_by_name() -> None:
    parts = two_parts(small_grid())
    assert {parts.features.names[place] for place in parts.level_places} == set(LEVEL)
    assert {parts.features.names[place] for place in parts.preference_places} == set(PREFERENCE)


def test_rows_are_numbers_of_single_precision() -> None:
    rows = two_parts(small_grid()).rows
    np.testing.assert_array_equal(rows, rows.astype(np.float32))
