"""What applications are compared by: where it comes from, and what stands in for what is not known."""

from dataclasses import replace

import numpy as np
import pytest
from made_co_runs import made_solo
from numpy.testing import assert_allclose, assert_array_equal

from crosscast.errors import InputError
from crosscast.predict.corun.features import MemberRows, Traits, distinct
from crosscast.tables.corun.solo import Solo

THREE = [made_solo(name) for name in ("bfs", "cfd", "crc")]


def bare(name: str, **features: float) -> Solo:
    return Solo(name, "s", "d", 1.0, features=features)


def test_traits_are_what_more_than_half_of_the_applications_have() -> None:
    solos = [
        bare("a", utilisation=0.5, slowdown_low=1.1),
        bare("b", utilisation=0.7),
        bare("c", slowdown_low=1.0),
        bare("d", ipc=2.0),
        bare("e", utilisation=0.9),
    ]
    found = Traits.of(solos)
    assert found.names == ("utilisation",)
    assert_array_equal(found.traited(solos).near[:, 0], [0.5, 0.7, 0.7, 0.7, 0.9])


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_slowdown_with_a_microbenchmark_that_cannot_be_is_not_known(value: float) -> None:
    solos = [bare("a", slowdown_low=1.5), bare("b", slowdown_low=3.0), bare("c", slowdown_low=value)]
    near = Traits.of(solos).traited(solos).near[:, 0]
    assert_allclose(near, np.log([1.5, 3.0, np.sqrt(4.5)]))


def test_a_share_of_0_is_a_share() -> None:
    solos = [bare("a", utilisation=0.0), bare("b", utilisation=1.0)]
    assert_array_equal(Traits.of(solos).traited(solos).near[:, 0], [0.0, 1.0])


def test_traits_that_are_all_the_same_tell_nothing_and_break_nothing() -> None:
    solos = [bare(name, utilisation=0.5) for name in "abc"]
    found = Traits.of(solos).traited(solos)
    assert_array_equal(found.load, np.zeros(3))


def test_without_traits_the_load_is_the_lowest_rate_alone() -> None:
    solos = [bare("a", k80_steps_per_s=1.0, v100_steps_per_s=2.0), bare("b", k80_steps_per_s=2.0)]
    both = [replace(solo, features={"v100_steps_per_s": 4.0, **solo.features}) for solo in solos]
    assert Traits.of(both).load == "k80_steps_per_s"
    # Slower is more load.
    load = Traits.of(both).traited(both).load
    assert load[0] > load[1]


def test_without_rates_the_load_is_the_time_alone_and_what_is_not_known_is_in_the_middle() -> None:
    solos = [bare("a"), replace(bare("b"), time_s=np.e**2), replace(bare("c"), time_s=None)]
    found = Traits.of(solos)
    assert found.load == "time_s"
    assert_allclose(found.traited(solos).load[2], 0.0, atol=1e-12)
    unknown = [replace(solo, time_s=None) for solo in solos]
    assert_array_equal(Traits.of(unknown).traited(unknown).load, np.zeros(3))


def test_a_load_that_is_not_known_is_the_mean_of_the_training_whoever_else_is_asked_about() -> None:
    known = [bare("a", k80_steps_per_s=1.0), bare("b", k80_steps_per_s=9.0)]
    found, new = Traits.of(known), bare("c")
    for asked in ([new], [new, known[0]], [new, known[1]]):
        assert_allclose(found.traited(asked).load[0], 0.0, atol=1e-12)


def test_who_leaves_the_memory_system_idle_is_known_by_its_use() -> None:
    solos = [bare("a", memory_utilisation=0.001), bare("b", memory_utilisation=0.5), bare("c")]
    assert Traits.of(solos).traited(solos).idle.tolist() == [True, False, False]


def test_traits_come_back_from_their_arrays() -> None:
    found = Traits.of(THREE)
    again = Traits.from_state(found.state())
    first, second = found.traited(THREE), again.traited(THREE)
    for name in vars(first):
        assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize(
    "damage", [{"middle": np.zeros(7)}, {"scale": np.array([0.0, 0.0])}, {"load": np.array(["a", "b"])}]
)
def test_damaged_arrays_of_traits_are_refused(damage: dict[str, np.ndarray]) -> None:
    with pytest.raises(InputError, match=r"^model: traits: expected a middle for each name"):
        Traits.from_state({**Traits.of(THREE).state(), **damage})


def test_rows_count_who_is_beside_whom() -> None:
    bags = [(THREE[0], THREE[2]), (THREE[1], THREE[1], THREE[0])]
    solos, places = distinct(bags)
    rows = MemberRows.of(bags, places)
    assert [solo.application for solo in solos] == ["bfs", "cfd", "crc"]
    assert rows.own.tolist() == [0, 2, 1, 1, 0]
    assert rows.beside.tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 2, 0]]
    assert rows.bag.tolist() == [0, 0, 1, 1, 1]
    assert rows.members.tolist() == [2, 2, 3, 3, 3]


def test_an_application_that_was_profiled_twice_is_two() -> None:
    other = replace(THREE[0], features={"utilisation": 0.9})
    solos, places = distinct([(THREE[0], other), (THREE[0], THREE[1])])
    assert [solo.application for solo in solos] == ["bfs", "bfs", "cfd"]
    assert len(set(places.values())) == 3
