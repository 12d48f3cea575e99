"""Units that counter tools print, and what makes those of SI of them.

Shares in percent become numbers from 0 to 1. A unit that is not known here, such as ``block``, is a count of
something.
"""

from __future__ import annotations

import re

__all__ = ["factor_of", "is_rate"]

_SECONDS = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_LARGE = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}

_FACTORS: dict[str, float] = {
    "%": 0.01,
    **{f"{prefix}{word}": each for prefix, each in _SECONDS.items() for word in ("s", "sec", "second")},
    **{f"{prefix}second{end}": each for prefix, each in _SECONDS.items() for end in ("", "s")},
    **{
        f"{prefix}{word}": each
        for prefix, each in _LARGE.items()
        for word in ("byte", "bytes", "B", "hz", "Hz", "inst", "cycle", "sector", "request", "thread", "warp")
    },
    **{f"{prefix}{word}": each for prefix, each in _BINARY.items() for word in ("B", "byte", "bytes")},
}
_PER = re.compile(r"\s*/\s*")


def factor_of(unit: str) -> float:
    """What a number in this unit is multiplied with.

    Examples
    --------
    >>> factor_of("msecond"), factor_of("Kbyte"), factor_of("Gbyte/second"), factor_of("inst")
    (0.001, 1000.0, 1000000000.0, 1.0)
    """
    above, *below = _PER.split(unit.strip())
    factor = _FACTORS.get(above, 1.0)
    for each in below:
        factor /= _FACTORS.get(each, 1.0)
    return factor


def is_rate(unit: str) -> bool:
    """Whether values in this unit are means over something, rather than amounts that can be added.

    Examples
    --------
    >>> is_rate("%"), is_rate("inst/cycle"), is_rate("byte")
    (True, True, False)
    """
    unit = unit.strip()
    return unit == "%" or "/" in unit or unit.lower().endswith("hz")
