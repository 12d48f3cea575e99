import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.schema import SIZES
from crosscast.errors import InputError
from crosscast.suite.application import TYPICAL, Caches, working_set

capacities = st.lists(st.integers(1, 1 << 40), min_size=3, max_size=3).map(sorted)


def test_sizes_fit_the_caches_of_a_typical_cpu() -> None:
    assert [working_set(size) for size in SIZES] == [32 << 10, 256 << 10, 8 << 20, 32 << 20]


@given(capacities)
def test_sizes_fit_the_caches_that_are_given_and_large_fits_none(given_capacities: list[int]) -> None:
    caches = Caches(*given_capacities)
    found = [working_set(size, caches) for size in SIZES]
    assert found[:3] == given_capacities
    assert found[3] == 4 * caches.l3
    assert found == sorted(found)


@pytest.mark.parametrize("size", ["huge", "", "Tiny", "given"])
def test_an_unknown_size_is_refused(size: str) -> None:
    with pytest.raises(
        InputError, match=rf"size: expected one of tiny, small, medium, large, found '{size}'"
    ):
        working_set(size)


def test_the_typical_caches_are_those_of_the_published_study() -> None:
    assert Caches(32 << 10, 256 << 10, 8 << 20) == TYPICAL
