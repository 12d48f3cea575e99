"""Ways from the counters of a tool to a feature of Table III of the paper (Nichols et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.predict.relative.counter_amounts import Amount

__all__ = ["AMOUNTS", "INTENSITIES", "Rule", "rules"]

INTENSITIES = (
    "branch intensity",
    "store intensity",
    "load intensity",
    "single fp intensity",
    "double fp intensity",
    "arithmetic intensity",
)
"""Features that are ratios to the total number of instructions."""

AMOUNTS = (
    "l1 load misses",
    "l1 store misses",
    "l2 load misses",
    "l2 store misses",
    "io bytes written",
    "io bytes read",
    "extended page table",
    "memory stalls",
)
"""Features that are amounts."""


@dataclass(frozen=True)
class Rule:
    """A way to a feature.

    Parameters
    ----------
    feature
        One of `INTENSITIES` and `AMOUNTS`.
    tool
        Whose counters these are.
    amount
        What is counted.
    whole
        All instructions, of which an intensity is the share; ``None`` for an amount.
    """

    feature: str
    tool: str
    amount: Amount
    whole: Amount | None = None


def rules(tool: str, whole: Amount | None, **amounts: Amount) -> tuple[Rule, ...]:
    """Ways to several features, by their names with ``_`` for spaces, with the counters of one tool."""
    return tuple(
        Rule(name, tool, amount, whole if name in INTENSITIES else None)
        for name, amount in ((key.replace("_", " "), each) for key, each in amounts.items())
    )
