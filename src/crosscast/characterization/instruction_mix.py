"""The instruction mix of an application: which shares of its instructions are of which class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from crosscast.characterization.engine.counts import CLASSES
from crosscast.profile import Profile

__all__ = ["CLASSES", "instruction_mix"]


def instruction_mix(profiles: Iterable[Profile]) -> dict[str, float]:
    """Share of each class in all executed instructions of some launches, 0 to 1.

    ``sse``: instructions whose result is a vector; ``alu``: integers, comparisons, addresses and choices;
    ``mem``: loads, stores and atomics; ``fp``: real numbers; ``stack``: memory of a function taken from the
    stack; ``string``: copies and fills of memory; ``shift``: shifts and multiplications of integers;
    ``control``: branches, calls and barriers. They add up to one with what is none of them.

    Source: Moolchandani et al. 2022, Table 4, which counts instructions of a CPU; these are of LLVM's IR, as
    all counts of a profile.
    """
    total: Counter[str] = Counter()
    for profile in profiles:
        total.update(profile.instructions)
    instructions = total.total()
    return {name: total[name] / instructions for name in CLASSES} if instructions else {}
