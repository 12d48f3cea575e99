"""Units that counter tools print, and what makes those of SI of them.

Shares in percent become numbers from 0 to 1. A unit that is not known here, such as ``block``, is a count of
something.
"""

from __future__ import annotations

import re

from crosscast.units import BINARY_PREFIXES, PREFIXES

__all__ = ["factor_of", "is_rate"]

_TIMES = ("s", "sec", "second", "seconds")
_SIZES = ("byte", "bytes", "B")
_AMOUNTS = ("hz", "Hz", "inst", "cycle", "sector", "request", "thread", "warp")
_SMALL = {prefix: PREFIXES[prefix] for prefix in ("", "m", "u", "n", "p")}
_LARGE = {"K": PREFIXES["k"], **{prefix: PREFIXES[prefix] for prefix in ("", "k", "M", "G", "T", "P")}}

_FACTORS: dict[str, float] = {
    "%": 0.01,
    **{f"{prefix}{word}": each for prefix, each in _SMALL.items() for word in _TIMES},
    **{f"{prefix}{word}": each for prefix, each in _LARGE.items() for word in (*_SIZES, *_AMOUNTS)},
    **{f"{prefix}{word}": each for prefix, each in BINARY_PREFIXES.items() for word in _SIZES},
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
