"""What instructions, intrinsics and builtins compute from scalars; results are fitted to their type later."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from support.interpreter.values import Type, fused

Function = Callable[..., Any]


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else -(-a // b) if (a < 0) != (b < 0) else a // b


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


def _divided(a: float, b: float) -> float:
    return float(np.float64(a) / np.float64(b))


UNSIGNED: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: a << min(b, 64),
    "lshr": operator.rshift,
    "udiv": _quotient,
    "urem": _remainder,
}
SIGNED: dict[str, Function] = {"ashr": operator.rshift, "sdiv": _quotient, "srem": _remainder}
REAL: dict[str, Function] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fneg": operator.neg,
    "fdiv": _divided,
    "frem": lambda a, b: float(np.fmod(a, b)),
}
_ORDERS: dict[str, Function] = {name: getattr(operator, name) for name in "eq ne gt ge lt le".split()}


def compare_integers(predicate: str) -> tuple[Function, bool]:
    """Function of an `icmp`, and whether it takes signed numbers."""
    return _ORDERS.get(predicate) or _ORDERS[predicate[1:]], predicate.startswith("s")


def compare_reals(predicate: str) -> Function:
    """Function of an `fcmp`."""
    ordered, order = predicate[0] == "o", _ORDERS.get(predicate[1:])

    def compare(a: float, b: float) -> bool:
        nan = math.isnan(a) or math.isnan(b)
        if predicate in ("ord", "uno", "true", "false"):
            return {"ord": not nan, "uno": nan, "true": True, "false": False}[predicate]
        assert order is not None
        return (not nan and order(a, b)) if ordered else (nan or order(a, b))

    return compare


UPDATES: dict[str, Function] = {
    **{name: UNSIGNED[name] for name in ("add", "sub", "and", "or", "xor")},
    "min": min,
    "max": max,
    "umin": min,
    "umax": max,
    "xchg": lambda old, new: new,
    "fadd": operator.add,
    "inc": lambda old: old + 1,
    "dec": lambda old: old - 1,
}
"""What atomics leave in memory, from what was there and the argument."""


def cast(opcode: str, from_: Type, to: Type) -> Function:
    """Function of a conversion of scalars."""
    if opcode in ("sext", "sitofp") or (opcode == "trunc" and to.bits == 1):
        return lambda a: real_of(from_.signed(a), to) if to.kind == "real" else from_.signed(a)
    if opcode == "uitofp":
        return lambda a: real_of(a, to)
    if opcode in ("fptosi", "fptoui"):
        return lambda a: int(a) if math.isfinite(a) else 0
    return lambda a: a


def real_of(value: int, to: Type) -> float:
    """An integer rounded once."""
    number = np.uint64(value) if value >= 0 else np.int64(value)
    return float(number.astype(np.float32 if to.bits == 32 else np.float64))


def _limits(type_: Type, signed: bool) -> tuple[int, int]:
    return (-(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1) if signed else (0, (1 << type_.bits) - 1)


_NAMES = {"fabs": "abs", "minnum": "fmin", "maxnum": "fmax"}


def real_function(name: str, type_: Type) -> Function:
    """Function of reals of this name in OpenCL C or among LLVM's intrinsics, of elements of this type."""
    if name in ("fma", "mad", "fmuladd"):
        return lambda a, b, c: fused(a, b, c, type_.bits)
    function: Function = getattr(np, _NAMES.get(name, name))
    return function


def integer_function(name: str, type_: Type, signed: bool) -> Function:
    """The same for integers."""
    bits, (low, high) = type_.bits, _limits(type_, signed)
    functions: dict[str, Function] = {
        **dict.fromkeys(("min", "smin", "umin"), min),
        **dict.fromkeys(("max", "smax", "umax"), max),
        "abs": lambda a, *_: abs(a),
        **dict.fromkeys(("uadd.sat", "sadd.sat"), lambda a, b: max(low, min(high, a + b))),
        **dict.fromkeys(("usub.sat", "ssub.sat"), lambda a, b: max(low, min(high, a - b))),
        "fshl": lambda a, b, c: (((a << bits) | b) << (c % bits)) >> bits,
        "fshr": lambda a, b, c: ((a << bits) | b) >> (c % bits),
        "ctpop": lambda a: (a & ((1 << bits) - 1)).bit_count(),
        "ctlz": lambda a, *_: bits - (a & ((1 << bits) - 1)).bit_length(),
        "cttz": lambda a, *_: (a & -a).bit_length() - 1 if a else bits,
    }
    return functions[name]
