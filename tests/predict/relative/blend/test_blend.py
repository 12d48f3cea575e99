"""The blend: vectors as they should be, a mix that suits the data, and nothing lost by keeping it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_work import NAMES, changed, made_work, reordered

from crosscast.errors import InputError
from crosscast.predict.relative.blend import Blend, BlendPredictor, Effort, Mix
from crosscast.predict.relative.data import Vectors, relative_to_slowest
from made_vectors import made_vectors

WORK = made_work(kernels=9, sizes=3, noise=0.1)
SEEN = WORK.observations
FEW = Blend(Effort(20, 100, 0.1), Effort(10, 40, 0.25))


@cache
def fitted() -> BlendPredictor:
    return FEW.fit(WORK, 0)


def with_mix(share: float, anchored: bool) -> BlendPredictor:
    return replace(fitted(), mix=Mix(share, anchored))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_vectors_are_above_0_and_their_largest_entry_is_1_whatever_is_missing(data: st.DataObject) -> None:
    values = st.one_of(st.just(np.nan), st.just(0.0), st.floats(1e-3, 1e15))
    counters = data.draw(st.lists(values, min_size=len(NAMES), max_size=len(NAMES)))
    time_s = data.draw(st.one_of(st.just(np.nan), st.floats(1e-9, 1e6)))
    source = data.draw(st.sampled_from(["cpu", "gpu", "other", "none"]))
    seen = replace(
        SEEN.rows(np.array([0])),
        counters=np.array([counters]),
        time_s=np.array([time_s]),
        source=(source,),
    )
    for predictor in (fitted(), with_mix(1.0, True)):
        found = predictor.predict(seen)
        assert (found > 0).all()
        assert found.max(axis=1).tolist() == [1]


def test_it_is_the_weighted_mean_of_the_logarithms_of_its_parts() -> None:
    trees = fitted().preference.log_relative(SEEN)
    sums = fitted().sums
    assert sums is not None
    for anchored in (False, True):
        expected = np.exp(0.75 * trees + 0.25 * sums.log_relative(SEEN, anchored=anchored))
        np.testing.assert_allclose(with_mix(0.25, anchored).predict(SEEN), relative_to_slowest(expected))
    assert not np.allclose(with_mix(0.25, False).predict(SEEN), with_mix(0.25, True).predict(SEEN))


def test_a_run_without_amounts_is_left_to_the_trees() -> None:
    moved = SEEN.counters[:, 0].copy()
    moved[4] = np.nan
    seen = changed(SEEN, bytes=moved)
    found = with_mix(0.6, False).predict(seen)
    trees = relative_to_slowest(np.exp(fitted().preference.log_relative(seen)))
    np.testing.assert_allclose(found[4], trees[4])
    assert not np.allclose(found[3], trees[3])


def test_where_sums_tell_the_truth_they_have_most_of_the_share() -> None:
    found = fitted()
    assert found.mix.share > 0.8
    assert np.abs(found.predict(SEEN) - WORK.vector).mean() < 0.03


def test_where_sums_tell_nothing_trees_have_most_of_the_share() -> None:
    """How much memory binds decides, of which amounts of work say nothing."""
    bound = SEEN.counters[:, -1]
    rng = np.random.default_rng(2)
    amounts = 10 ** rng.uniform(3, 6, (len(SEEN), 2))
    seen = changed(SEEN, bytes=amounts[:, 0], flops=amounts[:, 1], iterations=1e3, kernels=1.0)
    times_s = np.column_stack([np.full(len(SEEN), 1e-3), 1e-3 * np.exp(6 * bound - 3)])
    seen = replace(seen, time_s=times_s[:, 0])
    assert FEW.fit(Vectors(seen, WORK.devices, times_s), 0).mix.share < 0.4


def test_own_times_are_taken_where_they_tell_more() -> None:
    """All sums are wrong by the same on the CPU as on the GPU, or each by its own."""
    rng = np.random.default_rng(3)
    wrong = np.repeat(np.exp(rng.normal(0, 1.5, 9)), 3)
    together, apart = WORK.times_s * wrong[:, np.newaxis], WORK.times_s.copy()
    apart[:, 0] *= wrong
    mixes = [
        FEW.fit(Vectors(replace(SEEN, time_s=times_s[:, 0]), WORK.devices, times_s), 0).mix
        for times_s in (together, apart)
    ]
    assert [mix.anchored for mix in mixes] == [False, True]


def test_without_amounts_of_work_there_are_trees_alone() -> None:
    vectors = made_vectors(applications=4)
    found = FEW.fit(vectors, 0)
    assert found.sums is None
    assert found.mix == Mix(0.0, False)
    assert (found.predict(vectors.observations).max(axis=1) == 1).all()


def test_a_run_is_predicted_alone_as_among_others() -> None:
    whole = fitted().predict(SEEN)
    for row in (0, 7):
        np.testing.assert_allclose(fitted().predict(SEEN.rows(np.array([row])))[0], whole[row], rtol=1e-12)


def test_the_order_of_counters_does_not_matter_to_the_blend() -> None:
    turned = FEW.fit(replace(WORK, observations=reordered(SEEN, [3, 1, 4, 0, 2])), 0)
    np.testing.assert_array_equal(turned.predict(SEEN), fitted().predict(SEEN))


def test_devices_in_another_order_have_nearly_the_same_vectors() -> None:
    turned = FEW.fit(replace(WORK, devices=WORK.devices[::-1], times_s=WORK.times_s[:, ::-1]), 0)
    np.testing.assert_allclose(turned.predict(SEEN)[:, ::-1], fitted().predict(SEEN), rtol=1e-3)


def test_kernels_are_left_out_alike_in_whatever_order_rows_are() -> None:
    order = np.random.default_rng(1).permutation(len(WORK))
    mix = FEW.fit(WORK.rows(order), 0).mix
    assert mix.anchored == fitted().mix.anchored
    assert mix.share == pytest.approx(fitted().mix.share, abs=0.02)


def test_the_same_rows_and_seed_give_the_same_blend() -> None:
    again = FEW.fit(WORK, 0).state()
    assert again.keys() == fitted().state().keys()
    assert all(np.array_equal(array, again[name]) for name, array in fitted().state().items())


@pytest.mark.parametrize("kernels", [1, 2, 3])
def test_a_few_kernels_are_enough(kernels: int) -> None:
    """A kernel left out of two leaves one run, from which nothing differs."""
    few = made_work(kernels=kernels, sizes=2 if kernels == 1 else 1)
    found = FEW.fit(few, 0)
    assert (found.predict(SEEN).max(axis=1) == 1).all()
    if kernels < 3:
        assert found.mix == Mix(0.5, True)


def test_a_kernel_that_alone_lacks_an_amount_does_not_spoil_the_mix() -> None:
    done = SEEN.counters[:, 1].copy()
    done[:3] = np.nan
    found = FEW.fit(replace(WORK, observations=changed(SEEN, flops=done)), 0)
    assert found.sums is not None
    assert found.sums.prices[2].tolist() == [0, 0]
    assert 0 < found.mix.share < 1
    assert found.mix.share != 0.5


def test_nothing_can_be_learned_from_no_run() -> None:
    with pytest.raises(InputError, match=r"^blend: expected a run to learn from, found none$"):
        FEW.fit(WORK.rows(np.array([], dtype=np.int64)), 0)


@pytest.mark.parametrize("vectors", [WORK, made_vectors(applications=4)], ids=["with sums", "without"])
def test_the_blend_comes_back_from_its_arrays(vectors: Vectors) -> None:
    found = FEW.fit(vectors, 1)
    again = BlendPredictor.from_state(found.state())
    assert again.mix == found.mix
    np.testing.assert_array_equal(again.predict(vectors.observations), found.predict(vectors.observations))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"share": np.array([1.5])}, "share: expected one number from 0 to 1, found [1.5]"),
        ({"share": np.array([0.5, 0.5])}, "share: expected one number from 0 to 1, found [0.5, 0.5]"),
        ({"share": np.array([np.nan])}, "share: expected finite numbers, found others"),
        ({"anchored": np.array([2])}, "anchored: expected integers from 0 to 1, found 2 to 2"),
        ({"anchored": np.array([0, 1])}, "anchored: expected one integer, found [0, 1]"),
        ({"share": None}, "expected an array 'share'"),
        ({"prices": None}, "expected an array 'prices'"),
        ({"priced_devices": None}, "expected an array 'priced_devices'"),
        ({"prices": None, "priced_devices": None}, "expected an array 'priced_devices'"),
        (
            {"prices": np.ones((4, 3)), "priced_devices": np.array(["a", "b", "c"])},
            "prices: expected 2 devices, found 3",
        ),
    ],
)
def test_a_damaged_blend_is_refused(
    changes: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None], reason: str
) -> None:
    state = {name: array for name, array in fitted().state().items() if name not in changes}
    state |= {name: array for name, array in changes.items() if array is not None}
    with pytest.raises(InputError) as caught:
        BlendPredictor.from_state(state)
    assert str(caught.value).startswith(f"model: {reason}")
    assert "\n" not in str(caught.value)


def test_a_blend_names_counters_that_it_does_not_look_at() -> None:
    seen = replace(SEEN, names=(*NAMES[:-1], "odd"))
    assert fitted().unknown_counters(seen) == ("odd",)
