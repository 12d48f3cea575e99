"""Terms of a launch's time: the seconds that each kind of its work takes on a device.

Each term is the time of its work alone at the rate on paper. Kinds of work that overlap take a smooth maximum
of their times (`joined`), to which the costs of a launch before and after its work are added. Each term has a
factor, the inverse of the efficiency, fitted to measured times with a prior
(`crosscast.prediction.time.efficiencies`).
"""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.devices.sheets import Sheets
from crosscast.prediction.time.cpu_terms import cpu_terms
from crosscast.prediction.time.gpu_terms import gpu_terms
from crosscast.prediction.time.work import Work

TERMS = (
    "launch",
    "start",
    "arithmetic",
    "issue",
    "local",
    "l1",
    "l2",
    "memory",
    "scattered",
    "spills",
    "latency",
    "waiting",
    "groups",
    "atomics",
)
"""Terms of a launch's time.

- launch: from the host's call to the device's start, and from its end to the host's notification.
- start: starting and ending a kernel on the device.
- arithmetic: real operations, and on GPUs those on integers but for addresses, at the rate of a unit's
  lanes, idle lanes too; doubles, shifts and products of integers at their own.
- issue: all other instructions of sub-groups at the rate of the lanes. On GPUs both take longer if thousands
  of instructions with accesses among them follow each other.
- local: wavefronts of local memory, one a clock and unit, except loads whose values registers keep.
- l1: lines that accesses touch, looked up one or four a clock and unit, and their words, one a clock and
  bank; where sub-groups have 64 work-items, a clock for each line of 64 bytes and at least four an access.
- l2: bytes behind the units' own caches, and those behind the second where memory has a larger cache.
- memory: bytes behind the last cache, as many groups sharing it as are resident; of a launch that is
  repeated, so that data that fit a GPU's last cache are still there. Pages that neighbours walk in apart take
  longer.
- scattered: lines that a thread of a CPU fetches from anywhere, beyond those that one after another need;
  of GPUs, bytes at random addresses of memory beyond those of streams, reads of one address by all units that
  their own caches do not keep, and on AMD's older ones lines of one memory channel.
- spills: values that do not fit the registers, to memory and back; of loops, to the second cache.
- latency: the chains of dependent instructions of a work-item, block by block on GPUs, and loads of which
  the address depends on a load; once for each wave of groups.
- waiting: memory accesses of a work-item, once for each wave: a few in flight at once, but no block begins
  before the loads of the one before it are back, unless a compiler joins the two.
- groups: beginning and ending work-groups, on units and on the device.
- atomics: those that wait for each other.
"""

_NUMBERS = {term: number for number, term in enumerate(TERMS)}
LAUNCH, MEMORY = _NUMBERS["launch"], _NUMBERS["memory"]

_ADDED = 2
"""Number of the first terms, which do not overlap with others."""

SHARPNESS = 2.5
"""Of the smooth maximum: the exponent of the norm by which the terms are joined."""

_OF_KIND = {"gpu": gpu_terms, "cpu": cpu_terms}
_TINY = 1e-15


def terms(work: Work, sheets: Sheets) -> Reals:
    """Seconds that each term takes at rates on paper, of shape ``(n, d, len(TERMS))``.

    The time is from the host's call to its notification of the end; see `by_device`.
    """
    seconds = np.empty((len(work), sheets.gpu.size, len(TERMS)))
    for kind, (columns, of_kind) in sheets.by_kind.items():
        parts = np.zeros((len(TERMS), len(work), len(columns)))
        for name, of_term in _OF_KIND[kind](work, of_kind).items():
            parts[_NUMBERS[name]] = of_term
        seconds[:, columns] = parts.transpose(1, 2, 0)
    return np.maximum(seconds, _TINY, out=seconds)


def by_device(seconds: Reals) -> Reals:
    """Terms of times that the device measures, which lack the launch by the host."""
    on_device = seconds.copy()
    on_device[..., LAUNCH] = _TINY
    return on_device


def joined(seconds: Reals) -> tuple[Reals, Reals]:
    """Total time of terms ``(..., len(TERMS))``, and the share of each.

    The time is the sum of launch, start, and a smooth maximum of the others, in seconds. Shares are also the
    derivatives of the log time by the logarithm of each term.
    """
    work = seconds[..., _ADDED:]
    most = work.max(axis=-1, keepdims=True)
    powers = (work / most) ** SHARPNESS
    total = powers.sum(axis=-1, keepdims=True)
    overlap = most * total ** (1 / SHARPNESS) * powers / total
    parts = np.concatenate([seconds[..., :_ADDED], overlap], axis=-1)
    sums = parts.sum(axis=-1)
    return sums, parts / sums[..., None]


def saved_by_half(shares: Reals) -> Reals:
    """Share of a time that halving each term would save, by the terms' shares ``(..., len(TERMS))``."""
    added, parts = shares[..., :_ADDED], shares[..., _ADDED:]
    overlap = 1.0 - added.sum(axis=-1, keepdims=True)
    parts = parts / np.maximum(overlap, _TINY)
    remaining = (1.0 - parts * (1.0 - 0.5**SHARPNESS)) ** (1 / SHARPNESS)
    return np.concatenate([0.5 * added, overlap * (1.0 - remaining)], axis=-1)
