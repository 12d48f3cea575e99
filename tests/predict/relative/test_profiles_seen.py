"""Profiles are observations of no device."""

import numpy as np

from crosscast.predict.relative.data import NO_SOURCE, profiles_seen
from crosscast.predict.time.data import Profiles
from crosscast.profile import METRICS


def test_metrics_that_some_have_are_counters_by_their_names() -> None:
    metrics = np.full((2, len(METRICS)), np.nan)
    metrics[:, 0], metrics[1, 2] = (3, 4), 7
    seen = profiles_seen(Profiles(("a", "b"), ("k", "l"), ("s", "t"), metrics, np.array([1, 9])))
    assert seen.names == (METRICS[0].name, METRICS[2].name)
    np.testing.assert_array_equal(seen.counters, [[3, np.nan], [4, 7]])
    assert (seen.application, seen.kernel) == (("a", "b"), ("k", "l"))
    assert seen.size == seen.scale == ("s", "t")
    assert seen.source == (NO_SOURCE, NO_SOURCE)
    assert seen.settings.tolist() == [[1], [9]]
