"""Drawing workloads: every type as often, exponential times between submissions."""

import numpy as np
from scipy.stats import chisquare, kstest

from crosscast.cluster.experiment import draw_types, submissions


def test_types_are_drawn_equally_often_with_replacement() -> None:
    places = draw_types(7, 70_000, np.random.default_rng(1))
    assert set(places.tolist()) == set(range(7))
    assert chisquare(np.bincount(places)).pvalue > 0.001


def test_jobs_are_submitted_after_exponential_times_the_first_at_once() -> None:
    submit_s = submissions(20_000, 4.0, np.random.default_rng(1))
    assert submit_s[0] == 0
    assert kstest(np.diff(submit_s), "expon", args=(0, 4.0)).pvalue > 0.001


def test_a_batch_is_submitted_at_once() -> None:
    assert not submissions(10, 0.0, np.random.default_rng(1)).any()
