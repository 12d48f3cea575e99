"""What readers of counters share: numbers, units, and what a tool and a person tell of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.data.configuration import Configuration
from crosscast.data.files import read_text
from crosscast.data.sources.runs import DEFAULT_SIZE, ConfiguredRun
from crosscast.errors import InputError
from crosscast.units import BINARY_PREFIXES, PREFIXES

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{6}")
_MOST_CHARACTERS = 100


def number_of(text: str) -> float | None:
    """The number; ``None`` if it is none, or not finite.

    Commas separate thousands; a single one before six digits is where perf puts a locale's decimal point.

    >>> number_of("1,234,567.5"), number_of("3805,723968"), number_of("n/a")
    (1234567.5, 3805.723968, None)
    """
    text = text.strip()
    if len(text) > _MOST_CHARACTERS or "_" in text:
        return None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_MOST_BYTES = 256 << 20


def text_of(path: Path, what: str) -> str:
    """All of a file in UTF-8."""
    return read_text(path, what, _MOST_BYTES)


def beginning(path: Path, size: int = 65536) -> str:
    """The first bytes of a file, with a mark for each that is not UTF-8."""
    try:
        with path.open("rb") as file:
            return file.read(size).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot read the profile ({error.strerror})") from error


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

    >>> is_rate("%"), is_rate("inst/cycle"), is_rate("byte")
    (True, True, False)
    """
    unit = unit.strip()
    return unit == "%" or "/" in unit or unit.lower().endswith("hz")


UNKNOWN_DEVICE = "unknown"
"""Device of a profile of which nobody said where it was made."""


@dataclass(frozen=True)
class CountedRun:
    """What a tool tells of a run."""

    where: str  # The profile, for messages
    name: str  # What the tool, or the profile's path, calls the program
    # What was counted, by the tool's names, in units of SI; shares of a whole are from 0 to 1
    counters: Mapping[str, float]
    time_s: float | None = None  # How long it took, in seconds; `None` if the tool does not say
    uses_gpu: bool | None = None  # Whether a GPU was counted on; `None` if the tool does not say
    kernel: str | None = None  # Part of the program that was counted; `None` for all of it


@dataclass(frozen=True)
class Circumstances:
    """What people know of runs, and tools do not tell."""

    device: str = UNKNOWN_DEVICE  # Key of the device that they were counted on
    # Names; by default the name that the tool knows, that of the application, and `DEFAULT_SIZE`
    application: str | None = None
    kernel: str | None = None
    size: str | None = None
    nodes: int | None = None  # How many of each the run used; `None` if nobody says
    cores: int | None = None
    uses_gpu: bool | None = None  # Whether it used a GPU; `None` if nobody but the tool says
    # How long each run took in seconds, where the tool does not say or is not to be believed
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
        """What a run was set to, as far as it is known."""
        # Who says that no GPU was used has not seen what a tool for GPUs has seen.
        uses_gpu = self.uses_gpu if run.uses_gpu is None else self.uses_gpu or run.uses_gpu
        told = {"nodes": self.nodes, "cores": self.cores, "uses_gpu": uses_gpu}
        return {name: float(value) for name, value in told.items() if value is not None}


def configured_runs(
    runs: Sequence[CountedRun], told: Circumstances, *, timed: bool = True
) -> list[ConfiguredRun]:
    """Runs for a dataset, numbered as repeats of the same work."""
    application = told.application or runs[0].name
    seen: dict[tuple[object, ...], str] = {}
    found: list[ConfiguredRun] = []
    for repeat, run in enumerate(runs):
        _check(run)
        time_s = run.time_s if told.time_s is None else told.time_s
        if time_s is None and timed:
            raise InputError(
                f"{run.where}: expected how long the run took, found no time: give its seconds with --time"
            )
        same = seen.setdefault((time_s, run.kernel, *sorted(run.counters.items())), run.where)
        if repeat and same != run.where:
            raise InputError(
                f"{run.where}: expected another run than {same}, found the same counters and time"
            )
        found.append(
            ConfiguredRun(
                application=application,
                kernel=told.kernel or run.kernel or application,
                size=told.size or DEFAULT_SIZE,
                configuration=Configuration(told.device, told.settings(run)),
                time_s=math.nan if time_s is None else time_s,
                powers=(),
                counters=dict(run.counters),
                repeat=repeat,
            )
        )
    return found


def _check(run: CountedRun) -> None:
    if not run.counters:
        raise InputError(f"{run.where}: expected counters, found none")
    for name, value in run.counters.items():
        if not math.isfinite(value):
            raise InputError(f"{run.where}: {name[:60]}: expected a finite number, found {value}")
    if run.time_s is not None and not 0 < run.time_s < math.inf:
        raise InputError(f"{run.where}: expected a time above 0 seconds, found {run.time_s:g}")
