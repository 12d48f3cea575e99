"""Several rounds of work, told as one."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.evaluate.processes import Progress, State

__all__ = ["counted_together"]


def counted_together(progress: Progress, pieces: Sequence[int]) -> tuple[Progress, ...]:
    """Whom each round of work is to tell, so that the pieces of all rounds are counted together.

    Parameters
    ----------
    progress
        Whom to tell of everything.
    pieces
        Pieces that each round is expected to have. A round that has begun says itself how many it has, as a
        cache may know some.
    """
    latest: dict[int, State] = {}

    def of_round(number: int) -> Progress:
        def tell(state: State) -> None:
            latest[number] = state
            before = [each for place, each in latest.items() if place < number]
            after = sum(pieces[number + 1 :])
            done = sum(each.done for each in before)
            progress(
                State(
                    done + state.done,
                    done + state.total + after,
                    sum(each.elapsed_s for each in before) + state.elapsed_s,
                    state.left_s + after * state.elapsed_s / state.done,
                    state.label,
                )
            )

        return tell

    return tuple(of_round(number) for number in range(len(pieces)))
