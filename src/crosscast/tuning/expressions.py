"""Arithmetic in descriptions of spaces: in Python's syntax, evaluated here, and never run as code.

Numbers may be arrays, one number for each variant, so that a constraint is evaluated for all at once. A
division by zero gives NaN, for which no comparison but ``!=`` holds.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError

ARITHMETIC = (
    "arithmetic of numbers and parameters (+ - * / // % **, comparisons, and, or, not, x if y else z, min, "
    "max, abs, int, round, ceil, floor, sqrt, log2, lists and ranges)"
)
_LONGEST, _DEEPEST, _MOST_ITEMS = 4000, 60, 100_000
_LARGEST_POWER = 64.0

Value: TypeAlias = "float | str | npt.NDArray[Any] | list[Value]"
"""A number, a text, an array of these, or a list."""

_Number: TypeAlias = "float | npt.NDArray[Any]"


def _divided(above: _Number, below: _Number, divide: Callable[[Reals, Reals], Reals]) -> Value:
    below = np.asarray(below, dtype=np.float64)
    quotient = divide(np.asarray(above, dtype=np.float64), np.where(below == 0, np.nan, below))
    return quotient if quotient.ndim else float(quotient)


def _power(base: _Number, exponent: _Number) -> Value:
    if np.any(np.abs(np.asarray(exponent, dtype=np.float64)) > _LARGEST_POWER):
        raise ValueError(f"an exponent above {_LARGEST_POWER:g}")
    return np.asarray(base, dtype=np.float64) ** exponent


def _added(left: Value, right: Value) -> Value:
    if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= _MOST_ITEMS:
        return left + right
    return _numbers(left) + _numbers(right)


def _numbers(value: Value) -> _Number:
    """Return a number or an array of numbers; refuse texts and lists."""
    if isinstance(value, list | str) or (isinstance(value, np.ndarray) and value.dtype.kind not in "biuf"):
        raise ValueError("arithmetic of a text or a list")
    return value


_BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: _added,
    ast.Sub: lambda a, b: _numbers(a) - _numbers(b),
    ast.Mult: lambda a, b: _numbers(a) * _numbers(b),
    ast.Div: lambda a, b: _divided(_numbers(a), _numbers(b), np.divide),
    ast.FloorDiv: lambda a, b: _divided(_numbers(a), _numbers(b), np.floor_divide),
    ast.Mod: lambda a, b: _divided(_numbers(a), _numbers(b), np.mod),
    ast.Pow: lambda a, b: _power(_numbers(a), _numbers(b)),
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: _numbers(a) < _numbers(b),
    ast.LtE: lambda a, b: _numbers(a) <= _numbers(b),
    ast.Gt: lambda a, b: _numbers(a) > _numbers(b),
    ast.GtE: lambda a, b: _numbers(a) >= _numbers(b),
    ast.In: lambda a, b: reduce(np.logical_or, [a == each for each in _listed(b)], False),
    ast.NotIn: lambda a, b: np.logical_not(reduce(np.logical_or, [a == each for each in _listed(b)], False)),
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.USub: lambda a: -_numbers(a),
    ast.UAdd: _numbers,
    ast.Not: lambda a: np.logical_not(np.asarray(a)),
}


def _listed(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def _range(*bounds: Value) -> list[Value]:
    if not 1 <= len(bounds) <= 3:
        raise ValueError("a range of 1 to 3 numbers")
    numbers = range(*map(_integer, bounds))
    if len(numbers) > _MOST_ITEMS:
        raise ValueError(f"a range of {len(numbers)} numbers")
    return list(numbers)


def _integer(value: Value) -> int:
    number = float(_numbers(value))
    if not number.is_integer():
        raise ValueError(f"{number:g} is not a whole number")
    return int(number)


def _reduction(combine: Callable[[_Number, _Number], _Number]) -> Callable[..., Value]:
    return lambda *values: reduce(
        combine, [_numbers(each) for each in (_listed(values[0]) if len(values) == 1 else values)]
    )


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "min": _reduction(np.minimum),
    "max": _reduction(np.maximum),
    "abs": lambda a: abs(_numbers(a)),
    "int": lambda a: np.trunc(_numbers(a)),
    "round": lambda a: np.round(_numbers(a)),
    "ceil": lambda a: np.ceil(_numbers(a)),
    "floor": lambda a: np.floor(_numbers(a)),
    "sqrt": lambda a: np.sqrt(np.where(np.asarray(a) < 0, np.nan, a)),
    "log2": lambda a: np.log2(np.where(np.asarray(a) <= 0, np.nan, a)),
    "sum": lambda a: sum(map(_numbers, _listed(a))),
    "len": lambda a: len(_listed(a)),
    "list": lambda a=(): list(_listed(a)),
    "range": _range,
}
_ROUNDED = ("ceil", "floor", "int", "round")


@dataclass(frozen=True)
class Expression:
    """A parsed expression, with the names of the parameters in it."""

    text: str
    where: str  # The file, and the field in it
    tree: ast.expr = field(compare=False, repr=False)
    names: frozenset[str]

    @classmethod
    def parse(cls, text: str, where: str, known: frozenset[str]) -> Expression:
        """Parse an expression: arithmetic with names among `known`."""
        try:
            if len(text) > _LONGEST:
                raise ValueError(f"{len(text)} characters")
            tree = ast.parse(text.strip(), mode="eval").body
            names = frozenset(_names(tree, 0))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise cls._refused(text, where, str(error)) from None
        unknown = sorted(names - known)
        if unknown:
            expected = f"names of parameters ({', '.join(sorted(known))})"
            raise InputError.of(where=where, expected=expected, found=f"{unknown[0]!r} in {text!r}")
        return cls(text, where, tree, names)

    @staticmethod
    def _refused(text: str, where: str, reason: str) -> InputError:
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        return InputError.of(where=where, expected=ARITHMETIC, found=f"{shown!r} ({reason})")

    def value(self, values: Mapping[str, Value]) -> Value:
        """Evaluate the expression, to an array if a parameter is one."""
        try:
            with np.errstate(all="ignore"):
                return _value(self.tree, values)
        except (ValueError, TypeError, OverflowError, IndexError, RecursionError) as error:
            raise self._refused(self.text, self.where, str(error)) from None

    def uneven(self, values: Mapping[str, Value]) -> Iterator[Flags]:
        """Yield, for each division that is rounded to a whole number, whether it leaves a remainder."""
        for node in ast.walk(self.tree):
            match node:
                case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                    remainder = ast.BinOp(left, ast.Mod(), right)
                case ast.Call(func=function, args=[part]) if _function(function) in _ROUNDED:
                    remainder = ast.BinOp(part, ast.Mod(), ast.Constant(1))
                case _:
                    continue
            # Ranges, and conditions of lists, are not evaluated for all variants at once.
            with suppress(ValueError, TypeError, OverflowError):
                if _names(remainder, 0) <= values.keys():
                    yield np.not_equal(np.asarray(_value(remainder, values)), 0)

    def holds(self, values: Mapping[str, Value], count: int) -> Flags:
        """Return whether the expression is true, for each of `count` variants; NaN is not."""
        value = np.broadcast_to(np.asarray(self.value(values)), (count,))
        number = value.astype(np.float64) if value.dtype.kind in "biuf" else np.ones(count)
        is_true: Flags = np.isfinite(number) & (number != 0)
        return is_true

    def integer(self, values: Mapping[str, Value], least: int) -> int:
        """Evaluate the expression to a whole number of at least `least`."""
        value = self.value(values)
        try:
            number = _integer(value)
        except (ValueError, TypeError):
            number = least - 1
        if number < least:
            expected = f"a whole number of at least {least} of {self.text!r}"
            raise InputError.of(where=self.where, expected=expected, found=plain(value))
        return number


def plain(value: Value) -> Value:
    """Convert numbers to Python's types, and whole numbers to integers."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    value = value.item() if isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0 else value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


def _names(node: ast.AST, depth: int) -> set[str]:
    """Return the names of parameters in a tree; refuse one that is not arithmetic."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deep")
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return set()
        case ast.Name(id=name):
            return {name}
        case ast.Call(func=function, args=args, keywords=[]) if _function(function) in _FUNCTIONS:
            children: list[ast.AST] = list(args)
        case ast.ListComp(
            elt=element, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=ifs)]
        ):
            inner = {each for child in (element, *ifs) for each in _names(child, depth + 1)}
            return (inner - {name}) | _names(over, depth + 1)
        case ast.BinOp(op=operation) if type(operation) in _BINARY:
            children = [node.left, node.right]
        case ast.UnaryOp(op=unary) if type(unary) in _UNARY:
            children = [node.operand]
        case ast.BoolOp() | ast.List() | ast.Tuple():
            children = list(node.values if isinstance(node, ast.BoolOp) else node.elts)
        case ast.Compare() if all(type(each) in _COMPARISONS for each in node.ops):
            children = [node.left, *node.comparators]
        case ast.IfExp():
            children = [node.test, node.body, node.orelse]
        case ast.Subscript(value=ast.Name(), slice=index):
            children = [node.value, index]
        case _:
            raise ValueError(f"{type(node).__name__} is not allowed")
    return {name for child in children for name in _names(child, depth + 1)}


def _function(node: ast.expr) -> str:
    """Return the name of a function, with or without ``math.`` before it; empty if it is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="math"), attr=name):
            return name
    return ""


def _value(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=int() | float() | str() as constant):
            return constant
        case ast.Name(id=name):
            return values[name]
        case ast.Call(func=function, args=args):
            return _FUNCTIONS[_function(function)](*(_value(each, values) for each in args))
        case ast.ListComp(elt=element, generators=[generator]):
            assert isinstance(generator.target, ast.Name)
            name, items = generator.target.id, []
            for item in _listed(_value(generator.iter, values)):
                scope = {**values, name: item}
                if all(bool(_value(test, scope)) for test in generator.ifs):
                    items.append(_value(element, scope))
            return items
        case ast.BinOp(left=left, op=operation, right=right):
            return _BINARY[type(operation)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=unary, operand=operand):
            return _UNARY[type(unary)](_value(operand, values))
        case ast.BoolOp(op=boolean, values=parts):
            combine = np.logical_and if isinstance(boolean, ast.And) else np.logical_or
            return reduce(combine, [np.asarray(_value(each, values)) for each in parts])
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(each, values) for each in parts]
        case ast.Compare(left=first, ops=operations, comparators=others):
            chain = [_value(each, values) for each in (first, *others)]
            pairs = zip(operations, chain, chain[1:], strict=False)
            compared = [np.asarray(_COMPARISONS[type(each)](a, b)) for each, a, b in pairs]
            return reduce(np.logical_and, compared)
        case ast.IfExp(test=test, body=body, orelse=other):
            chosen = np.where(*(np.asarray(_value(each, values)) for each in (test, body, other)))
            return chosen if chosen.ndim else chosen.item()
        case ast.Subscript(value=listed, slice=index):
            return _listed(_value(listed, values))[_integer(_value(index, values))]
    raise ValueError(f"{type(node).__name__} is not allowed")
