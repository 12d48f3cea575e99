"""What each column of a table of runs is taken as: a setting, a power or a counter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosscast.errors import InputError
from crosscast.tables.domains import NODE
from crosscast.tables.run_columns import DEVICE, KERNEL, POWER, TIME, TIMES

__all__ = ["ColumnRoles", "is_positive_setting", "roles_of"]

_SETTING = re.compile(r"(.+_)?((cap|limit)_w|clock_hz)|cores|threads")
_WORDS = ("cluster", "scheduling", "governor")
_BOOKKEEPING = ("run", "repeat", "started_s")
_DOMAIN = re.compile(r"(.+)_w")
_OTHER_UNIT = re.compile(r".+_(us|ms|[kmg]hz|[mk]w|kj|mj|wh)", re.IGNORECASE)
_KNOWN = (*KERNEL, DEVICE, *TIMES, POWER)
_MOST_COLUMNS = 1000
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class ColumnRoles:
    """Columns by what they are taken as, each in the order of the file.

    Parameters
    ----------
    settings
        What a run was set to.
    domains
        Names of the domains whose powers there are.
    counters
        All else.
    passed_over
        Said by other columns, as energies are and numbers of runs; or has the name of a setting, where others
        were named.
    """

    settings: tuple[str, ...]
    domains: tuple[str, ...]
    counters: tuple[str, ...]
    passed_over: tuple[str, ...]

    def sentences(self, header: Sequence[str]) -> Iterator[str]:
        """Tell what was taken as what, one line each."""
        yield f"settings: {', '.join(self.settings) or 'none'}"
        powers = [name for name in header if name == POWER]
        yield f"powers: {', '.join([*powers, *(f'{name}_w' for name in self.domains)])}"
        if self.counters:
            yield f"counters: {', '.join(self.counters)}"
        if self.passed_over:
            yield f"passed over: {', '.join(self.passed_over)}"


def is_positive_setting(name: str) -> bool:
    """Whether a setting is a number that is above 0: a cap, a clock, a number of cores."""
    return _SETTING.fullmatch(name) is not None


def roles_of(header: Sequence[str], settings: Sequence[str] | None, where: str) -> ColumnRoles:
    """Tell what each column is.

    Parameters
    ----------
    header
        Names of the columns.
    settings
        Columns that are settings. By default caps and limits in watts (``…_cap_w``, ``…_limit_w``), clocks in
        hertz (``…_clock_hz``), ``cores``, ``threads``, ``cluster``, ``scheduling`` and ``governor``.
    where
        Place of the header, for messages.

    Raises
    ------
    InputError
        If there are too many columns or one has no proper name; ``application``, a time or all powers are
        missing; a named setting is not there; or a column has another unit than those of SI.
    """
    _check_names(header, where)
    for name in settings or ():
        if name in _KNOWN or name not in header:
            there = ", ".join(each for each in header if each not in _KNOWN)[:200]
            raise InputError(f"{where}: settings: expected columns out of {there or 'none'}, found {name}")
    chosen = [
        name
        for name in header
        if (name in settings if settings is not None else is_positive_setting(name) or name in _WORDS)
    ]
    others = [name for name in header if name not in (*_KNOWN, *chosen)]
    passed_over = [
        name
        for name in others
        if is_positive_setting(name) or name in (*_WORDS, *_BOOKKEEPING) or name.endswith("_j")
    ]
    rest = [name for name in others if name not in passed_over]
    for name in rest:
        if _OTHER_UNIT.fullmatch(name):
            raise InputError(
                f"{where}: {name}: expected seconds, hertz, watts or joules in columns (as in {TIME}, "
                "core_clock_hz, gpu_cap_w), found another unit"
            )
    domains = [name.removesuffix("_w") for name in rest if _DOMAIN.fullmatch(name)]
    if POWER in header and NODE in domains:
        raise InputError(f"{where}: expected {POWER} or {NODE}_w, the power of the whole, found both")
    if POWER not in header and not domains:
        raise InputError(
            f"{where}: expected a column {POWER}, or powers of domains such as cpu_w, found none of them"
        )
    counters = [name for name in rest if not _DOMAIN.fullmatch(name)]
    return ColumnRoles(tuple(chosen), tuple(domains), tuple(counters), tuple(passed_over))


def _check_names(header: Sequence[str], where: str) -> None:
    if len(header) > _MOST_COLUMNS:
        raise InputError(f"{where}: expected {_MOST_COLUMNS} columns at most, found {len(header)}")
    for name in header:
        if not 0 < len(name) <= _MOST_CHARACTERS or not name.isprintable():
            raise InputError(
                f"{where}: expected columns with names of 1 to {_MOST_CHARACTERS} characters, "
                f"found {name[:60]!r}"
            )
    if KERNEL[0] not in header:
        raise InputError(f"{where}: expected a column {KERNEL[0]}, found {', '.join(header)[:200]}")
    if not any(name in header for name in TIMES):
        raise InputError(f"{where}: expected a column {TIME}, found {', '.join(header)[:200]}")
