"""Spaces of a kernel's variants: parameters with values, constraints, and the launch of each variant.

A space is written in TOML, or in the T1 format of auto-tuners (`crosscast.tuning.exchange`). Its expressions
are arithmetic (`crosscast.tuning.expressions`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.characterization import default_local_size
from crosscast.characterization.launchfiles.arguments import build_argument, frontend_parameters
from crosscast.data.fields import Fields
from crosscast.errors import InputError
from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program
from crosscast.tuning.expressions import Expression, Value, plain

MOST_VARIANTS = 1 << 17
"""Of a space with more valid variants, so many are drawn."""
_MOST_AT_ONCE = 1 << 21

Setting = int | float | str | bool
"""A value of a parameter."""

Variant = Mapping[str, Setting]
"""A value for each parameter."""


def label_of(variant: Variant) -> str:
    """A variant as a profile's size has it.

    >>> label_of({"MWG": 16, "SA": 1})
    'MWG=16;SA=1'
    """
    return ";".join(f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in variant.items())


@dataclass(frozen=True)
class LaunchRule:
    """How a variant is compiled and launched: sizes and arguments are expressions over its parameters."""

    program: Program
    kernel: str
    sizes: Mapping[str, tuple[Expression, ...]]  # As launch files name them: global and local, grid and block
    shared: Expression | None
    arguments: tuple[
        Mapping[str, object], ...
    ]  # Tables as launch files have them; texts for numbers are these
    constants: Mapping[str, Value]  # What expressions may name beside parameters
    where: str
    seed: int = 0

    def kernel_of(self, variant: Variant) -> Kernel:
        """The kernel of a variant; parameters that the program does not name are left out of its options."""
        used = [name for name in variant if name in _words(self.program.content)] if _whole(self) else variant
        defined = [f"-D{name}={_defined(variant[name])}" for name in used]
        options = (*self.program.options, *defined)
        return Kernel(replace(self.program, options=options), self.kernel)

    def groups(self, variant: Variant) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Work-groups in each dimension, and work-items of each."""
        values = {**self.constants, **variant}
        sizes = {
            name: tuple(each.whole(values, 1) for each in found)
            for name, found in self.sizes.items()
            if found
        }
        if self.program.is_cuda:
            grid, block = sizes["grid"], sizes["block"]
            dims = max(len(grid), len(block))
            return _padded(grid, dims), _padded(block, dims)
        total = sizes["global"]
        local = sizes.get("local") or default_local_size(total)
        local = _padded(local, len(total))
        uneven = [(size, each) for size, each in zip(total, local, strict=False) if size % each]
        if uneven or len(local) != len(total):
            expected = f"a global size that is a multiple of the local size {local}"
            raise InputError.of(where=self.where, field=label_of(variant), expected=expected, found=total)
        return tuple(size // each for size, each in zip(total, local, strict=True)), local

    def coordinates(self, variants: Variants) -> Reals:
        """Coordinates ``(n, p)`` of variants: of their parameters, and whether work-groups divide sizes.

        Those that reach over an edge have other code: tests, and what compilers make of them.
        """
        columns = {
            name: np.array(values)[places]
            for name, values, places in zip(variants.names, variants.values, variants.rows.T, strict=True)
        }
        found = [variants.coordinates]
        for each in (part for parts in self.sizes.values() for part in parts):
            for uneven in each.uneven({**self.constants, **columns}):
                column = np.broadcast_to(uneven, (len(variants),)).astype(np.float64)
                if column.std() > 0:
                    found.append(((column - column.mean()) / column.std())[:, None])
        return np.concatenate(found, axis=1)

    def launch(self, variant: Variant, groups: Sequence[int] | None = None) -> Launch:
        """The launch of a variant, or of so many of its work-groups alone."""
        whole, local = self.groups(variant)
        count = whole if groups is None else _padded(groups, len(whole))[: len(whole)]
        kernel = self.kernel_of(variant)
        args = tuple(
            self._argument(number, table, kernel) for number, table in enumerate(self.tables(variant))
        )
        size = tuple(each * items for each, items in zip(count, local, strict=True))
        return Launch(kernel, size, local, args, shared=self.shared_bytes(variant))

    def shared_bytes(self, variant: Variant) -> int | None:
        """Dynamic shared memory of a variant's blocks."""
        return None if self.shared is None else self.shared.whole({**self.constants, **variant}, 0)

    def tables(self, variant: Variant) -> list[dict[str, object]]:
        """Arguments of a variant, as launch files have them."""
        values = {**self.constants, **variant}
        return [
            {
                name: _number(value, f"{self.where}: arg[{number}]: {name}", values)
                for name, value in table.items()
            }
            for number, table in enumerate(self.arguments)
        ]

    def _argument(self, number: int, table: Mapping[str, object], kernel: Kernel) -> Argument:
        declared = kernel if _untyped(table) else None
        made = _made(json.dumps(table, sort_keys=True), number, self.seed, self.where, declared)
        return made.copy() if isinstance(made, np.ndarray) else made


def _untyped(table: Mapping[str, object]) -> bool:
    return not {"type", "null", "local", "sampler", "image"} & table.keys()


@functools.lru_cache(maxsize=8)
def _made(text: str, number: int, seed: int, where: str, kernel: Kernel | None) -> Argument:
    """An argument of its table; launches get copies of arrays, as kernels write to them."""
    place = f"{where}: arg[{number}]"

    def declared() -> Parameter:
        parameters = frontend_parameters(kernel.program, kernel.name) if kernel is not None else []
        if number >= len(parameters):
            expected = f"one of the kernel's {len(parameters)} parameters"
            raise InputError.of(where=place, expected=expected, found=f"argument {number} (from 0)")
        return parameters[number]

    return build_argument(Fields(json.loads(text), place), Path(where).parent, (seed, number), declared)


NUMERIC = ("length", "value", "local", "values", "shape", "start", "step", "low", "high", "mean", "sd")
"""Fields of arguments whose texts are expressions."""


def _number(value: object, where: str, values: Mapping[str, Value]) -> object:
    if where.rpartition(": ")[2] not in NUMERIC:
        return value
    if isinstance(value, list):
        return [_number(each, where, values) for each in value]
    if not isinstance(value, str):
        return value
    return plain(Expression.parse(value, where, frozenset(values)).value(values))


def _padded(sizes: Sequence[int], dims: int) -> tuple[int, ...]:
    return (*sizes, *(1,) * (dims - len(sizes)))


@functools.lru_cache(maxsize=16)
def _words(content: bytes) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", content.decode(errors="replace")))


def _whole(rule: LaunchRule) -> bool:
    """Whether the program is in one file, so that the names in it are all that a parameter can change."""
    return b"#include" not in rule.program.content.replace(b" ", b"")


def _defined(value: Setting) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@dataclass(frozen=True, eq=False)
class Variants:
    """The valid variants of a space, ``n`` of them, in the order of their parameters' values."""

    names: tuple[str, ...]
    values: tuple[tuple[Setting, ...], ...]  # Of each parameter
    rows: Integers  # `(n, len(names))` Places in these values
    drawn: bool = False  # Whether there are more, of which these were drawn at random

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Variant:
        return {
            name: values[place]
            for name, values, place in zip(self.names, self.values, self.rows[row].tolist(), strict=True)
        }

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Each as a profile's size has it."""
        return tuple(label_of(self[row]) for row in range(len(self)))

    def take(self, rows: Integers) -> Variants:
        """Some of them."""
        return replace(self, rows=self.rows[rows])

    @functools.cached_property
    def coordinates(self) -> Reals:
        """Numbers ``(n, p)`` for the parameters that vary, each of mean 0 and deviation 1.

        Numbers above zero stand by their logarithm, texts by their place.
        """
        columns = []
        for values, places in zip(self.values, self.rows.T, strict=True):
            numbers = [each for each in values if not isinstance(each, str)]
            if len(numbers) < len(values):
                column = np.arange(len(values), dtype=np.float64)
            else:
                column = np.array(numbers, dtype=np.float64)
                column = np.log2(column) if (column > 0).all() else np.arcsinh(column)
            found = column[places]
            if found.std() > 0:
                columns.append((found - found.mean()) / found.std())
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0))


@dataclass(frozen=True)
class Space:
    """Parameters of a kernel, what holds among them, and how a variant is launched.

    Read by `read_space`; `launches` is ``None`` where the kernel's file is not known.
    """

    where: str
    kernel: str | None
    parameters: Mapping[str, tuple[Setting, ...]]
    constraints: tuple[Expression, ...]
    launches: LaunchRule | None = None

    def variants(self, *, most: int = MOST_VARIANTS, seed: int = 0) -> Variants:
        """All valid variants; so many drawn at random if there are more.

        Raises
        ------
        InputError
            If there is none: the sentence names the constraint after which none was left.
        """
        rng = np.random.default_rng(seed)
        names = tuple(self.parameters)
        rows = np.zeros((1, 0), dtype=np.int64)
        left, drawn = list(self.constraints), False
        for place, name in enumerate(names):
            count = len(self.parameters[name])
            if len(rows) * count > _MOST_AT_ONCE:
                rows, drawn = rows[np.sort(rng.permutation(len(rows))[: _MOST_AT_ONCE // count])], True
            repeated = np.repeat(rows, count, axis=0)
            rows = np.concatenate([repeated, np.tile(np.arange(count), len(rows))[:, None]], axis=1)
            bound = set(names[: place + 1])
            for constraint in [each for each in left if each.names <= bound]:
                left.remove(constraint)
                rows = rows[constraint.holds(self._columns(rows), len(rows))]
                if not len(rows):
                    some = "of those that were drawn " if drawn else ""
                    raise InputError.of(
                        where=constraint.where,
                        expected=f"constraints that a variant {some}fulfils",
                        found=f"none that fulfils {constraint.text!r} and those before it",
                    )
        if len(rows) > most:
            rows, drawn = rows[np.sort(rng.permutation(len(rows))[:most])], True
        return Variants(names, tuple(self.parameters.values()), rows, drawn)

    def _columns(self, rows: Integers) -> dict[str, Value]:
        constants = {} if self.launches is None else dict(self.launches.constants)
        names = list(self.parameters)[: rows.shape[1]]
        return constants | {
            name: np.array(self.parameters[name])[places] for name, places in zip(names, rows.T, strict=True)
        }

    @property
    def rule(self) -> LaunchRule:
        """How variants are launched.

        Raises
        ------
        InputError
            If the space does not say.
        """
        if self.launches is None:
            raise InputError.of(
                where=self.where, field="source", expected="the kernel's file and its launch", found="neither"
            )
        return self.launches
