"""Shared parts of the readers of counters: numbers, units, and facts about a run from tool and user."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.data.configuration import Configuration
from crosscast.data.files import number_of_text, read_text
from crosscast.data.sources.runs import DEFAULT_SIZE, ConfiguredRun
from crosscast.errors import InputError
from crosscast.units import BINARY_PREFIXES, PREFIXES

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{6}")
_MOST_CHARACTERS = 100


def number_of(text: str) -> float | None:
    """Parse a number; ``None`` if it is none, or not finite.

    Commas separate thousands; a single one before six digits is the decimal point of perf in some locales.

    >>> number_of("1,234,567.5"), number_of("3805,723968"), number_of("n/a")
    (1234567.5, 3805.723968, None)
    """
    text = text.strip()
    if len(text) > _MOST_CHARACTERS:
        return None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    value = number_of_text(text)
    return None if math.isnan(value) else value


_MOST_BYTES = 256 << 20
_BEGINNING = 65536


def text_of(path: Path, what: str) -> str:
    """Read a file in UTF-8."""
    return read_text(path, what, _MOST_BYTES)


def beginning(path: Path) -> str:
    """Read the first bytes of a file, with replacement characters for bytes that are not UTF-8."""
    try:
        with path.open("rb") as file:
            return file.read(_BEGINNING).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the profile ({error.strerror})") from error


_TIMES = ("s", "sec", "second", "seconds")
_SIZES = ("byte", "bytes", "B")
_AMOUNTS = ("hz", "Hz", "inst", "cycle", "sector", "request", "thread", "warp")
_SMALL = {prefix: PREFIXES[prefix] for prefix in ("", "m", "u", "n", "p")}
_LARGE = {"K": PREFIXES["k"], **{prefix: PREFIXES[prefix] for prefix in ("", "k", "M", "G", "T", "P")}}

_FACTORS: dict[str, float] = {
    "%": 0.01,
    **{f"{prefix}{word}": factor for prefix, factor in _SMALL.items() for word in _TIMES},
    **{f"{prefix}{word}": factor for prefix, factor in _LARGE.items() for word in (*_SIZES, *_AMOUNTS)},
    **{f"{prefix}{word}": factor for prefix, factor in BINARY_PREFIXES.items() for word in _SIZES},
}
_PER = re.compile(r"\s*/\s*")


def factor_of(unit: str) -> float:
    """Factor that converts a number in this unit to SI.

    >>> factor_of("msecond"), factor_of("Kbyte"), factor_of("Gbyte/second"), factor_of("inst")
    (0.001, 1000.0, 1000000000.0, 1.0)
    """
    numerator, *denominators = _PER.split(unit.strip())
    factor = _FACTORS.get(numerator, 1.0)
    for denominator in denominators:
        factor /= _FACTORS.get(denominator, 1.0)
    return factor


def is_rate(unit: str) -> bool:
    """Whether values in this unit are rates or shares, rather than amounts that can be added.

    >>> is_rate("%"), is_rate("inst/cycle"), is_rate("byte")
    (True, True, False)
    """
    unit = unit.strip()
    return unit == "%" or "/" in unit or unit.lower().endswith("hz")


UNKNOWN_DEVICE = "unknown"
"""Device of a profile whose device is not known."""


@dataclass(frozen=True)
class CountedRun:
    """A run as its tool describes it."""

    where: str  # The profile, for messages
    name: str  # Name of the program according to the tool, or from the profile's path
    # Counters by the tool's names, in SI units; shares are from 0 to 1
    counters: Mapping[str, float]
    time_s: float | None = None  # Time in seconds; `None` if not known
    uses_gpu: bool | None = None  # Whether counters of a GPU were read; `None` if not known
    kernel: str | None = None  # Part of the program that was counted; `None` for the whole program


@dataclass(frozen=True)
class Circumstances:
    """Facts about runs that users give, as tools do not record them."""

    device: str = UNKNOWN_DEVICE  # Key of the device
    # Names; by default the tool's name of the program, the application's name, and `DEFAULT_SIZE`
    application: str | None = None
    kernel: str | None = None
    size: str | None = None
    nodes: int | None = None  # Numbers of nodes and cores that the run used; `None` if not known
    cores: int | None = None
    uses_gpu: bool | None = None  # Whether it used a GPU; `None` to rely on the tool
    # Time of each run in seconds, where the tool does not record it or its time is wrong
    time_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("device", "application", "kernel", "size"):
            text = getattr(self, name)
            if text is not None and not (text.strip() and text.isprintable()):
                raise InputError.of(field=name, expected="a name", found=repr(text[:60]))
        for name in ("nodes", "cores"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise InputError.of(field=name, expected="a whole number of at least 1", found=count)
        if self.time_s is not None and not 0 < self.time_s < math.inf:
            raise InputError.of(field="time", expected="seconds above 0", found=f"{self.time_s:g}")

    def settings(self, run: CountedRun) -> dict[str, float]:
        """Settings of a run, as far as they are known."""
        # A tool for GPUs that counted overrides a user who says that no GPU was used.
        uses_gpu = self.uses_gpu if run.uses_gpu is None else self.uses_gpu or run.uses_gpu
        settings = {"nodes": self.nodes, "cores": self.cores, "uses_gpu": uses_gpu}
        return {name: float(value) for name, value in settings.items() if value is not None}


def configured_runs(
    runs: Sequence[CountedRun], circumstances: Circumstances, *, timed: bool = True
) -> list[ConfiguredRun]:
    """Convert runs for a dataset, numbered as repeats of one kernel."""
    application = circumstances.application or runs[0].name
    seen: dict[tuple[object, ...], str] = {}
    configured: list[ConfiguredRun] = []
    for repeat, run in enumerate(runs):
        _check(run)
        time_s = run.time_s if circumstances.time_s is None else circumstances.time_s
        if time_s is None and timed:
            raise InputError.of(
                where=run.where,
                expected="how long the run took",
                found="no time: give its seconds with --time",
            )
        first = seen.setdefault((time_s, run.kernel, *sorted(run.counters.items())), run.where)
        if repeat and first != run.where:
            raise InputError.of(
                where=run.where, expected=f"another run than {first}", found="the same counters and time"
            )
        kernel, size = circumstances.kernel or run.kernel or application, circumstances.size or DEFAULT_SIZE
        cell = application, kernel, size, Configuration(circumstances.device, circumstances.settings(run))
        time_s = math.nan if time_s is None else time_s
        configured.append(ConfiguredRun(*cell, time_s, counters=dict(run.counters), repeat=repeat))
    return configured


def _check(run: CountedRun) -> None:
    if not run.counters:
        raise InputError.of(where=run.where, expected="counters", found="none")
    for name, value in run.counters.items():
        if not math.isfinite(value):
            raise InputError.of(
                where=run.where, field=name[:60], expected="a finite number", found=f"{value}"
            )
    if run.time_s is not None and not 0 < run.time_s < math.inf:
        raise InputError.of(where=run.where, expected="a time above 0 seconds", found=f"{run.time_s:g}")
