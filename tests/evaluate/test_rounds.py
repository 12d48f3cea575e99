"""Rounds of work are told as one."""

from crosscast.evaluate.processes import State, counted_together


def test_pieces_times_and_what_is_left_are_those_of_all_rounds() -> None:
    found: list[State] = []
    first, second = counted_together(found.append, (2, 3))
    first(State(1, 2, 4.0, 4.0, "a"))
    first(State(2, 2, 6.0, 0.0, "b"))
    second(State(1, 3, 1.0, 2.0, "c"))
    assert found == [
        State(1, 5, 4.0, 4.0 + 3 * 4.0, "a"),
        State(2, 5, 6.0, 3 * 3.0, "b"),
        State(3, 5, 7.0, 2.0, "c"),
    ]


def test_a_round_with_fewer_pieces_than_expected_corrects_the_total() -> None:
    found: list[State] = []
    first, second = counted_together(found.append, (2, 3))
    first(State(2, 2, 6.0, 0.0, "b"))
    second(State(1, 1, 1.0, 0.0, "c"))
    assert [(each.done, each.total) for each in found] == [(2, 5), (3, 3)]


def test_a_round_may_come_after_one_that_had_nothing_to_do() -> None:
    found: list[State] = []
    second = counted_together(found.append, (2, 3))[1]
    second(State(1, 3, 1.0, 2.0, "c"))
    assert found == [State(1, 3, 1.0, 2.0, "c")]
