"""Baselines, which ignore applications: means as by hand, and time sharing."""

from __future__ import annotations

import numpy as np
import pytest

from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from crosscast.prediction.corun.models import Mean, Sum
from support.refusals import refusal

A = IsolatedRun("a", "s", "d", 1.0, power_w=30.0)
B = IsolatedRun("b", "s", "d", 3.0, power_w=50.0)
UNKNOWN = IsolatedRun("c", "s", "d", None)


def mix(*slowed: tuple[IsolatedRun, float | None], **known: float | bool | None) -> MeasuredMix:
    members = tuple(Member(isolated_run, slowdown) for isolated_run, slowdown in slowed)
    return MeasuredMix("mix", "d", members, **known)  # type: ignore[arg-type]


def runs(*mixes: MeasuredMix) -> CoRuns:
    return CoRuns("made-up", (A, B), mixes)


def test_the_mean_is_that_of_mixes_of_the_same_size() -> None:
    pairs = [
        mix((A, 1.0), (B, 4.0), power_w=80.0, fits=True),
        mix((A, 2.0), (B, 2.0), power_w=60.0, fits=False),
    ]
    three = mix((A, 8.0), (A, 8.0), (B, 8.0), power_w=100.0)
    said = Mean().fit(runs(*pairs, three)).predict([(A, B), (A, B, B)])
    assert said.slowdown[0] == pytest.approx([2.0, 2.0])
    assert said.slowdown[1] == pytest.approx([8.0] * 3)
    assert said.power_w.tolist() == [70.0, 100.0]
    # Of threes it is not known whether they fit: what is known of all mixes stands in.
    assert said.fits.tolist() == [0.5, 0.5]


def test_times_keep_their_place_between_the_longest_and_the_sum_or_follow_from_slowdowns() -> None:
    """3.25 s of 3 to 4 s is a quarter: 6.5 s of 6 to 8."""
    double = IsolatedRun("d", "s", "d", 2.0), IsolatedRun("e", "s", "d", 6.0)
    said = Mean().fit(runs(mix((A, None), (B, None), time_s=3.25))).predict([double])
    assert said.time_s == pytest.approx([6.5])
    assert np.isnan(said.slowdown[0]).all()
    said = Mean().fit(runs(mix((A, 2.0), (B, 2.0)))).predict([(A, B), (A, UNKNOWN)])
    assert said.time_s == pytest.approx([2.0 + 2.0, np.nan], nan_ok=True)


def test_failed_mixes_teach_nothing() -> None:
    failed = MeasuredMix("f", "d", (Member(A, 9.0), Member(B, None, "killed")))
    assert Mean().fit(runs(failed, mix((A, 2.0), (B, 2.0)))).predict([(A, B)]).slowdown[0] == pytest.approx(
        [2.0, 2.0]
    )
    assert refusal(Mean().fit, runs(failed)) == "made-up: expected mixes to learn from, found none"


def test_members_that_take_turns_wait_for_all() -> None:
    said = Sum().fit(runs()).predict([(A, B), (A, A, B), (A, UNKNOWN)])
    assert said.time_s == pytest.approx([4.0, 5.0, np.nan], nan_ok=True)
    assert [each.tolist() for each in said.slowdown] == [[2.0] * 2, [3.0] * 3, [2.0] * 2]
    assert said.power_w == pytest.approx([(30 + 150) / 4, (60 + 150) / 5, np.nan], nan_ok=True)
