"""Pace: guesses before a piece of a kind was done, means of what was taken after."""

from crosscast.measure.campaign import Pace


class Short:
    """A piece of one kind."""


class Long:
    """A piece of another."""


def test_what_is_left_is_guessed_first_and_then_known_by_kind() -> None:
    short, long = Short(), Long()
    pace = Pace([short, short, short, long, long], {"Short": 1.0, "Long": 10.0})
    assert pace.left_s() == 3 * 1.0 + 2 * 10.0
    pace.took(short, 4.0)
    assert pace.left_s() == 2 * 4.0 + 2 * 10.0
    pace.took(short, 2.0)
    pace.took(long, 7.0)
    assert pace.left_s() == 1 * 3.0 + 1 * 7.0
    pace.took(short, 3.0)
    pace.took(long, 7.0)
    assert pace.left_s() == 0.0
