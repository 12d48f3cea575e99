"""What a campaign of bags did."""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.measure.corun.plan import CoRunPiece

__all__ = ["CoRunFailure", "CoRunOutcome"]


@dataclass(frozen=True)
class CoRunFailure:
    """A piece that failed.

    Parameters
    ----------
    piece
        Which one.
    reason
        Why, as a sentence.
    """

    piece: CoRunPiece
    reason: str


@dataclass
class CoRunOutcome:
    """What a campaign of bags did.

    Parameters
    ----------
    done
        Pieces that were done now.
    kept
        Pieces that were there already.
    failures
        Pieces that failed.
    notes
        What was found on the way, and what went wrong without failing.
    """

    done: int = 0
    kept: int = 0
    failures: list[CoRunFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
