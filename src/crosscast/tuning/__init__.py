"""Auto-tuning; spaces of a kernel's variants: parameters with values, constraints, and launches.

A space is written in TOML, or in the T1 format of auto-tuners (`crosscast.tuning.space_files`). Its
expressions are arithmetic (`crosscast.tuning.expressions`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.characterization import default_local_size
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.characterization.launchfiles.arguments import build_argument, frontend_parameters
from crosscast.data.fields import Fields
from crosscast.errors import InputError
from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program
from crosscast.tuning.expressions import Expression, Value, plain

MOST_VARIANTS = 1 << 17
"""Of a space with more valid variants, this number is drawn at random."""
_MOST_ROWS = 1 << 21

Setting = int | float | str | bool
"""A value of a parameter."""

Variant = Mapping[str, Setting]
"""A value for each parameter."""


def label_of(variant: Variant) -> str:
    """Return the label of a variant, which is its profile's size.

    >>> label_of({"MWG": 16, "SA": 1})
    'MWG=16;SA=1'
    """
    return ";".join(f"{name}={_text_of(value)}" for name, value in variant.items())


@dataclass(frozen=True)
class LaunchRule:
    """How a variant is compiled and launched: sizes and arguments are expressions over its parameters."""

    program: Program
    kernel: str
    sizes: Mapping[str, tuple[Expression, ...]]  # By name in launch files, such as global and local
    shared: Expression | None  # Bytes of dynamic shared memory
    arguments: tuple[Mapping[str, object], ...]  # Launch files' tables, with expressions as texts for numbers
    constants: Mapping[str, Value]  # Other names in expressions than parameters
    where: str  # The file
    seed: int = 0

    def kernel_of(self, variant: Variant) -> Kernel:
        """Return the kernel of a variant, compiled with a macro for each parameter that the program names."""
        content = self.program.content
        # Included files, which are not in the content, may name any parameter.
        is_one_file = b"#include" not in content.replace(b" ", b"")
        used = [name for name in variant if name in _words(content)] if is_one_file else variant
        macros = [f"-D{name}={_text_of(variant[name])}" for name in used]
        return Kernel(replace(self.program, options=(*self.program.options, *macros)), self.kernel)

    def groups(self, variant: Variant) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the number of work-groups, and of work-items of each, by dimension."""
        values = {**self.constants, **variant}
        sizes = {
            name: tuple(size.integer(values, 1) for size in axes) for name, axes in self.sizes.items() if axes
        }
        if self.program.is_cuda:
            grid, block = sizes["grid"], sizes["block"]
            dims = max(len(grid), len(block))
            return _padded(grid, dims), _padded(block, dims)
        total = sizes["global"]
        local = sizes.get("local") or default_local_size(total)
        local = _padded(local, len(total))
        is_uneven = any(size % items for size, items in zip(total, local, strict=False))
        if is_uneven or len(local) != len(total):
            expected = f"a global size that is a multiple of the local size {local}"
            raise InputError.of(where=f"{self.where}: launch", field="global", expected=expected, found=total)
        return tuple(size // items for size, items in zip(total, local, strict=True)), local

    def coordinates(self, variants: Variants) -> Reals:
        """Return the coordinates ``(n, p)`` of variants: of parameters, and of sizes rounded up or down.

        Work-groups that reach over an edge of the data run other code than the rest.
        """
        settings = {
            name: np.array(values)[indices]
            for name, values, indices in zip(variants.names, variants.values, variants.rows.T, strict=True)
        }
        columns = [variants.coordinates]
        for size in (size for axes in self.sizes.values() for size in axes):
            for uneven in size.uneven({**self.constants, **settings}):
                column = np.broadcast_to(uneven, (len(variants),)).astype(np.float64)
                if column.std() > 0:
                    columns.append(((column - column.mean()) / column.std())[:, None])
        return np.concatenate(columns, axis=1)

    def launch(self, variant: Variant, *, copies: bool = True) -> Launch:
        """Return a variant's launch; its arrays are copies, as kernels write to them, or shared by all."""
        groups, local = self.groups(variant)
        kernel = self.kernel_of(variant)
        args = tuple(
            self._argument(number, table, kernel, copies=copies)
            for number, table in enumerate(self.tables(variant))
        )
        size = tuple(number * items for number, items in zip(groups, local, strict=True))
        return Launch(kernel, size, local, args, shared=self.shared_bytes(variant))

    def shared_bytes(self, variant: Variant) -> int | None:
        """Return the bytes of dynamic shared memory of a variant's blocks; ``None`` if the space has none."""
        return None if self.shared is None else self.shared.integer({**self.constants, **variant}, 0)

    def tables(self, variant: Variant) -> list[dict[str, object]]:
        """Return the arguments of a variant, as tables of a launch file."""
        values = {**self.constants, **variant}
        return [
            {
                name: _number(value, f"{self.where}: arg[{number}]: {name}", values)
                for name, value in table.items()
            }
            for number, table in enumerate(self.arguments)
        ]

    def _argument(
        self, number: int, table: Mapping[str, object], kernel: Kernel, *, copies: bool
    ) -> Argument:
        has_type = {"type", "null", "local", "sampler", "image"} & table.keys()
        text = json.dumps(table, sort_keys=True)
        argument = _cached_argument(text, number, self.seed, self.where, None if has_type else kernel)
        return argument.copy() if copies and isinstance(argument, np.ndarray) else argument


@functools.lru_cache(maxsize=8)
def _cached_argument(text: str, number: int, seed: int, where: str, kernel: Kernel | None) -> Argument:
    """Build an argument from its table in JSON, and `kernel` if its type is that of the parameter."""
    field = f"{where}: arg[{number}]"

    def declared() -> Parameter:
        parameters = frontend_parameters(kernel.program, kernel.name) if kernel is not None else []
        if number >= len(parameters):
            expected = f"one of the kernel's {len(parameters)} parameters"
            raise InputError.of(where=field, expected=expected, found=f"argument {number} (from 0)")
        return parameters[number]

    argument = build_argument(Fields(json.loads(text), field), Path(where).parent, (seed, number), declared)
    if not isinstance(argument, np.ndarray):
        return argument
    array = shared_empty(argument.shape, argument.dtype)
    array[...] = argument
    return array


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


def _text_of(value: Setting) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@dataclass(frozen=True, eq=False)
class Variants:
    """The valid variants of a space, ``n`` of them, in the order of their parameters' values."""

    names: tuple[str, ...]
    values: tuple[tuple[Setting, ...], ...]  # Of each parameter
    rows: Integers  # `(n, len(names))` Indices into these values
    drawn: bool = False  # Whether these were drawn at random from more

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Variant:
        return {
            name: values[index]
            for name, values, index in zip(self.names, self.values, self.rows[row].tolist(), strict=True)
        }

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the variants, which are their profiles' sizes."""
        return tuple(label_of(self[row]) for row in range(len(self)))

    def take(self, rows: Integers) -> Variants:
        """Return the variants of some rows."""
        return replace(self, rows=self.rows[rows])

    @functools.cached_property
    def coordinates(self) -> Reals:
        """Coordinates ``(n, p)`` of the parameters that vary, each of mean 0 and deviation 1.

        They are logarithms of positive numbers, and the positions of texts among a parameter's values.
        """
        columns = []
        for values, indices in zip(self.values, self.rows.T, strict=True):
            numbers = [value for value in values if not isinstance(value, str)]
            if len(numbers) < len(values):
                scale = np.arange(len(values), dtype=np.float64)
            else:
                scale = np.array(numbers, dtype=np.float64)
                scale = np.log2(scale) if (scale > 0).all() else np.arcsinh(scale)
            column = scale[indices]
            if column.std() > 0:
                columns.append((column - column.mean()) / column.std())
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0))


def variants_of(labels: Sequence[str]) -> Variants:
    """Return the variants of labels, which name the same parameters in the same order."""
    settings = [dict(part.partition("=")[::2] for part in label.split(";")) for label in labels]
    names = tuple(settings[0])
    for label, variant in zip(labels, settings, strict=True):
        if tuple(variant) != names:
            raise InputError.of(where="dataset", expected=f"variants of {', '.join(names)}", found=label)
    columns = [[_setting(variant[name]) for variant in settings] for name in names]
    values = tuple(tuple(sorted(set(column), key=lambda v: (isinstance(v, str), v))) for column in columns)
    rows = [
        [of_parameter.index(value) for value in column]
        for of_parameter, column in zip(values, columns, strict=True)
    ]
    return Variants(names, values, np.array(rows, dtype=np.int64).T)


def _setting(text: str) -> Setting:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@dataclass(frozen=True)
class Space:
    """Parameters of a kernel, their constraints, and the launch of a variant.

    Read by `read_space`; `launches` is ``None`` if the kernel's file or its launch is not known.
    """

    where: str  # The file
    kernel: str | None
    parameters: Mapping[str, tuple[Setting, ...]]
    constraints: tuple[Expression, ...]
    launches: LaunchRule | None = None
    constants: Mapping[str, Value] = field(default_factory=dict)  # Other names in the constraints

    def variants(self, *, most: int = MOST_VARIANTS, seed: int = 0) -> Variants:
        """Return all valid variants, or `most` of them at random.

        If there is none, the error names the constraint that excluded the last.
        """
        rng = np.random.default_rng(seed)
        names = tuple(self.parameters)
        rows = np.zeros((1, 0), dtype=np.int64)
        constraints, drawn = list(self.constraints), False
        for index, name in enumerate(names):
            count = len(self.parameters[name])
            if len(rows) * count > _MOST_ROWS:
                rows, drawn = rows[np.sort(rng.permutation(len(rows))[: _MOST_ROWS // count])], True
            repeated = np.repeat(rows, count, axis=0)
            rows = np.concatenate([repeated, np.tile(np.arange(count), len(rows))[:, None]], axis=1)
            bound = {*self.constants, *names[: index + 1]}
            for constraint in [each for each in constraints if each.names <= bound]:
                constraints.remove(constraint)
                rows = rows[constraint.holds(self._columns(rows), len(rows))]
                if not len(rows):
                    sample = "of those that were drawn " if drawn else ""
                    raise InputError.of(
                        where=constraint.where,
                        expected=f"constraints that a variant {sample}fulfils",
                        found=f"none that fulfils {constraint.text!r} and those before it",
                    )
        if len(rows) > most:
            rows, drawn = rows[np.sort(rng.permutation(len(rows))[:most])], True
        return Variants(names, tuple(self.parameters.values()), rows, drawn)

    def _columns(self, rows: Integers) -> dict[str, Value]:
        names = list(self.parameters)[: rows.shape[1]]
        return {**self.constants} | {
            name: np.array(self.parameters[name])[indices]
            for name, indices in zip(names, rows.T, strict=True)
        }

    @property
    def rule(self) -> LaunchRule:
        """The launch of variants; an error if the kernel's file or its launch is not known."""
        if self.launches is None:
            raise InputError.of(
                where=self.where, field="source", expected="the kernel's file and its launch", found="neither"
            )
        return self.launches
