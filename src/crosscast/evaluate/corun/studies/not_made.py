"""A study that a dataset does not allow, and why."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NotMade"]


@dataclass(frozen=True)
class NotMade:
    """What stands in the place of a study that cannot be made.

    Parameters
    ----------
    reason
        Why, as a sentence without a full stop.
    """

    reason: str

    def to_dict(self) -> dict[str, str]:
        """As an object of JSON."""
        return {"not_made": self.reason}
