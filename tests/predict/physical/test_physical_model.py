"""The physical model finds a law again, scales as physics does, and comes back from its arrays."""

import numpy as np

from crosscast.predict.time.data import Grid
from crosscast.predict.time.physical import Physical, PhysicalPredictor


def test_a_law_of_its_own_kind_is_told_for_an_application_it_never_saw(lawful: Grid) -> None:
    out = lawful.profiles.groups("application") == 2
    predicted = Physical().fit(lawful.take(~out), 0).log_time(lawful.profiles.take(out))
    errors = predicted - lawful.log_time[out]
    baseline = lawful.log_time[~out].mean(axis=0) - lawful.log_time[out]
    assert np.median(np.abs(errors)) < 0.2
    assert np.sqrt((errors**2).mean()) < 0.3 * np.sqrt((baseline**2).mean())


def test_it_is_better_than_a_mean_on_what_was_measured(bundled: Grid) -> None:
    out = bundled.profiles.groups("application") == 0
    predicted = Physical().fit(bundled.take(~out), 0).log_time(bundled.profiles.take(out))
    mean = bundled.log_time[~out].mean(axis=0)
    assert np.abs(predicted - bundled.log_time[out]).mean() < np.abs(mean - bundled.log_time[out]).mean() / 2


def test_cells_that_were_not_measured_do_not_matter(lawful: Grid) -> None:
    gaps = lawful.log_time.copy()
    gaps[::7, 0] = np.nan
    gaps[3::7, 3] = np.nan
    holed = Grid(lawful.profiles, lawful.devices, gaps, lawful.spread, lawful.runs)
    predicted = Physical().fit(holed, 0).log_time(lawful.profiles)
    assert np.isfinite(predicted).all()
    assert np.sqrt(((predicted - lawful.log_time) ** 2).mean()) < 0.3


def test_kernels_without_any_time_do_not_matter(lawful: Grid) -> None:
    gaps = lawful.log_time.copy()
    gaps[:3] = np.nan
    holed = Grid(lawful.profiles, lawful.devices, gaps, lawful.spread, lawful.runs)
    predicted = Physical().fit(holed, 0).log_time(lawful.profiles)
    assert np.sqrt(((predicted - lawful.log_time) ** 2).mean()) < 0.3


def test_it_comes_back_from_its_arrays(lawful: Grid) -> None:
    predictor = Physical().fit(lawful, 0)
    again = PhysicalPredictor.from_state(predictor.state())
    np.testing.assert_array_equal(again.log_time(lawful.profiles), predictor.log_time(lawful.profiles))


def test_kernels_are_predicted_apart_as_together(lawful: Grid) -> None:
    predictor = Physical().fit(lawful, 0)
    together = predictor.log_time(lawful.profiles)
    apart = [predictor.log_time(lawful.profiles.take(np.array([row])))[0] for row in range(5)]
    np.testing.assert_allclose(together[:5], apart, rtol=1e-13)
