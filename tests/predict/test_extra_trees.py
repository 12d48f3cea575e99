"""The forests as a model: they are those of scikit-learn, and hold on the bundled dataset."""

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from small_grids import rms, small_grid

from crosscast.predict.time.baselines import DeviceMean
from crosscast.predict.time.data import Grid
from crosscast.predict.time.regressors import ExtraTrees, two_parts


def test_a_prediction_is_the_sum_of_a_forest_for_each_part() -> None:
    grid = small_grid()
    parts = two_parts(grid)
    seeds = np.random.default_rng(3).integers(2**31, size=2).tolist()
    level, preference = parts.rows[:, parts.level_places], parts.rows[:, parts.preference_places]
    one = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=0.5, random_state=seeds[0])
    other = ExtraTreesRegressor(20, min_samples_leaf=4, random_state=seeds[1])
    one.fit(level, parts.level, sample_weight=parts.weights)
    other.fit(preference, parts.preference, sample_weight=parts.weights)
    wanted = one.predict(level)[:, None] + other.predict(preference)
    found = ExtraTrees(trees=20).fit(grid, 3).log_time(grid.profiles)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_on_the_bundled_dataset_a_held_out_application_is_predicted_better_than_by_the_mean(
    bundled: Grid,
) -> None:
    groups = bundled.profiles.groups("application")
    errors = {model.name: np.empty_like(bundled.log_time) for model in (ExtraTrees(trees=40), DeviceMean())}
    for group in np.unique(groups)[::3]:
        out = groups == group
        for model in (ExtraTrees(trees=40), DeviceMean()):
            found = model.fit(bundled.take(~out), 0).log_time(bundled.profiles.take(out))
            errors[model.name][out] = found - bundled.log_time[out]
    held_out = np.isin(groups, np.unique(groups)[::3])
    assert rms(errors["extra-trees"][held_out]) < 0.5 * rms(errors["device-mean"][held_out])
