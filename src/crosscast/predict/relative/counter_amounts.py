"""What is counted, made of the counters of a tool: sums, and what a rate makes of a sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals

__all__ = ["Amount", "Lookup", "missed", "of", "share_of", "total"]

Lookup = Mapping[str, Reals]
"""Values of counters by their plain names, each of shape ``(r,)``; not a number where a run lacks one."""


@dataclass(frozen=True)
class Amount:
    """An amount that counters give.

    Parameters
    ----------
    text
        The formula, for people.
    needs
        Plain names of counters; a run that lacks one lacks the amount.
    formula
        Makes the amount of them, of shape ``(r,)``.
    may_use
        Plain names of counters that are added where a run has them.
    """

    text: str
    needs: tuple[str, ...]
    formula: Callable[..., Reals]
    may_use: tuple[str, ...] = ()

    def values(self, counters: Lookup, rows: int) -> Reals:
        """The amounts of ``rows`` runs; not a number where a counter is missing."""
        if any(name not in counters for name in self.needs):
            return np.full(rows, np.nan)
        amount = self.formula(*(counters[name] for name in self.needs))
        for name in self.may_use:
            if name in counters:
                amount = amount + np.nan_to_num(counters[name])
        return np.where(np.isfinite(amount), amount, np.nan)


def total(*names: str, also: tuple[str, ...] = (), times: float = 1) -> Amount:
    """Sum of counters, and of some more where they are there, times a factor."""
    text = " + ".join((*names, *(f"[{name}]" for name in also)))
    if times != 1:
        text = f"{times:g} · ({text})" if len(names) > 1 else f"{times:g} · {text}"

    def summed(*counts: Reals) -> Reals:
        whole: Reals = times * np.sum(counts, axis=0)
        return whole

    return Amount(text, _plain(names), summed, _plain(also))


def of(*factors: tuple[float, str]) -> Amount:
    """Sum of counters, each times its own factor."""
    text = " + ".join(name if factor == 1 else f"{factor:g} · {name}" for factor, name in factors)

    def weighed(*counts: Reals) -> Reals:
        whole: Reals = np.sum(
            [factor * count for (factor, _), count in zip(factors, counts, strict=True)], axis=0
        )
        return whole

    return Amount(text, _plain(tuple(name for _, name in factors)), weighed)


def missed(requests: str, rate: str) -> Amount:
    """Requests that hit nothing, of a hit rate (or efficiency) in percent."""
    return Amount(
        f"{requests} · (1 − {rate} / 100)",
        _plain((requests, rate)),
        lambda count, percent: count * np.maximum(1 - percent / 100, 0.0),
    )


def share_of(whole: str, part: str, other: str) -> Amount:
    """The share of a whole that goes to a part of two."""

    def shared(count: Reals, one: Reals, two: Reals) -> Reals:
        both = one + two
        share: Reals = np.divide(one, both, out=np.full(both.shape, np.nan), where=both > 0)
        return count * share

    return Amount(f"{whole} · {part} / ({part} + {other})", _plain((whole, part, other)), shared)


def _plain(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
