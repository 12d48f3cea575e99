"""Fitted parts of models as named arrays, which follow from the annotations of their classes.

A part is a dataclass that derives from `Stored`. Its fields are arrays (`Reals`, `Integers`, `Flags`, with
axes and bounds by `Array`), tuples of texts or numbers, single numbers, flags or texts, other parts, tuples
of parts, or any of these or ``None``. Files are not trusted: all constraints of the annotations are checked
when arrays are read, and when they are written.
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
"""Arrays by name, as read."""

Bound = int | float | str

_WRITTEN = "model"
_MOST_DEPTH = 64
_MOST_INT = np.iinfo(np.int64).max
_AXIS = re.compile(r"(?P<size>\d+)|(?P<name>[A-Za-z_]\w*)(?P<shift>[+-]\d+)?")


@dataclass(frozen=True)
class _Kind:
    """Kind of an array's entries: accepted NumPy kinds, the resulting type, and its names in messages."""

    dtypes: str
    made: type[np.generic]
    one: str
    many: str

    def words(self, axes: int) -> str:
        return f"{self.many} along {axes} {'axis' if axes == 1 else 'axes'}" if axes else self.one

    def fits(self, value: object) -> bool:
        """Whether a value can be converted to this kind without loss; empty tuples can."""
        array = np.asarray(value)
        return array.size == 0 or array.dtype.kind in ("fiu" if self is _REAL else self.dtypes)


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
    # NaN violates none of them.
    "low": (np.less, "at least"),
    "above": (np.less_equal, "more than"),
    "high": (np.greater, "at most"),
    "below": (np.greater_equal, "less than"),
}


@dataclass(frozen=True, eq=False)
class Array:
    """Constraints of an array, as an annotation: ``Annotated[Reals, Array("k d", above=0)]``."""

    # Names of its axes. Axes of one name have one length in all arrays of a class. A whole number is the
    # length itself, and a name may have an offset, as in `"k+1"`
    axes: str = ""
    nan: bool = False  # Whether entries may be NaN; they are never infinite
    # Bounds: at least, more than, at most, less than. A text is the length of that axis
    low: Bound | None = None
    above: Bound | None = None
    high: Bound | None = None
    below: Bound | None = None
    least: int = 0  # Least length of every axis
    rising: bool = False  # Whether numbers do not fall along the last axis
    among: tuple[str, ...] = ()  # Allowed texts, each once; by default any

    def __post_init__(self) -> None:
        if not all(map(_AXIS.fullmatch, self.axes.split())):
            raise TypeError(f"expected names of axes, found {self.axes!r}")

    def problems(self, array: AnyArray, kind: _Kind, sizes: dict[str, int]) -> Iterator[tuple[str, object]]:
        """Violations, as what is expected and what is found; only the first one is reliable.

        Lengths of new axes are added to `sizes`.
        """
        axes = self.axes.split()
        if array.ndim != len(axes) or array.dtype.kind not in kind.dtypes:
            yield kind.words(len(axes)), f"{array.dtype} of shape {array.shape}"
        for axis, length in zip(axes, array.shape, strict=True):
            match = cast("re.Match[str]", _AXIS.fullmatch(axis))
            known, shift = match["size"] or match["name"], int(match["shift"] or 0)
            if match["size"] or known in sizes:
                required = int(known) if match["size"] else sizes[known] + shift
                if length != required:
                    yield f"{required} along axis {axis}", length
            else:
                if length < max(self.least, shift):
                    yield f"at least {max(self.least, shift)} along axis {axis}", length
                sizes[known] = length - shift
        if kind is _REAL:
            invalid = np.isinf(array) if self.nan else ~np.isfinite(array)
            if invalid.any():
                yield "finite numbers, or none" if self.nan else "finite numbers", _first(array, invalid)
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


def _first(array: AnyArray, invalid: AnyArray) -> str:
    """The first invalid entry, and its index."""
    index = tuple(int(each) for each in np.argwhere(invalid)[0])
    return f"{array[index]}{f' at {list(index)}' if index else ''}"


@dataclass(frozen=True)
class Nested:
    """How a part within a part is stored, as an annotation: ``Annotated[Features, Nested(flat=True)]``."""

    # Whether names of its arrays lack the field's as prefix; for fields of a single class
    flat: bool = False
    kinds: tuple[str, ...] = ()  # Allowed kinds; by default any


NOT_STORED = "not stored"
"""Annotation of a field that is an argument of `Stored.from_state`, as it is on the card."""


class Stored:
    """A fitted part of a model, which is stored as arrays.

    Subclasses are dataclasses. With ``kind="a name"`` in the list of bases, a subclass can also be the value
    of fields that are annotated with a protocol or an abstract class.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str | None = None, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if kind is not None:
            cls.kind = kind
        name = cls.__dict__.get("kind", "")
        if not name:
            cls.kind = ""
            return
        other = _CLASSES.get(name)
        if other is not None and _path_of(other) != _path_of(cls):
            raise TypeError(f"kind {name!r}: expected one class, found {_path_of(other)} and {_path_of(cls)}")
        _CLASSES[name] = cls

    def check(self) -> None:
        """Raise InputError unless the fields are consistent; called after reading."""

    def state(self) -> Arrays:
        """Arrays by name, for `from_state`."""
        arrays: Arrays = {}
        _store(self, "", arrays)
        return arrays

    @classmethod
    def from_state(cls, arrays: Given, where: str = "model", prefix: str = "", **given: object) -> Self:
        """Restore from arrays, whose names begin with `prefix`, and from the fields that are not stored.

        Errors begin with `where`.
        """
        sizes: dict[str, int] = {}
        values: dict[str, object] = given
        this: type = cls
        for field in _fields_of(this):
            name = f"{prefix}{field.name}"
            if field.optional and not any(each == name or each.startswith(f"{name}.") for each in arrays):
                values[field.name] = None
            elif field.kind is not None:
                value = field.convert(_array_of(field, field.kind, arrays, name, sizes, where))
                if field.choices and value not in field.choices:
                    expected = f"one of {', '.join(field.choices)}"
                    raise InputError.of(where=where, field=name, expected=expected, found=repr(value))
                values[field.name] = value
            elif field.several:
                # Each part has at least one array, so limit the count: that of a file may be of any size.
                counted = _Field("count", array=Array(low=0, high=len(arrays)))
                count = int(_array_of(counted, _INTEGER, arrays, f"{name}.count", {}, where))
                names = [f"{name}.{index}" for index in range(count)]
                values[field.name] = tuple(_part(field, arrays, each, f"{each}.", where) for each in names)
            else:
                inner = prefix if field.nested.flat else f"{name}."
                values[field.name] = _part(field, arrays, name, inner, where)
        try:
            part = cls(**values)
            part.check()
        except InputError as error:
            raise error if str(error).startswith(where) else error.within(where) from error
        return part


def _part(field: _Field, arrays: Given, name: str, prefix: str, where: str) -> Stored:
    """Restore a part of a field from arrays, whose names begin with the prefix."""
    if name.count(".") > _MOST_DEPTH:
        expected = f"at most {_MOST_DEPTH} parts in each other"
        raise InputError.of(where=where, expected=expected, found="more")
    cls: type = field.cls
    if not field.fixed:
        kind = str(_array_of(_KIND_FIELD, _TEXT, arrays, f"{name}.kind", {}, where))
        known = field.nested.kinds or tuple(sorted({*_CLASSES, *_HOMES}))
        if kind in known and kind not in _CLASSES and kind in _HOMES:
            importlib.import_module(_HOMES[kind])
        if kind not in known or kind not in _CLASSES:
            _refuse_kind(kind, f"one of the kinds {', '.join(known)}", name, where)
        cls = _CLASSES[kind]
        if lacking := _missing_members(cls, field.cls):
            _refuse_kind(kind, f"a part that has {', '.join(lacking)}", name, where)
    assert issubclass(cls, Stored)
    return cls.from_state(arrays, where, prefix)


_CLASSES: dict[str, type] = {}
_HOMES: dict[str, str] = {}


def _path_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def register_homes(homes: Mapping[str, str]) -> None:
    """Register the modules of kinds, so that each is imported when a model has one."""
    _HOMES.update(homes)


@dataclass(frozen=True, eq=False)
class _Field:
    """A field of a part, and how it is stored: as an array, as another part, or as several parts."""

    name: str
    optional: bool = False  # Whether it may be None: then it has no arrays
    kind: _Kind | None = None  # Of its array; `None` for other parts
    array: Array = Array()
    convert: Callable[[AnyArray], object] = lambda array: array  # From its array to its value
    choices: tuple[str, ...] = ()
    cls: type = object  # Class of a part, or a protocol
    nested: Nested = Nested()
    several: bool = False
    fixed: bool = True  # Whether parts are of exactly that class, and need no kind


def _store(part: Stored, prefix: str, arrays: Arrays) -> None:
    sizes: dict[str, int] = {}
    this: type = type(part)
    for field in _fields_of(this):
        value, name, before = getattr(part, field.name), f"{prefix}{field.name}", len(arrays)
        if field.optional and value is None:
            continue
        if field.kind is not None:
            arrays[name] = _stored_array(field, field.kind, value, name, sizes)
        elif field.several:
            arrays[f"{name}.count"] = np.array(len(value), dtype=np.int64)
            for index, each in enumerate(value):
                _store_part(field, each, f"{name}.{index}", f"{name}.{index}.", arrays)
        else:
            _store_part(field, value, name, prefix if field.nested.flat else f"{name}.", arrays)
        if field.optional and len(arrays) == before:
            raise InputError.of(where=_WRITTEN, field=name, expected="a part with an array", found="none")


def _stored_array(field: _Field, kind: _Kind, value: object, name: str, sizes: dict[str, int]) -> AnyArray:
    array = np.asarray(value, dtype=kind.made if kind.fits(value) else None)
    checked = _checked(field, kind, array, name, sizes, _WRITTEN)
    if kind is _TEXT and array.tolist() != np.asarray(value, dtype=object).tolist():
        expected = "texts that do not end in NUL"
        raise InputError.of(where=_WRITTEN, field=name, expected=expected, found=value)
    return checked


def _checked(
    field: _Field, kind: _Kind, array: AnyArray, name: str, sizes: dict[str, int], where: str
) -> AnyArray:
    for expected, found in field.array.problems(array, kind, sizes):
        raise InputError.of(where=where, field=name, expected=expected, found=found)
    return array if kind is _TEXT else array.astype(kind.made, copy=False)


def _store_part(field: _Field, part: object, name: str, prefix: str, arrays: Arrays) -> None:
    if not field.fixed and isinstance(part, Stored) and part.kind:
        if field.nested.kinds and part.kind not in field.nested.kinds:
            _refuse_kind(part.kind, f"one of the kinds {', '.join(field.nested.kinds)}", name, _WRITTEN)
        arrays[f"{name}.kind"] = np.array(part.kind)
    elif type(part) is not field.cls or not isinstance(part, Stored):
        expected = f"a {field.cls.__name__}" if field.fixed else "a part of a kind that can be kept"
        raise InputError.of(where=_WRITTEN, field=name, expected=expected, found=_path_of(type(part)))
    _store(part, prefix, arrays)


def _array_of(
    field: _Field, kind: _Kind, arrays: Given, name: str, sizes: dict[str, int], where: str
) -> AnyArray:
    if name not in arrays:
        others = sorted(arrays)
        listed = ", ".join(others[:8]) + (", ..." if len(others) > 8 else "")
        expected = kind.words(len(field.array.axes.split()))
        found = f"none among the arrays {listed}".rstrip()
        raise InputError.of(where=where, field=name, expected=expected, found=found)
    return _checked(field, kind, arrays[name], name, sizes, where)


def _refuse_kind(kind: str, expected: str, name: str, where: str) -> NoReturn:
    raise InputError.of(where=where, field=f"{name}.kind", expected=expected, found=repr(kind))


@cache
def _missing_members(cls: type, required: type) -> tuple[str, ...]:
    """Members of a protocol, or the base, that a class lacks to be a value of another's field."""
    if not getattr(required, "_is_protocol", False):
        return () if issubclass(cls, required) else (f"the base {required.__name__}",)
    members = {
        name
        for base in required.__mro__
        if getattr(base, "_is_protocol", False) and base is not Protocol
        for name in (*vars(base), *inspect.get_annotations(base))
        if not name.startswith("_")
    }
    names = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    return tuple(sorted(name for name in members if name not in names and not hasattr(cls, name)))


@cache
def _fields_of(cls: type) -> tuple[_Field, ...]:
    """The fields of a class; resolved once."""
    if not is_dataclass(cls):
        raise TypeError(f"{_path_of(cls)}: expected a dataclass")
    hints = get_type_hints(cls, include_extras=True)
    if any(each.name == "kind" for each in fields(cls)):
        raise TypeError(f"{_path_of(cls)}: kind: expected another name of a field")
    names = [each.name for each in fields(cls) if each.init]
    return tuple(_field(hints[name], name) for name in names if NOT_STORED not in get_args(hints[name])[1:])


def _field(hint: object, name: str) -> _Field:
    """How a field with an annotation is stored."""
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
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        kind = _KIND_OF.get(get_args(arguments[1])[0])
        if kind is None or array is None:
            raise TypeError(f"expected an array of a known type with its axes, found {hint!r}")
        return _Field(name, optional, kind, array)
    if origin is tuple and arguments[1:] == (Ellipsis,) and arguments[0] in _KIND_OF:
        return _Field(
            name, optional, _KIND_OF[arguments[0]], array or Array("_"), lambda values: tuple(values.tolist())
        )
    if origin is Literal and all(isinstance(word, str) for word in arguments):
        return _Field(name, optional, _TEXT, Array(), lambda text: text.item(), arguments)
    if hint in (float, int, bool, str):
        return _Field(name, optional, _KIND_OF[hint], array or Array(), lambda value: value.item())
    several = origin is tuple and arguments[1:] == (Ellipsis,)
    cls = arguments[0] if several else hint
    if not isinstance(cls, type) or get_origin(cls) is not None:
        raise TypeError(f"{name}: expected an annotation that can be kept, found {hint!r}")
    fixed = issubclass(cls, Stored) and is_dataclass(cls)
    return _Field(name, optional, cls=cls, nested=nested, several=several, fixed=fixed)


_KIND_FIELD = _Field("kind", kind=_TEXT)
