"""Times of the same work are medians over its runs on a device."""

import numpy as np
from made_runs_seen import dataset_of_runs, run

from crosscast.predict.relative.observed import work_times


def test_runs_of_one_work_are_taken_together_whatever_they_were_set_to() -> None:
    runs = [
        run("gpu", time, settings={"block": block}) for time, block in ((1.0, 1.0), (4.0, 2.0), (9.0, 3.0))
    ]
    times = work_times(dataset_of_runs([*runs, run("cpu", 5.0)]))
    assert times.devices == ("cpu", "gpu")
    assert times.times_s[times.rows["sums", "sum", "big", "big"]].tolist() == [5, 4]


def test_work_that_a_device_did_not_do_has_no_time_there() -> None:
    times = work_times(dataset_of_runs([run("cpu", 5.0), run("gpu", 2.0, kernel="scan")]))
    np.testing.assert_array_equal(times.times_s[times.rows["sums", "sum", "big", "big"]], [5, np.nan])
    np.testing.assert_array_equal(times.times_s[times.rows["sums", "scan", "big", "big"]], [np.nan, 2])


def test_nothing_that_failed_counts() -> None:
    assert work_times(dataset_of_runs([run("cpu", 5.0, failure="wrong")])).rows == {}
