"""Jobs that may share a device, checked and put in an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.asked import check_asked
from crosscast.predict.corun.forecast import is_told
from crosscast.tables.corun.solo import Solo
from crosscast.units import format_bytes

__all__ = ["MOST_JOBS", "Jobs"]

MOST_JOBS = 1000
"""More are not paired at once: all pairs of them are predicted."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """``n`` jobs, sorted by what is known of them, so that a plan does not depend on their order.

    Parameters
    ----------
    solos
        The jobs.
    given
        Place of each among those that were given, of shape ``(n,)``.
    kind
        A number for each, equal where all that is known alone is equal, of shape ``(n,)``; it never falls.
    length_s
        Times alone, in seconds, of shape ``(n,)``.
    memory_bytes
        Memory that each takes; 0 where it is not known, of shape ``(n,)``.
    """

    solos: tuple[Solo, ...]
    given: Integers
    kind: Integers
    length_s: Reals
    memory_bytes: Reals

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.solos)

    @classmethod
    def of(
        cls,
        solos: Sequence[Solo],
        device: str,
        *,
        lengths: Sequence[float] | None = None,
        memory_bytes: int | None = None,
    ) -> Jobs:
        """Check jobs.

        Parameters
        ----------
        solos
            Applications alone.
        device
            The device that they are to share.
        lengths
            Time of each alone, in seconds; by default that of a job of its solo run.
        memory_bytes
            Memory of the device, if it is known.

        Raises
        ------
        InputError
            If there are fewer than two, or too many; one is of another device, has no time, or does not fit
            on the device alone.
        """
        if not 2 <= len(solos) <= MOST_JOBS:
            raise InputError(f"jobs: expected 2 to {MOST_JOBS:,}, found {len(solos):,}")
        if lengths is not None and len(lengths) != len(solos):
            raise InputError(f"lengths: expected one for each of {len(solos)} jobs, found {len(lengths)}")
        times = [solo.time_s for solo in solos] if lengths is None else list(lengths)
        for solo, time_s in zip(solos, times, strict=True):
            _check(solo, time_s, device, memory_bytes)
        known = np.array(times, dtype=np.float64)
        facts = [_facts(solo) for solo in solos]
        order = sorted(range(len(solos)), key=lambda place: (facts[place], known[place]))
        kinds = {fact: number for number, fact in enumerate(sorted(set(facts)))}
        return cls(
            tuple(solos[place] for place in order),
            np.array(order, dtype=np.int64),
            np.array([kinds[facts[place]] for place in order], dtype=np.int64),
            known[order],
            np.array([solos[place].memory_bytes or 0 for place in order], dtype=np.float64),
        )


def _check(solo: Solo, time_s: float | None, device: str, memory_bytes: int | None) -> None:
    check_asked(solo, device)
    if time_s is None or not is_told(time_s):
        found = "none" if time_s is None else f"{time_s:g}"
        raise InputError(f"{solo.name}: expected its time alone, a number of seconds above 0, found {found}")
    if memory_bytes is not None and solo.memory_bytes is not None and solo.memory_bytes > memory_bytes:
        raise InputError(
            f"{solo.name}: memory_bytes: expected at most the {format_bytes(memory_bytes)} of {device}, "
            f"found {format_bytes(solo.memory_bytes)}: it does not even fit alone"
        )


def _facts(solo: Solo) -> str:
    """All that a model sees of a job, as a text that sorts: first its name."""
    seen = (solo.key, solo.time_s, solo.runs, solo.power_w, solo.memory_bytes)
    return repr((*seen, sorted(solo.features.items())))
