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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    ClassVar,
    Literal,
    NoReturn,
    Protocol,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from crosscast.arrays import AnyArray, Arrays, Flags
from crosscast.errors import InputError

Given = Mapping[str, AnyArray]
"""Arrays by name, as they were read."""

Bound = int | float | str

_WRITTEN = "model"
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

    def words(self, axes: int) -> str:
        return f"{self.many} along {axes} {'axis' if axes == 1 else 'axes'}" if axes else self.one

    def fits(self, value: object) -> bool:
        """Whether a value may be made an array of this kind without a loss; empty tuples may."""
        found = np.asarray(value)
        return found.size == 0 or found.dtype.kind in ("fiu" if self is _REAL else self.dtypes)


_REAL = _Kind("f", np.float64, "a number", "numbers")
_INTEGER = _Kind("iu", np.int64, "an integer", "integers")
_FLAG = _Kind("b", np.bool_, "true or false", "flags")
_TEXT = _Kind("U", np.str_, "a text", "texts")

_KIND_OF: Mapping[object, _Kind] = {
    **dict.fromkeys((np.float64, float), _REAL),
    **dict.fromkeys((np.int64, int), _INTEGER),
    **dict.fromkeys((np.bool_, np.bool, bool), _FLAG),
    **dict.fromkeys((np.str_, str), _TEXT),
}

_BOUNDS: Mapping[str, tuple[Callable[[AnyArray, float], Flags], str]] = {
    # What is NaN is outside of none of them.
    "low": (np.less, "at least"),
    "above": (np.less_equal, "more than"),
    "high": (np.greater, "at most"),
    "below": (np.greater_equal, "less than"),
}


@dataclass(frozen=True, eq=False)
class Array:
    """What an array of a part is like, as an annotation: ``Annotated[Reals, Array("k d", above=0)]``."""

    # Names of its axes. Those of one name are of one length in all arrays of a class. A whole number is the
    # length itself, and a name may be shifted, as in `"k+1"`
    axes: str = ""
    nan: bool = False  # Whether entries may be missing (NaN); infinite they may not be
    # Bounds: at least, more than, at most, less than. A text is the length of the axis of that name
    low: Bound | None = None
    above: Bound | None = None
    high: Bound | None = None
    below: Bound | None = None
    least: int = 0  # Least length of every axis
    rising: bool = False  # Whether no number is below the one before it along the last axis
    among: tuple[str, ...] = ()  # Texts that may be there, each once; by default any

    def __post_init__(self) -> None:
        if not all(map(_AXIS.fullmatch, self.axes.split())):
            raise TypeError(f"expected names of axes, found {self.axes!r}")

    def problems(self, array: AnyArray, kind: _Kind, sizes: dict[str, int]) -> Iterator[tuple[str, object]]:
        """What is expected and what is found instead; each holds only if there is none before it.

        Lengths of axes that are new are put into `sizes`.
        """
        axes = self.axes.split()
        if array.ndim != len(axes) or array.dtype.kind not in kind.dtypes:
            yield kind.words(len(axes)), f"{array.dtype} of shape {array.shape}"
        for axis, length in zip(axes, array.shape, strict=True):
            match = cast("re.Match[str]", _AXIS.fullmatch(axis))
            known, shift = match["size"] or match["name"], int(match["shift"] or 0)
            if match["size"] or known in sizes:
                wanted = int(known) if match["size"] else sizes[known] + shift
                if length != wanted:
                    yield f"{wanted} along axis {axis}", length
            else:
                if length < max(self.least, shift):
                    yield f"at least {max(self.least, shift)} along axis {axis}", length
                sizes[known] = length - shift
        if kind is _REAL:
            wrong = np.isinf(array) if self.nan else ~np.isfinite(array)
            if wrong.any():
                yield "finite numbers, or none" if self.nan else "finite numbers", _first(array, wrong)
        if kind is _INTEGER and array.dtype.kind == "u" and array.size and int(array.max()) > _MOST_INT:
            yield f"integers up to {_MOST_INT}", str(array.max())
        for field, (is_outside, words) in _BOUNDS.items():
            bound = getattr(self, field)
            if bound is not None:
                limit = sizes[bound] if isinstance(bound, str) else bound
                outside = is_outside(array, limit)
                if outside.any():
                    yield f"{words} {limit:g}", _first(array, outside)
        if self.rising and (np.diff(array, axis=-1) < 0).any():
            yield "numbers that rise", str(array.ravel()[:4])
        if self.among:
            texts: list[str] = array.tolist()
            unknown = sorted({*texts} - {*self.among})
            if unknown or len({*texts}) < len(texts):
                yield f"some of {', '.join(self.among)}, each once", ", ".join(unknown or texts)


def _first(array: AnyArray, wrong: AnyArray) -> str:
    """The first entry that is wrong, and where it is."""
    place = tuple(int(each) for each in np.argwhere(wrong)[0])
    return f"{array[place]}{f' at {list(place)}' if place else ''}"


@dataclass(frozen=True)
class Nested:
    """How a part in a part is kept, as an annotation: ``Annotated[Features, Nested(flat=True)]``."""

    # Whether its arrays have their own names alone, and not the field's in front; for one class only
    flat: bool = False
    kinds: tuple[str, ...] = ()  # Kinds that it may be of, if not any


NOT_KEPT = "not kept"
"""Annotation of a field that `Stored.from_state` is given, as it is on the card."""


class Stored:
    """A fitted part of a model, which is kept as arrays.

    A class that derives from it is a dataclass. With ``kind="a name"`` in its list of bases, it can also
    stand in fields that are annotated with a protocol or an abstract class.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str | None = None, **words: object) -> None:
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
        """Arrays by name, from which `from_state` makes it again."""
        arrays: Arrays = {}
        _keep(self, "", arrays)
        return arrays

    @classmethod
    def from_state(cls, arrays: Given, where: str = "model", prefix: str = "", **given: object) -> Self:
        """Make it from its arrays, whose names begin with a prefix, and from the fields that are not kept.

        `where` they are from stands in front of errors.
        """
        sizes: dict[str, int] = {}
        values: dict[str, object] = given
        this: type = cls
        for field in _fields_of(this):
            name = f"{prefix}{field.name}"
            if field.optional and not any(each == name or each.startswith(f"{name}.") for each in arrays):
                values[field.name] = None
                continue
            if field.kind is not None:
                made = field.made(_array_of(field, field.kind, arrays, name, sizes, where))
                if field.choices and made not in field.choices:
                    expected = f"one of {', '.join(field.choices)}"
                    raise InputError.of(where=where, field=name, expected=expected, found=repr(made))
                values[field.name] = made
                continue
            names = [name]
            if field.several:
                # Each has an array at least: a count from a file may be of any size.
                counted = _Field("count", array=Array(low=0, high=len(arrays)))
                count = int(_array_of(counted, _INTEGER, arrays, f"{name}.count", {}, where))
                names = [f"{name}.{place}" for place in range(count)]
            parts = []
            for each in names:
                if each.count(".") > _MOST_DEPTH:
                    expected = f"at most {_MOST_DEPTH} parts in each other"
                    raise InputError.of(where=where, expected=expected, found="more")
                cls_of_part: type = field.cls
                if not field.fixed:
                    kind = str(_array_of(_KIND_FIELD, _TEXT, arrays, f"{each}.kind", {}, where))
                    known = field.nested.kinds or tuple(sorted({*_CLASSES, *_HOMES}))
                    if kind in known and kind not in _CLASSES and kind in _HOMES:
                        importlib.import_module(_HOMES[kind])
                    if kind not in known or kind not in _CLASSES:
                        _refuse_kind(kind, f"one of the kinds {', '.join(known)}", each, where)
                    cls_of_part = _CLASSES[kind]
                    if lacking := _lacking(cls_of_part, field.cls):
                        _refuse_kind(kind, f"a part that has {', '.join(lacking)}", each, where)
                assert issubclass(cls_of_part, Stored)
                parts.append(
                    cls_of_part.from_state(arrays, where, prefix if field.nested.flat else f"{each}.")
                )
            values[field.name] = tuple(parts) if field.several else parts[0]
        try:
            part = cls(**values)
            part.check()
        except InputError as error:
            raise error if str(error).startswith(where) else error.within(where) from error
        return part


_CLASSES: dict[str, type] = {}
_HOMES: dict[str, str] = {}


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def register_homes(homes: Mapping[str, str]) -> None:
    """Say in which modules the classes of kinds are, so that each is imported when a model has one."""
    _HOMES.update(homes)


@dataclass(frozen=True, eq=False)
class _Field:
    """A field of a part, and how it is kept: as an array, as another part, or as several."""

    name: str
    optional: bool = False  # Whether it may be None: then there are no arrays of it
    kind: _Kind | None = None  # What its array holds; `None` for other parts
    array: Array = Array()
    made: Callable[[AnyArray], object] = lambda array: array  # Its value, of an array that fits
    choices: tuple[str, ...] = ()
    cls: type = object  # Class of a part, or what it has to be like
    nested: Nested = Nested()
    several: bool = False
    fixed: bool = True  # Whether parts are of that class, and need no kind


def _keep(part: Stored, prefix: str, arrays: Arrays) -> None:
    sizes: dict[str, int] = {}
    this: type = type(part)
    for field in _fields_of(this):
        value, name, before = getattr(part, field.name), f"{prefix}{field.name}", len(arrays)
        if field.optional and value is None:
            continue
        if field.kind is not None:
            arrays[name] = _kept_array(field, field.kind, value, name, sizes)
        elif field.several:
            arrays[f"{name}.count"] = np.array(len(value), dtype=np.int64)
            for place, each in enumerate(value):
                _keep_part(field, each, f"{name}.{place}", f"{name}.{place}.", arrays)
        else:
            _keep_part(field, value, name, prefix if field.nested.flat else f"{name}.", arrays)
        if field.optional and len(arrays) == before:
            raise InputError.of(where=_WRITTEN, field=name, expected="a part with an array", found="none")


def _kept_array(field: _Field, kind: _Kind, value: object, name: str, sizes: dict[str, int]) -> AnyArray:
    array = np.asarray(value, dtype=kind.made if kind.fits(value) else None)
    for expected, found in field.array.problems(array, kind, sizes):
        raise InputError.of(where=_WRITTEN, field=name, expected=expected, found=found)
    if kind is _TEXT and array.tolist() != np.asarray(value, dtype=object).tolist():
        expected = "texts that do not end in NUL"
        raise InputError.of(where=_WRITTEN, field=name, expected=expected, found=value)
    return array if kind is _TEXT else array.astype(kind.made, copy=False)


def _keep_part(field: _Field, part: object, name: str, prefix: str, arrays: Arrays) -> None:
    if not field.fixed and isinstance(part, Stored) and part.kind:
        if field.nested.kinds and part.kind not in field.nested.kinds:
            _refuse_kind(part.kind, f"one of the kinds {', '.join(field.nested.kinds)}", name, _WRITTEN)
        arrays[f"{name}.kind"] = np.array(part.kind)
    elif type(part) is not field.cls or not isinstance(part, Stored):
        expected = f"a {field.cls.__name__}" if field.fixed else "a part of a kind that can be kept"
        raise InputError.of(where=_WRITTEN, field=name, expected=expected, found=_place(type(part)))
    _keep(part, prefix, arrays)


def _array_of(
    field: _Field, kind: _Kind, arrays: Given, name: str, sizes: dict[str, int], where: str
) -> AnyArray:
    if name not in arrays:
        others = sorted(arrays)
        listed = ", ".join(others[:8]) + (", ..." if len(others) > 8 else "")
        expected = kind.words(len(field.array.axes.split()))
        found = f"none among the arrays {listed}".rstrip()
        raise InputError.of(where=where, field=name, expected=expected, found=found)
    array = arrays[name]
    for wanted, problem in field.array.problems(array, kind, sizes):
        raise InputError.of(where=where, field=name, expected=wanted, found=problem)
    return array if kind is _TEXT else array.astype(kind.made, copy=False)


def _refuse_kind(kind: str, expected: str, name: str, where: str) -> NoReturn:
    raise InputError.of(where=where, field=f"{name}.kind", expected=expected, found=repr(kind))


@cache
def _lacking(cls: type, wanted: type) -> tuple[str, ...]:
    """What a class lacks to stand for another: members of a protocol, or the other among its bases."""
    if not getattr(wanted, "_is_protocol", False):
        return () if issubclass(cls, wanted) else (f"the base {wanted.__name__}",)
    members = {
        name
        for base in wanted.__mro__
        if getattr(base, "_is_protocol", False) and base is not Protocol
        for name in (*vars(base), *inspect.get_annotations(base))
        if not name.startswith("_")
    }
    own = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    return tuple(sorted(name for name in members if name not in own and not hasattr(cls, name)))


@cache
def _fields_of(cls: type) -> tuple[_Field, ...]:
    """The fields of a class; resolved once."""
    if not is_dataclass(cls):
        raise TypeError(f"{_place(cls)}: expected a dataclass")
    hints = get_type_hints(cls, include_extras=True)
    if any(each.name == "kind" for each in fields(cls)):
        raise TypeError(f"{_place(cls)}: kind: expected another name of a field")
    names = [each.name for each in fields(cls) if each.init]
    return tuple(_field(hints[name], name) for name in names if NOT_KEPT not in get_args(hints[name])[1:])


def _field(hint: object, name: str) -> _Field:
    """How a field with an annotation is kept."""
    extras: list[object] = []
    optional = False
    while get_origin(hint) is Annotated or (get_origin(hint) in (Union, UnionType) and not optional):
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            extras = [*more, *extras]
        else:
            others = [each for each in get_args(hint) if each is not NoneType]
            if len(others) != 1:
                break
            optional, hint = True, others[0]
    array = next((each for each in extras if isinstance(each, Array)), None)
    nested = next((each for each in extras if isinstance(each, Nested)), Nested())
    if optional and nested.flat:
        raise TypeError(f"{name}: a part that may be None has arrays of its own name")
    origin, words = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        kind = _KIND_OF.get(get_args(words[1])[0])
        if kind is None or array is None:
            raise TypeError(f"expected an array of a known type with its axes, found {hint!r}")
        return _Field(name, optional, kind, array)
    if origin is tuple and words[1:] == (Ellipsis,) and words[0] in _KIND_OF:
        return _Field(
            name, optional, _KIND_OF[words[0]], array or Array("_"), lambda all_: tuple(all_.tolist())
        )
    if origin is Literal and all(isinstance(word, str) for word in words):
        return _Field(name, optional, _TEXT, Array(), lambda found: found.item(), words)
    if hint in (float, int, bool, str):
        return _Field(name, optional, _KIND_OF[hint], array or Array(), lambda found: found.item())
    several = origin is tuple and words[1:] == (Ellipsis,)
    cls = words[0] if several else hint
    if not isinstance(cls, type) or get_origin(cls) is not None:
        raise TypeError(f"{name}: expected an annotation that can be kept, found {hint!r}")
    fixed = issubclass(cls, Stored) and is_dataclass(cls)
    return _Field(name, optional, cls=cls, nested=nested, several=several, fixed=fixed)


_KIND_FIELD = _Field("kind", kind=_TEXT)
