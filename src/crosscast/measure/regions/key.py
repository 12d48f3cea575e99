"""What a region is: the key of its runs, what a run took, who chooses its configuration, and the log."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from enum import Enum
from numbers import Integral, Real
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple, Protocol

from crosscast.data.configuration import Configuration

LOGGER = logging.getLogger("crosscast.regions")
"""Where it is said. A warning would stop programs that turn warnings into errors."""

_SAID: dict[str, None] = {}
_MOST_SAID = 1000
"""A program that goes on for weeks, under caps that change, has ever new sentences."""


def say_once(sentence: str) -> None:
    """Log a warning, unless it is among the last thousand that were said."""
    if sentence not in _SAID:
        while len(_SAID) >= _MOST_SAID:
            _SAID.pop(next(iter(_SAID)), None)
        _SAID[sentence] = None
        LOGGER.warning("%s", sentence)


MOST_CHARACTERS = 100
"""Length of what is told of an argument."""

_MOST_BITS = 64
_WORD = re.compile(r"[\w+.-]{1,32}", re.ASCII)
_MOST_ELEMENTS = 8


def described(value: object) -> str:
    """Tell what an argument is.

    >>> described(64), described(0.3), described(-5.0), described("jacobi"), described(b"data")
    ('64', 'float 2^-2', 'float -2^2', 'jacobi', 'bytes[4 B]')
    >>> import numpy as np
    >>> described(np.zeros((4, 3))), described(np.int32(7)), described((8, 8)), described([8, 8])
    ('float64[4x3]', 'int32 7', '(8, 8)', 'list[2]')
    """
    kind = type(value)
    teller = _TELLERS.get(kind)
    text = teller(value) if teller is not None else _other(value, kind)
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


_TELLERS: dict[type, Callable[[Any], str]] = {
    int: _whole,
    bool: str,
    type(None): str,
    float: _real,
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    tuple: _tuple,
    list: _sized,
    dict: _sized,
    set: _sized,
    frozenset: _sized,
}


def _other(value: Any, kind: type) -> str:
    # Asked of the type first, as objects with attributes of their own making may have any.
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


_TYPE_NAMES: dict[object, str] = {}
_MOST_TYPES = 1000


def _type_name(dtype: object) -> str:
    """Name of an array's type of element; NumPy takes longer to tell it than all else takes."""
    try:
        return _TYPE_NAMES[dtype]
    except KeyError:
        if len(_TYPE_NAMES) >= _MOST_TYPES:
            _TYPE_NAMES.clear()
        name = _TYPE_NAMES[dtype] = str(dtype)
        return name


MOST_PLACES = 16
MOST_PLACE_CHARACTERS = 200
"""Length of a place."""


def site_of(frame: FrameType | None, depth: int) -> tuple[str, ...]:
    """Tell the place of a call, and of those that led there."""
    places: list[str] = []
    while frame is not None and len(places) <= depth:
        module = frame.f_globals.get("__name__")
        # A stack of contexts enters them for somebody else.
        if module != "contextlib":
            place = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            places.append(place[-MOST_PLACE_CHARACTERS:])
        frame = frame.f_back
    return tuple(places)


MOST_ARGUMENTS = 64
"""Arguments that a key tells of; there may be more."""


class RegionKey(NamedTuple):
    """Runs with equal keys do the same work in the same place.

    Input sizes and calling contexts are told apart by it (Bailey et al. 2014, section VI).
    """

    name: str  # Name of the region
    arguments: tuple[str, ...] = ()  # What each argument is, such as `float64[64x64]`
    # Where the region was entered, such as `model.step:12` for line 12 in the function `step` of the module
    # `model`; then who called that, and so on, as far as was asked for
    site: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The call, and the place of it."""
        where = f" at {self.site[0]}" if self.site else ""
        return f"{self.name}({', '.join(self.arguments)}){where}"


def arguments_of(values: Iterable[object]) -> tuple[str, ...]:
    """Tell of each argument what it is; all after the 64th are one."""
    found = tuple(map(described, values))
    if len(found) <= MOST_ARGUMENTS:
        return found
    rest = len(found) - MOST_ARGUMENTS + 1
    return (*found[: MOST_ARGUMENTS - 1], f"{rest} more")


NOTHING: Mapping[str, float] = MappingProxyType({})
"""No number of any name."""


class RegionRun(NamedTuple):
    """What a run of a region took."""

    key: RegionKey  # Which region
    configuration: Configuration | None  # What the program was set to; none if it did not say
    started_s: float  # When it started, in seconds since 1970-01-01 UTC
    duration_s: float  # What it took, in seconds
    # Time over which its energy was counted, in seconds; none if it was not. It differs from the duration
    # where a device tells the latter
    metered_s: float | None = None
    # Energy of each domain in that time, in joules: the plain difference of two readings
    energy_j: Mapping[str, float] = NOTHING
    # Power of each domain, in watts, where readings were fine enough to tell: over this run, or over it and
    # those before it in the same configuration, since the power was told last
    powers_w: Mapping[str, float] = NOTHING
    # Power of all domains that are not parts of others, in watts; none where one of them is not known
    power_w: float | None = None
    counters: Mapping[str, float] = NOTHING  # What the processor counted, by event
    # Kind of the exception that ended it, or none. Such a run is not a sample of anything
    failure: str | None = None


class Chooser(Protocol):
    """Chooses the configuration of each run, from what it was told of those before.

    Both methods may be called in several threads at once. What they raise goes to the program.
    """

    def configuration(self, key: RegionKey) -> Configuration | None:
        """Choose what to run a region on; none is what the program does by default.

        Called when a region is entered, before its time begins.
        """

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        """Take note of a run; called when it has ended, unless it failed.

        Without `RegionRun.energy_j` no sensor works, which the region has said already. With it and without
        `RegionRun.power_w` the run was too short to tell its power: another one in the same configuration
        brings it nearer.
        """
