"""Which counters of which tool give which feature of Table III of the paper (Nichols et al. 2024).

The paper lists counters, and formulas only in words ("ratio of branch instructions to total instructions");
what it leaves open is decided here, and said in docs/counters.md:

- Table III names ``flop_count_dp`` for single precision on Lassen and ``flop_count_sp`` for double precision.
  We take that for a slip: here ``sp`` is single and ``dp`` double.
- The total is that of the level at which a counter counts: instructions of warps for ``cf_executed`` and
  ``inst_executed_*``, and 32 times as many, one for each thread, for ``inst_integer`` and ``flop_count_*``.
- AMD's counters tell neither loads from stores in LDSInsts and GDSInsts, nor single from double precision in
  VALUInsts and SALUInsts: as in the paper, both features get the same.
- Of hit rates we make misses: requests times the share that does not hit. ``gld_efficiency`` and
  ``gst_efficiency`` are the shares of what was moved that somebody had asked for; transactions times the rest
  stand for the misses of the second level.
"""

from __future__ import annotations

import re

from crosscast.predict.relative.counter_amounts import total
from crosscast.predict.relative.cpu_counters import CPU_RULES
from crosscast.predict.relative.feature_rules import Rule, rules
from crosscast.predict.relative.gpu_counters import GPU_RULES

__all__ = ["RULES", "plain_name"]

_AIWC = rules(
    "AIWC",
    total("total_instruction_count"),
    store_intensity=total("total_writes"),
    load_intensity=total("total_reads"),
)

RULES: tuple[Rule, ...] = (*CPU_RULES, *GPU_RULES, *_AIWC)
"""All ways to features; of those to the same, a run takes the first that it has the counters for."""

_PREFIX = re.compile(r"^(papi\.|papi::|perf::|perf\.)")
_UNIT = re.compile(r"^cpu(?:_core|_atom)?/([^/]+)/[a-z]*$")
_MODIFIER = re.compile(r"(?<=[^:]):[ukhgppsdwei]+$")


def plain_name(counter: str) -> str:
    """Name of a counter without what tools put around it, in small letters.

    Examples
    --------
    >>> plain_name("papi.PAPI_BR_INS"), plain_name("instructions:u"), plain_name("cpu_core/branches/")
    ('papi_br_ins', 'instructions', 'branches')
    """
    name = _PREFIX.sub("", counter.strip().lower()).replace(": ", ":")
    unit = _UNIT.fullmatch(name)
    return unit[1] if unit else _MODIFIER.sub("", name)
