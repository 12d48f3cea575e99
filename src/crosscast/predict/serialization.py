"""Fitted parts of models as named arrays: what is kept of a class is what its annotations say.

A part is a dataclass that derives from `Stored`. Its fields are arrays (`Reals`, `Integers`, `Flags`, with
`Array` saying their axes and bounds), tuples of texts or numbers, single numbers, flags or texts, other
parts, tuples of parts, or any of these or ``None``. Files may have come from anywhere: all that the
annotations say is checked when arrays are read, and when they are written.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.errors import InputError

__all__ = [
    "Array",
    "Nested",
    "Stored",
    "flags",
    "integers",
    "reals",
    "register_homes",
    "restore",
    "state",
    "texts",
]

Given = Mapping[str, npt.NDArray[Any]]
"""Arrays by name, as they were read."""

Bound = int | float | str
Part = TypeVar("Part", bound="Stored")

_MOST_DEPTH = 64
_MOST_INT = np.iinfo(np.int64).max
_AXIS = re.compile(r"(?P<size>\d+)|(?P<name>[A-Za-z_]\w*)(?P<shift>[+-]\d+)?")


@dataclass(frozen=True)
class _Kind:
    """What an array holds: types of NumPy that are read, the one that is made of them, and words."""

    dtypes: str
    made: type[np.generic]
    one: str
    many: str


_REAL = _Kind("f", np.float64, "a number", "numbers")
_INTEGER = _Kind("iu", np.int64, "an integer", "integers")
_FLAG = _Kind("b", np.bool_, "true or false", "flags")
_TEXT = _Kind("U", np.str_, "a text", "texts")

_KIND_OF: dict[object, _Kind] = {
    np.float64: _REAL,
    np.int64: _INTEGER,
    np.bool_: _FLAG,
    np.bool: _FLAG,
    np.str_: _TEXT,
    float: _REAL,
    int: _INTEGER,
    bool: _FLAG,
    str: _TEXT,
}


@dataclass(frozen=True, eq=False)
class Array:
    """What an array of a part is like, as an annotation: ``Annotated[Reals, Array("k d", above=0)]``."""

    # Names of its axes. Those of one name are of one length in all arrays of a class. A whole number is the
    # length itself, and a name may be shifted, as in `"k+1"`
    axes: str = ""
    nan: bool = False  # Whether entries may be missing (not a number); infinite they may not be
    # Bounds: at least, more than, at most, less than. A text is the length of the axis of that name
    low: Bound | None = None
    above: Bound | None = None
    high: Bound | None = None
    below: Bound | None = None
    least: int | Mapping[str, int] = 0  # Least length of every axis, or of those that are named

    def __post_init__(self) -> None:
        """Refuse axes that are none."""
        for axis in self.axes.split():
            if not _AXIS.fullmatch(axis):
                raise TypeError(f"expected names of axes, found {self.axes!r}")

    def checked(
        self, array: npt.NDArray[Any], kind: _Kind, name: str, sizes: dict[str, int], where: str
    ) -> npt.NDArray[Any]:
        """The array in the type that parts have; lengths of axes that are new are put into `sizes`."""
        axes = self.axes.split()
        if array.ndim != len(axes) or array.dtype.kind not in kind.dtypes:
            found = f"{array.dtype} of shape {array.shape}"
            raise InputError.of(where=where, field=name, expected=_words(kind, len(axes)), found=found)
        for axis, length in zip(axes, array.shape, strict=True):
            self._check_length(axis, length, name, sizes, where)
        if kind is _REAL:
            self._check_finite(array, name, where)
        if kind is _INTEGER and array.dtype.kind == "u" and array.size and int(array.max()) > _MOST_INT:
            raise InputError.of(
                where=where, field=name, expected=f"integers up to {_MOST_INT}", found=str(array.max())
            )
        for word, limit in (("low", self.low), ("above", self.above), ("high", self.high)):
            self._check_bound(array, word, limit, name, sizes, where)
        self._check_bound(array, "below", self.below, name, sizes, where)
        return array if kind is _TEXT else array.astype(kind.made, copy=False)

    def _check_length(self, axis: str, length: int, name: str, sizes: dict[str, int], where: str) -> None:
        match = cast("re.Match[str]", _AXIS.fullmatch(axis))
        if match["size"]:
            wanted: int | None = int(match["size"])
        else:
            shift = int(match["shift"] or 0)
            wanted = sizes[match["name"]] + shift if match["name"] in sizes else None
            if wanted is None:
                least = self.least if isinstance(self.least, int) else self.least.get(match["name"], 0)
                if length < max(least, shift):
                    raise InputError.of(
                        where=where,
                        field=name,
                        expected=f"at least {max(least, shift)} along axis {axis}",
                        found=length,
                    )
                sizes[match["name"]] = length - shift
        if wanted is not None and length != wanted:
            raise InputError.of(where=where, field=name, expected=f"{wanted} along axis {axis}", found=length)

    def _check_finite(self, array: npt.NDArray[Any], name: str, where: str) -> None:
        finite = np.isfinite(array)
        if not (finite | np.isnan(array) if self.nan else finite).all():
            wrong = ~finite & ~np.isnan(array) if self.nan else ~finite
            expected = "finite numbers, or none" if self.nan else "finite numbers"
            raise InputError.of(where=where, field=name, expected=expected, found=_first(array, wrong))

    def _check_bound(
        self,
        array: npt.NDArray[Any],
        word: str,
        bound: Bound | None,
        name: str,
        sizes: Mapping[str, int],
        where: str,
    ) -> None:
        if bound is None:
            return
        limit = sizes[bound] if isinstance(bound, str) else bound
        wrong, expected = _BOUNDS[word]
        outside = wrong(array, limit)
        if outside.any():
            raise InputError.of(
                where=where, field=name, expected=f"{expected} {limit:g}", found=_first(array, outside)
            )


_BOUNDS: Mapping[str, tuple[Callable[[npt.NDArray[Any], float], Flags], str]] = {
    # What is not a number is outside of none of them.
    "low": (np.less, "at least"),
    "above": (np.less_equal, "more than"),
    "high": (np.greater, "at most"),
    "below": (np.greater_equal, "less than"),
}


def _words(kind: _Kind, axes: int) -> str:
    return f"{kind.many} along {axes} {'axis' if axes == 1 else 'axes'}" if axes else kind.one


def _first(array: npt.NDArray[Any], wrong: npt.NDArray[Any]) -> str:
    """The first entry that is wrong, and where it is."""
    place = tuple(int(each) for each in np.argwhere(wrong)[0])
    return f"{array[place]}{f' at {list(place)}' if place else ''}"


def _there(arrays: Given, name: str, expected: str, where: str) -> npt.NDArray[Any]:
    if name not in arrays:
        others = sorted(arrays)
        listed = ", ".join(others[:8]) + (", ..." if len(others) > 8 else "")
        raise InputError.of(
            where=where, field=name, expected=expected, found=f"none among the arrays {listed}".rstrip()
        )
    return arrays[name]


@dataclass(frozen=True)
class Nested:
    """How a part in a part is kept, as an annotation: ``Annotated[Features, Nested(flat=True)]``."""

    # Whether its arrays have their own names alone, and not the field's in front; for one class only
    flat: bool = False
    kinds: tuple[str, ...] = ()  # Kinds that it may be of, if not any


class Stored:
    """A fitted part of a model, which is kept as arrays.

    A class that derives from it is a dataclass. With ``kind="a name"`` in its list of bases, it can also
    stand in fields that are annotated with a protocol or an abstract class.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str | None = None, **words: Any) -> None:
        """Let the kind be known."""
        super().__init_subclass__(**words)
        if kind is not None:
            cls.kind = kind
        name = cls.__dict__.get("kind", "")
        if not name:
            cls.kind = ""
            return
        other = _CLASSES.get(name)
        if other is not None and _place(other) != _place(cls):
            raise TypeError(f"kind {name!r}: expected one class, found {_place(other)} and {_place(cls)}")
        _CLASSES[name] = cls

    def check(self) -> None:
        """Refuse fields that do not fit each other, with an `InputError`; called after it has been read."""

    def state(self) -> Arrays:
        """Arrays from which `from_state` makes it again; see `state`."""
        return state(self)

    @classmethod
    def from_state(cls, arrays: Given, where: str = "model") -> Self:
        """Make it from its arrays; see `restore`."""
        return restore(cls, arrays, where)


_CLASSES: dict[str, type[Stored]] = {}
_HOMES: dict[str, str] = {}


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def register_homes(homes: Mapping[str, str]) -> None:
    """Say in which modules the classes of kinds are, so that each is imported when a model has one."""
    _HOMES.update(homes)


def _class_of(kind: str, allowed: tuple[str, ...], name: str, where: str) -> type[Stored]:
    known = allowed or tuple(sorted({*_CLASSES, *_HOMES}))
    if kind in known and kind not in _CLASSES and kind in _HOMES:
        importlib.import_module(_HOMES[kind])
    if kind not in known or kind not in _CLASSES:
        expected = f"one of the kinds {', '.join(known)}"
        raise InputError.of(where=where, field=f"{name}.kind", expected=expected, found=repr(kind))
    return _CLASSES[kind]


def state(part: Stored, where: str = "model") -> Arrays:
    """Arrays of a part by name, from which `restore` makes it again."""
    arrays: Arrays = {}
    _keep(part, "", arrays, where)
    return arrays


def restore(cls: type[Part], arrays: Given, where: str = "model") -> Part:
    """Make a part from its arrays."""
    return _make(cls, arrays, "", where)


def _keep(part: Stored, prefix: str, arrays: Arrays, where: str) -> None:
    sizes: dict[str, int] = {}
    for name, rule in _rules(cast(Any, type(part))):
        rule.keep(getattr(part, name), f"{prefix}{name}", arrays, sizes, where)


def _make(cls: type[Part], arrays: Given, prefix: str, where: str) -> Part:
    sizes: dict[str, int] = {}
    values = {
        name: rule.make(arrays, f"{prefix}{name}", sizes, where) for name, rule in _rules(cast(Any, cls))
    }
    try:
        part = cls(**values)
        part.check()
    except InputError as error:
        raise error if str(error).startswith(where) else error.within(where) from error
    return part


class _Rule(Protocol):
    """How a field is kept."""

    def keep(self, value: Any, name: str, arrays: Arrays, sizes: dict[str, int], where: str) -> None:
        """Put the arrays of a value among the others."""

    def make(self, arrays: Given, name: str, sizes: dict[str, int], where: str) -> Any:
        """Make the value of its arrays."""


@dataclass(frozen=True, eq=False)
class _AnArray:
    """An array, or a tuple or single value that is kept as one."""

    kind: _Kind
    array: Array
    made: Callable[[npt.NDArray[Any]], Any] | None = None
    choices: tuple[str, ...] = ()

    def keep(self, value: Any, name: str, arrays: Arrays, sizes: dict[str, int], where: str) -> None:
        array = np.asarray(value, dtype=self.kind.made if _fits(value, self.kind) else None)
        arrays[name] = self.array.checked(array, self.kind, name, sizes, where)
        if self.kind is _TEXT and arrays[name].tolist() != (list(value) if array.ndim else value):
            raise InputError.of(where=where, field=name, expected="texts that do not end in NUL", found=value)

    def make(self, arrays: Given, name: str, sizes: dict[str, int], where: str) -> Any:
        array = _there(arrays, name, _words(self.kind, len(self.array.axes.split())), where)
        value = self.array.checked(array, self.kind, name, sizes, where)
        if self.made is None:
            return value
        made = self.made(value)
        if self.choices and made not in self.choices:
            expected = f"one of {', '.join(self.choices)}"
            raise InputError.of(where=where, field=name, expected=expected, found=repr(made))
        return made


def _fits(value: Any, kind: _Kind) -> bool:
    """Whether a value may be made an array of a kind without a loss; empty tuples are of any kind."""
    found = np.asarray(value)
    return found.size == 0 or found.dtype.kind in {"f": "fiu", "iu": "iu"}.get(kind.dtypes, kind.dtypes)


@dataclass(frozen=True, eq=False)
class _APart:
    """Another part, of one class or of several kinds."""

    cls: type
    nested: Nested

    @property
    def fixed(self) -> bool:
        return issubclass(self.cls, Stored) and is_dataclass(self.cls)

    def prefix(self, name: str) -> str:
        return f"{name.rpartition('.')[0]}.".lstrip(".") if self.nested.flat else f"{name}."

    def keep(self, value: Any, name: str, arrays: Arrays, sizes: dict[str, int], where: str) -> None:
        if self.fixed and type(value) is self.cls:
            _keep(cast(Stored, value), self.prefix(name), arrays, where)
            return
        allowed = self.nested.kinds
        if self.fixed or not isinstance(value, Stored) or not value.kind:
            expected = f"a {self.cls.__name__}" if self.fixed else "a part of a kind that can be kept"
            raise InputError.of(where=where, field=name, expected=expected, found=_place(type(value)))
        if allowed and value.kind not in allowed:
            expected = f"one of the kinds {', '.join(allowed)}"
            raise InputError.of(where=where, field=f"{name}.kind", expected=expected, found=repr(value.kind))
        arrays[f"{name}.kind"] = np.array(value.kind)
        _keep(value, self.prefix(name), arrays, where)

    def make(self, arrays: Given, name: str, sizes: dict[str, int], where: str) -> Any:
        if name.count(".") > _MOST_DEPTH:
            raise InputError.of(
                where=where, expected=f"at most {_MOST_DEPTH} parts in each other", found="more"
            )
        if self.fixed:
            return _make(self.cls, arrays, self.prefix(name), where)
        kind = str(texts(arrays, f"{name}.kind", "", where=where))
        cls = _class_of(kind, self.nested.kinds, name, where)
        lacking = _lacking(cls, self.cls)
        if lacking:
            raise InputError.of(
                where=where,
                field=f"{name}.kind",
                expected=f"a part that has {', '.join(lacking)}",
                found=repr(kind),
            )
        return _make(cls, arrays, self.prefix(name), where)


def _lacking(cls: type[Stored], wanted: type) -> list[str]:
    """What a class lacks to stand for another: members of a protocol, or the other among its bases."""
    if not getattr(wanted, "_is_protocol", False):
        return [] if issubclass(cls, wanted) else [f"the base {wanted.__name__}"]
    members = {
        name
        for base in wanted.__mro__
        if getattr(base, "_is_protocol", False) and base is not Protocol
        for name in (*vars(base), *inspect.get_annotations(base))
        if not name.startswith("_")
    }
    own = {field.name for field in fields(cast(Any, cls))}
    return sorted(name for name in members if name not in own and not hasattr(cls, name))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Several parts."""

    each: _APart

    def keep(self, value: Any, name: str, arrays: Arrays, sizes: dict[str, int], where: str) -> None:
        arrays[f"{name}.count"] = np.array(len(value), dtype=np.int64)
        for place, part in enumerate(value):
            self.each.keep(part, f"{name}.{place}", arrays, sizes, where)

    def make(self, arrays: Given, name: str, sizes: dict[str, int], where: str) -> Any:
        # Each has an array at least: a count from a file may be of any size.
        count = int(integers(arrays, f"{name}.count", "", where=where, low=0, high=len(arrays)))
        return tuple(self.each.make(arrays, f"{name}.{place}", sizes, where) for place in range(count))


@dataclass(frozen=True, eq=False)
class _Maybe:
    """Something, or ``None``: then there are no arrays of it."""

    inner: _Rule

    def keep(self, value: Any, name: str, arrays: Arrays, sizes: dict[str, int], where: str) -> None:
        before = len(arrays)
        if value is not None:
            self.inner.keep(value, name, arrays, sizes, where)
            if len(arrays) == before:
                raise InputError.of(where=where, field=name, expected="a part with an array", found="none")

    def make(self, arrays: Given, name: str, sizes: dict[str, int], where: str) -> Any:
        if isinstance(self.inner, _AnArray):
            there = name in arrays
        else:
            there = any(each.startswith(f"{name}.") for each in arrays)
        return self.inner.make(arrays, name, sizes, where) if there else None


@cache
def _rules(cls: type) -> tuple[tuple[str, _Rule], ...]:
    """How each field of a class is kept; resolved once."""
    if not is_dataclass(cls):
        raise TypeError(f"{_place(cls)}: expected a dataclass")
    hints = get_type_hints(cls, include_extras=True)
    if any(each.name == "kind" for each in fields(cls)):
        raise TypeError(f"{_place(cls)}: kind: expected another name of a field")
    return tuple((each.name, _rule(hints[each.name], each.name)) for each in fields(cls) if each.init)


def _rule(hint: Any, name: str) -> _Rule:
    extras: tuple[object, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        extras = tuple(rest)
    if get_origin(hint) in (Union, UnionType):
        others = [each for each in get_args(hint) if each is not NoneType]
        if len(others) == 1:
            inner: Any = Annotated[(others[0], *extras)] if extras else others[0]
            rule = _rule(inner, name)
            if isinstance(rule, _APart) and rule.nested.flat:
                raise TypeError(f"{name}: a part that may be None has arrays of its own name")
            return _Maybe(rule)
    array = next((each for each in extras if isinstance(each, Array)), None)
    nested = next((each for each in extras if isinstance(each, Nested)), Nested())
    found = _array_rule(hint, array)
    if found is not None:
        return found
    if get_origin(hint) is tuple and len(get_args(hint)) == 2 and isinstance(get_args(hint)[0], type):
        return _Parts(_APart(get_args(hint)[0], nested))
    if isinstance(hint, type):
        return _APart(hint, nested)
    raise TypeError(f"{name}: expected an annotation that can be kept, found {hint!r}")


def _array_rule(hint: Any, array: Array | None) -> _Rule | None:
    """How arrays, tuples of plain values, and plain values are kept; ``None`` for others."""
    origin, words = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        kind = _KIND_OF.get(get_args(words[1])[0])
        if kind is None or array is None:
            raise TypeError(f"expected an array of a known type with its axes, found {hint!r}")
        return _AnArray(kind, array)
    if origin is tuple and len(words) == 2 and words[1] is Ellipsis and words[0] in _KIND_OF:
        return _AnArray(_KIND_OF[words[0]], array or Array("_"), lambda found: tuple(found.tolist()))
    if origin is Literal and all(isinstance(word, str) for word in words):
        return _AnArray(_TEXT, Array(), lambda found: found.item(), words)
    if hint in (float, int, bool, str):
        return _AnArray(_KIND_OF[hint], array or Array(), lambda found: found.item())
    return None


def reals(arrays: Given, name: str, axes: str = "", *, where: str = "model", **limits: Any) -> Reals:
    """Read an array of finite numbers in double precision."""
    return _read(arrays, name, _REAL, Array(axes, **limits), where)


def integers(arrays: Given, name: str, axes: str = "", *, where: str = "model", **limits: Any) -> Integers:
    """Read an array of integers; see `reals`."""
    return _read(arrays, name, _INTEGER, Array(axes, **limits), where)


def flags(arrays: Given, name: str, axes: str = "", *, where: str = "model", **limits: Any) -> Flags:
    """Read an array of flags; see `reals`."""
    return _read(arrays, name, _FLAG, Array(axes, **limits), where)


def texts(
    arrays: Given, name: str, axes: str = "", *, where: str = "model", **limits: Any
) -> npt.NDArray[np.str_]:
    """Read an array of texts; see `reals`."""
    return _read(arrays, name, _TEXT, Array(axes, **limits), where)


def _read(arrays: Given, name: str, kind: _Kind, array: Array, where: str) -> npt.NDArray[Any]:
    found = _there(arrays, name, _words(kind, len(array.axes.split())), where)
    return array.checked(found, kind, name, {}, where)
