"""What is left out within training: nothing of it is learned from."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.corun.partition import JOBS, Jobs, folds_within, folds_without_jobs
from made_mixes import made_mixes


@pytest.mark.parametrize("jobs", JOBS)
def test_every_judged_member_is_left_out_once(jobs: Jobs) -> None:
    mixes = made_mixes()
    folds = folds_within(mixes, jobs, 0)
    np.testing.assert_array_equal(np.sum([fold.test for fold in folds], axis=0), mixes.judged)
    for fold in folds:
        assert not fold.test[fold.train].any()


def test_a_new_job_is_in_no_mix_that_is_learned_from() -> None:
    mixes = made_mixes()
    for fold in folds_within(mixes, "new job", 0):
        tested = np.unique(mixes.job[fold.test])
        assert len(tested)
        assert not np.isin(mixes.job[fold.train], tested).any()


def test_known_jobs_are_left_out_by_sets() -> None:
    mixes = made_mixes(jobs=3)
    number = mixes.job_set
    for fold in folds_within(mixes, "known jobs", 0):
        assert not np.isin(number[fold.train], number[~fold.train]).any()


def test_of_many_members_some_are_left_out() -> None:
    mixes = made_mixes(jobs=2, mixes=1500, members=2)
    folds = folds_within(mixes, "new job", 0)
    assert [int(fold.test.sum()) for fold in folds] == [400, 400]


def test_too_little_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 sets of jobs, found 1"):
        folds_within(made_mixes(mixes=1), "known jobs", 0)
    with pytest.raises(InputError, match="at least 2 jobs to learn from, found 1"):
        folds_within(made_mixes(jobs=1), "new job", 0)
    mixes = made_mixes(jobs=2)
    with pytest.raises(InputError, match="expected mixes without job 1, job 2 to learn from, found none"):
        folds_without_jobs(mixes, [np.array([1, 2])])
