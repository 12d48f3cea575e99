"""Regions: keys of runs, results of runs, the interface that chooses configurations, and the log."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from enum import Enum
from functools import lru_cache
from numbers import Integral, Real
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple, Protocol

from crosscast.data.configuration import Configuration

LOGGER = logging.getLogger("crosscast.regions")
"""Log for problems. Python warnings would stop programs that turn them into errors."""


# Bounded, for programs that run for weeks with ever new sentences.
@lru_cache(maxsize=1000)
def say_once(sentence: str) -> None:
    """Log a warning, unless it is among the last thousand."""
    LOGGER.warning("%s", sentence)


MOST_CHARACTERS = 100
"""Longest description of an argument."""

_MOST_BITS = 64
_WORD = re.compile(r"[\w+.-]{1,32}", re.ASCII)
_MOST_ELEMENTS = 8


def described(value: object) -> str:
    """Describe an argument.

    >>> described(64), described(0.3), described(-5.0), described("jacobi"), described(b"data")
    ('64', 'float 2^-2', 'float -2^2', 'jacobi', 'bytes[4 B]')
    >>> import numpy as np
    >>> described(np.zeros((4, 3))), described(np.int32(7)), described((8, 8)), described([8, 8])
    ('float64[4x3]', 'int32 7', '(8, 8)', 'list[2]')
    """
    kind = type(value)
    describe = _DESCRIBERS.get(kind)
    text = describe(value) if describe is not None else _other(value, kind)
    return text[:MOST_CHARACTERS]


def _whole(value: int) -> str:
    return str(value) if value.bit_length() <= _MOST_BITS else f"int of {value.bit_length()} bits"


def _real(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"float {value:g}".replace("-0", "0")
    return f"float {'-' if value < 0 else ''}2^{math.frexp(value)[1] - 1}"


def _text(value: str) -> str:
    return value if _WORD.fullmatch(value) else f"str[{len(value)}]"


def _bytes(value: bytes | bytearray | memoryview) -> str:
    return f"{type(value).__name__}[{memoryview(value).nbytes} B]"


def _tuple(value: tuple[object, ...]) -> str:
    if len(value) > _MOST_ELEMENTS:
        return f"tuple[{len(value)}]"
    return f"({', '.join(map(described, value))})"


def _sized(value: Sized) -> str:
    return f"{type(value).__name__}[{len(value)}]"


_DESCRIBERS: dict[type, Callable[[Any], str]] = {int: _whole, float: _real, str: _text, tuple: _tuple}
_DESCRIBERS |= dict.fromkeys((bool, type(None)), str)
_DESCRIBERS |= dict.fromkeys((bytes, bytearray, memoryview), _bytes)
_DESCRIBERS |= dict.fromkeys((list, dict, set, frozenset), _sized)


def _other(value: Any, kind: type) -> str:
    # Checked on the type, as objects with dynamic attributes may seem to have any.
    if hasattr(kind, "shape"):
        return _array(value, kind)
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    size = value.size if hasattr(kind, "size") else None
    return f"{kind.__name__}[{size} B]" if type(size) is int else kind.__name__


def _array(value: Any, kind: type) -> str:
    shape = value.shape
    name = _type_name(value.dtype) if hasattr(kind, "dtype") else kind.__name__
    if shape == () and isinstance(value, Integral):
        return f"{name} {_whole(int(value))}"
    if shape == () and isinstance(value, Real):
        return f"{name} {_real(float(value)).removeprefix('float ')}"
    extents = "x".join(map(str, shape)) if isinstance(shape, tuple) else str(shape)
    return f"{name}[{extents}]"


# NumPy takes long to give the name of a type of element.
_type_name = lru_cache(maxsize=1000)(str)


MOST_FRAMES = 16
MOST_FRAME_CHARACTERS = 200
"""Longest description of a frame."""


def site_of(frame: FrameType | None, depth: int) -> tuple[str, ...]:
    """Describe the frame of a call, and up to `depth` of its callers."""
    frames: list[str] = []
    while frame is not None and len(frames) <= depth:
        module = frame.f_globals.get("__name__")
        # Frames of `contextlib.ExitStack` are between the caller and the region.
        if module != "contextlib":
            text = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            frames.append(text[-MOST_FRAME_CHARACTERS:])
        frame = frame.f_back
    return tuple(frames)


MOST_ARGUMENTS = 64
"""Arguments that a key describes; there may be more."""


class RegionKey(NamedTuple):
    """Key of runs that do the same work at the same site.

    It distinguishes input sizes and calling contexts (Bailey et al. 2014, section VI).
    """

    name: str  # Name of the region
    arguments: tuple[str, ...] = ()  # Description of each argument, such as `float64[64x64]`
    # Frame in which the region was entered, such as `model.step:12` for line 12 in the function `step` of the
    # module `model`; then as many of its callers as requested
    site: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the call and its site."""
        where = f" at {self.site[0]}" if self.site else ""
        return f"{self.name}({', '.join(self.arguments)}){where}"


def arguments_of(values: Iterable[object]) -> tuple[str, ...]:
    """Describe each argument; those from the 64th on are summarised."""
    descriptions = tuple(map(described, values))
    if len(descriptions) <= MOST_ARGUMENTS:
        return descriptions
    rest = len(descriptions) - MOST_ARGUMENTS + 1
    return (*descriptions[: MOST_ARGUMENTS - 1], f"{rest} more")


NOTHING: Mapping[str, float] = MappingProxyType({})
"""An empty mapping."""


class RegionRun(NamedTuple):
    """Result of a run of a region."""

    key: RegionKey
    configuration: Configuration | None  # Configuration of the program; `None` if unknown
    started_s: float  # Start in seconds since 1970-01-01 UTC
    duration_s: float  # Duration in seconds
    # Time of the energy in seconds; `None` without energy. It differs from the duration if that is by the
    # device's timer
    metered_s: float | None = None
    # Energy of each domain in that time, in joules: the difference of two readings
    energy_j: Mapping[str, float] = NOTHING
    # Power of each domain in watts, if accurate: over this run, or over it and those before it in the same
    # configuration, since power was last reported
    powers_w: Mapping[str, float] = NOTHING
    # Power of all domains that are not parts of others, in watts; `None` if one of them is unknown
    power_w: float | None = None
    counters: Mapping[str, float] = NOTHING  # Counts of the processor, by event
    # Type of the exception that ended it, or `None`. Failed runs are no samples
    failure: str | None = None


class Chooser(Protocol):
    """Chooses the configuration of each run from observations of earlier ones.

    Both methods may be called in several threads at once. Exceptions propagate to the program.
    """

    def configuration(self, key: RegionKey) -> Configuration | None:
        """Choose the configuration of a region; ``None`` is the program's default.

        Called when a region is entered, before its time begins.
        """

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        """Observe a run; called when it has ended, unless it failed.

        Without `RegionRun.energy_j` no sensor works, which was logged. With it and without
        `RegionRun.power_w` the run was too short for an accurate power, to which further runs in the same
        configuration contribute.
        """
