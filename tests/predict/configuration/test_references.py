"""Each configuration is scaled from a sample on its own device."""

from linear_machine import linear_space

from crosscast.predict.configuration.data import references


def test_the_first_sample_on_the_same_device_counts() -> None:
    space = linear_space()
    found = references(space, (10, 3, 4))
    assert set(found[space.device_numbers == 0]) == {1}
    assert set(found[space.device_numbers == 1]) == {0}


def test_a_device_without_a_sample_is_scaled_from_the_first() -> None:
    space = linear_space()
    assert set(references(space, (4, 3))) == {0}
