"""Tasks are done once: what is kept is taken from there, and what is done is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from crosscast.errors import InputError
from crosscast.evaluation.processes import State, counted_together, done_tasks


@dataclass(frozen=True)
class Double:
    number: int

    @property
    def label(self) -> str:
        return f"double {self.number}"


@dataclass
class Shelf:
    results: dict[int, int] = field(default_factory=dict)

    def load(self, task: Double) -> int | None:
        return self.results.get(task.number)

    def save(self, task: Double, result: int) -> None:
        self.results[task.number] = result


def doubler(plus: int) -> Callable[[Double], int]:
    return lambda task: 2 * task.number + plus


TASKS = [Double(number) for number in (3, 1, 2)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs: int) -> None:
    assert done_tasks(TASKS, None, doubler, 1, what="doubled", jobs=jobs) == [7, 3, 5]


def test_what_is_kept_is_not_done_and_what_is_done_is_kept() -> None:
    shelf = Shelf({1: -1})
    labels: list[str] = []
    found = done_tasks(
        TASKS, shelf, doubler, 0, what="doubled", progress=lambda state: labels.append(state.label)
    )
    assert found == [6, -1, 4]
    assert labels == ["double 3", "double 2"]
    assert shelf.results == {1: -1, 3: 6, 2: 4}
    assert done_tasks(TASKS, shelf, doubler, 100, what="doubled") == found


def test_no_process_does_nothing() -> None:
    with pytest.raises(InputError, match="jobs"):
        done_tasks(TASKS, None, doubler, 0, what="doubled", jobs=0)


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
