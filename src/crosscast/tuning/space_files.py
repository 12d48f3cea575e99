"""Files of spaces and results: TOML (docs/tuning.md), and the formats T1 and T4 of auto-tuners, in JSON.

T1: F. J. Willemsen et al., A methodology for comparing optimization algorithms for auto-tuning (2024), and
the schemas of github.com/odgaard/TuningSchema.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from crosscast.characterization.launchfiles import SIZE_NAMES, refuse_sizes
from crosscast.data.fields import Fields
from crosscast.data.files import read_text
from crosscast.errors import InputError
from crosscast.kernel import Program
from crosscast.tuning import NUMERIC, LaunchRule, Setting, Space, Variant
from crosscast.tuning.expressions import Expression, Value, plain

_T1_VERSION = 1
_T1_TYPE = re.compile(r"u?int\d*|float\d*|double\d*|half\d*|bool")
_AXES = ("X", "Y", "Z")
_TYPES = {
    **{f"int{8 * n}": name for n, name in ((1, "char"), (2, "short"), (4, "int"), (8, "long"))},
    **{f"uint{8 * n}": name for n, name in ((1, "uchar"), (2, "ushort"), (4, "uint"), (8, "ulong"))},
    "bool": "uchar",
}
"""Types of OpenCL C by the names of T1, where these differ."""

_LANGUAGES = {"CUDA": "cuda", "HIP": "hip", "OpenCL": "opencl-c"}
_FILLS = {"Constant": "constant", "Random": "uniform"}
_MOST_VALUES, _MOST_BYTES = 10_000, 16 << 20


def read_space(path: str | Path, source: str | Path | None = None, kernel: str | None = None) -> Space:
    """Read a space of variants in TOML (docs/tuning.md), or a T1 file of Kernel Tuner in JSON.

    The kernel's file and name are by default those that the space names. Expressions are parsed, their names
    checked.
    """
    path = Path(path)
    text = read_text(path, "space", _MOST_BYTES)
    if text.lstrip().startswith("{"):
        return _of_t1(path, text, source, kernel)
    try:
        fields = Fields(tomllib.loads(text), str(path))
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, problem=f"not valid TOML: {error}") from error
    return _of_toml(path, fields, source, kernel)


def _of_toml(path: Path, fields: Fields, source: str | Path | None, kernel: str | None) -> Space:
    kernel, source_field = kernel or fields.text("kernel"), fields.text("source")
    fields.take("kernel")
    options, standard = fields.texts("options"), fields.text("standard") or ""
    table = fields.table("parameters")
    if table is None:
        raise InputError.of(
            where=path, field="parameters", expected="a table of values by name", found="none"
        )
    parameters = _parameters(table.items(), str(path))
    known = frozenset(parameters)
    constraints = _constraints(fields.texts("constraints"), str(path), known)
    head = fields.table("launch")
    arguments = fields.take("arg") or []
    if not (isinstance(arguments, list) and all(isinstance(each, dict) for each in arguments)):
        raise InputError.of(
            where=path, field="arg", expected="tables, each under [[arg]]", found=repr(arguments)
        )
    seed = fields.integer("seed", 0) or 0
    fields.finish()
    rule = None
    file = path.parent / source_field if source is None and source_field is not None else source
    if head is not None and file is not None:
        if kernel is None:
            raise InputError.of(where=path, field="kernel", expected="the name of a kernel", found="none")
        program = Program.from_file(file, options=options, standard=standard)
        rule = _rule_of_toml(program, kernel, head, tuple(arguments), known, str(path), seed)
    elif head is not None:
        head.items()
    return Space(str(path), kernel, parameters, constraints, rule)


def _rule_of_toml(
    program: Program,
    kernel: str,
    head: Fields,
    arguments: tuple[Mapping[str, object], ...],
    known: frozenset[str],
    where: str,
    seed: int,
) -> LaunchRule:
    refuse_sizes(program, {name: name in head for name in SIZE_NAMES}, f"{where}: launch")
    names = ("grid", "block") if program.is_cuda else ("global", "local")
    sizes = {}
    for name in names:
        value = head.take(name)
        axes = [] if value is None else value if isinstance(value, list) else [value]
        if not len(axes) <= 3 or any(isinstance(size, bool | dict | list) for size in axes):
            raise head.fail(name, "1 to 3 whole numbers or expressions")
        sizes[name] = tuple(Expression.parse(str(size), f"{where}: launch: {name}", known) for size in axes)
        if not axes and name != "local":
            raise InputError.of(where=where, field=f"launch: {name}", expected="sizes", found="none")
    shared = head.take("shared")
    parsed = None if shared is None else Expression.parse(str(shared), f"{where}: launch: shared", known)
    head.finish()
    rule = LaunchRule(program, kernel, sizes, parsed, arguments, {}, where, seed)
    for number, table in enumerate(arguments):
        for name, value in table.items():
            for text in value if isinstance(value, list) else [value]:
                if name in NUMERIC and isinstance(text, str):
                    Expression.parse(text, f"{where}: arg[{number}]: {name}", known)
                elif not isinstance(text, int | float | str | list | dict):
                    expected = "a number, a text or a list"
                    raise InputError.of(
                        where=f"{where}: arg[{number}]", field=name, expected=expected, found=text
                    )
    return rule


def _parameters(items: Sequence[tuple[str, object]], where: str) -> dict[str, tuple[Setting, ...]]:
    """Check the values of parameters by name, given as lists or as expressions of lists."""
    parameters: dict[str, tuple[Setting, ...]] = {}
    for name, content in items:
        field = f"{where}: parameters: {name}"
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InputError.of(where=field, expected="a name of letters, digits and _", found=name)
        if isinstance(content, str):
            content = plain(Expression.parse(content, field, frozenset()).value({}))
        entries = content if isinstance(content, list) else [content]
        values = [each for each in entries if _is_setting(each)]
        wrong = [each for each in entries if not _is_setting(each)]
        if wrong or not 1 <= len(values) <= _MOST_VALUES or len(set(values)) < len(values):
            expected = f"1 to {_MOST_VALUES} different numbers or texts"
            raise InputError.of(
                where=field, expected=expected, found=repr(wrong[0] if wrong else content)[:80]
            )
        if len({isinstance(each, str) for each in values}) > 1:
            raise InputError.of(where=field, expected="numbers or texts alone", found=repr(content)[:80])
        parameters[name] = tuple(values)
    if not parameters:
        raise InputError.of(where=where, field="parameters", expected="at least one", found="none")
    return parameters


def _is_setting(value: object) -> TypeGuard[Setting]:
    return isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))


def _constraints(texts: Sequence[str], where: str, known: frozenset[str]) -> tuple[Expression, ...]:
    return tuple(
        Expression.parse(text, f"{where}: constraints[{number}]", known) for number, text in enumerate(texts)
    )


# --- T1


def _of_t1(path: Path, text: str, source: str | Path | None, kernel: str | None) -> Space:
    """Read a T1 file.

    The grid is the problem size over the grid's divisors if the file has both, as in Kernel Tuner, and else
    follows from the global size.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, problem=f"not valid JSON: {error}") from error
    version = _at(content, path, dict, "General", optional=True).get("FormatVersion", _T1_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= _T1_VERSION:
        expected = f"a T1 file of version {_T1_VERSION}"
        raise InputError.of(where=path, field="General: FormatVersion", expected=expected, found=version)
    tuning = _at(content, path, list, "ConfigurationSpace", "TuningParameters")
    specification = _at(content, path, dict, "KernelSpecification")
    items = [(_text(each, path, "Name"), _values(each, path)) for each in tuning]
    parameters = _parameters(items, str(path))
    size = specification.get("ProblemSize")
    sizes = size if isinstance(size, list) else [] if size is None else [size]
    if len(sizes) > len(_AXES):
        expected = f"at most {len(_AXES)} sizes"
        raise InputError.of(where=path, field="ProblemSize", expected=expected, found=len(sizes))
    # Conditions may compute with sizes that are written as texts.
    numbers = [int(each) if isinstance(each, str) and each.isdigit() else each for each in sizes]
    constants: dict[str, Value] = {"ProblemSize": numbers} if sizes else {}
    known = frozenset(parameters) | frozenset(constants)
    conditions = _at(content, path, list, "ConfigurationSpace", "Conditions", optional=True)
    constraints = _constraints([_text(each, path, "Expression") for each in conditions], str(path), known)
    name = kernel or specification.get("KernelName")
    file = source if source is not None else path.parent / str(specification.get("KernelFile"))
    if source is None and not Path(file).is_file():
        return Space(str(path), name, parameters, constraints, constants=constants)
    name = kernel or _text(specification, path, "KernelName")
    rule = _rule_of_t1(path, specification, Path(file), name, known, constants)
    return Space(str(path), name, parameters, constraints, rule, constants)


_Kind = TypeVar("_Kind", list[Any], dict[str, Any])


def _at(content: object, path: Path, kind: type[_Kind], *fields: str, optional: bool = False) -> _Kind:
    """Return the content of a nested field, empty if it is optional and missing."""

    def wrong(depth: int, expected: str) -> InputError:
        field = ": ".join(fields[:depth])
        return InputError.of(where=path, field=field, expected=expected, found=repr(content)[:60])

    for depth, field in enumerate(fields, start=1):
        if isinstance(content, dict) and optional and field not in content:
            return kind()
        content = content.get(field) if isinstance(content, dict) else None
        if depth < len(fields) and not isinstance(content, dict):
            raise wrong(depth, "an object")
    if not isinstance(content, kind):
        raise wrong(len(fields), "an object" if kind is dict else "a list")
    return content


def _text(entry: object, path: Path, field: str) -> str:
    value = entry.get(field) if isinstance(entry, dict) else None
    if not isinstance(value, str) or not value:
        raise InputError.of(where=path, field=field, expected="a text", found=repr(value)[:60])
    return value


def _values(entry: Mapping[str, object], path: Path) -> str | list[object]:
    values = entry.get("Values")
    if not isinstance(values, str | list):
        raise InputError.of(where=path, field="Values", expected="a list", found=repr(values)[:60])
    return values


def _rule_of_t1(
    path: Path,
    specification: Mapping[str, Any],
    file: Path,
    kernel: str,
    known: frozenset[str],
    constants: Mapping[str, Value],
) -> LaunchRule:
    language = specification.get("Language")
    if not isinstance(language, str) or language not in _LANGUAGES:
        raise InputError.of(
            where=path, field="Language", expected=f"one of {', '.join(_LANGUAGES)}", found=repr(language)
        )
    options = [
        option
        for option in _at(specification, path, list, "CompilerOptions", optional=True)
        if isinstance(option, str) and (_LANGUAGES[language] != "opencl-c" or not option.startswith("-std"))
    ]
    program = Program.from_file(file, options=options)

    def parse(text: object, field: str) -> Expression:
        return Expression.parse(str(text), f"{path}: {field}", known)

    def axes(field: str) -> tuple[Expression, ...]:
        table = _at(specification, path, dict, field)
        return tuple(parse(table[axis], f"{field}: {axis}") for axis in _AXES if axis in table)

    local, total = axes("LocalSize"), axes("GlobalSize")
    given = {name: value for name, value in specification.items() if value is not None}
    divisors = [_at(given, path, list, f"GridDiv{axis}", optional=True) for axis in _AXES]
    if constants and any(divisors):
        problem: Any = constants["ProblemSize"]
        grid = tuple(
            f"ceil(({items}) / ({' * '.join(f'({each})' for each in factors or [1])}))"
            for items, factors in zip(problem, divisors, strict=False)
        )
    elif specification.get("GlobalSizeType", language) == "OpenCL":
        grid = tuple(f"ceil(({a.text}) / ({b.text}))" for a, b in zip(total, local, strict=False))
    else:
        grid = tuple(each.text for each in total)
    if program.is_cuda:
        sizes = {"grid": tuple(parse(count, "GlobalSize") for count in grid), "block": local[: len(grid)]}
    else:
        pairs = zip(grid, [*(each.text for each in local), "1", "1"], strict=False)
        sizes = {
            "global": tuple(parse(f"({count}) * ({items})", "GlobalSize") for count, items in pairs),
            "local": local[: len(grid)],
        }
    shared = specification.get("SharedMemory")
    return LaunchRule(
        program,
        kernel,
        sizes,
        parse(shared, "SharedMemory") if shared and program.is_cuda else None,
        tuple(
            _argument_of_t1(each, path, number, known)
            for number, each in enumerate(_at(specification, path, list, "Arguments", optional=True))
        ),
        constants,
        str(path),
    )


def _argument_of_t1(entry: Any, path: Path, number: int, known: frozenset[str]) -> dict[str, object]:
    """Convert an argument to a table of a launch file."""
    kind = _text(entry, path, "Type")
    memory, fill = entry.get("MemoryType"), entry.get("FillType", "Constant")
    where = f"{path}: Arguments[{number}]"
    table: dict[str, object] = {"type": _TYPES.get(kind, kind)}
    if not _T1_TYPE.fullmatch(kind):
        raise InputError.of(where=where, field="Type", expected="a number's type", found=kind)
    if memory == "Scalar":
        return table | {"value": entry.get("FillValue", 0)}
    if memory != "Vector" or not isinstance(fill, str) or fill not in _FILLS:
        expected = "Scalar, or a Vector with the FillType Constant or Random"
        raise InputError.of(where=where, expected=expected, found=f"{memory} with {fill}")
    size = str(entry.get("Size", ""))
    Expression.parse(size, f"{where}: Size", known)
    if entry.get("MemType") == "Local":
        return {"local": f"({size}) * {entry.get('TypeSize', 4)}"}
    table |= {"length": size, "fill": _FILLS[fill]}
    return table | ({"value": entry.get("FillValue", 0)} if fill == "Constant" else {})


# --- written


def t4_of(
    variants: Sequence[Variant],
    times: Mapping[int, Sequence[float]],
    failed: Mapping[int, str],
    forecasts: Sequence[Mapping[str, float]] = (),
) -> dict[str, object]:
    """Write results in the T4 format, of version 1.0.0: `times` in seconds and `failed` by a variant's index.

    A failure is ``compile``, ``runtime``, ``timeout`` or ``correctness``; `forecasts`, in seconds by name,
    are written as measurements beside the time.
    """
    results = []
    for number, variant in enumerate(variants):
        runs = [1e3 * seconds for seconds in times.get(number, ())]
        median = sorted(runs)[len(runs) // 2] if runs else None
        measurements = [] if median is None else [{"name": "time", "value": median, "unit": "ms"}]
        if forecasts:
            measurements += [
                {"name": name, "value": 1e3 * value, "unit": "ms"}
                for name, value in forecasts[number].items()
            ]
        # Of a variant that did not run it is not known whether it is correct.
        checked = {"invalidity": failed.get(number, "correct"), "correctness": int(number not in failed)}
        results.append(
            {
                "configuration": dict(variant),
                "objectives": ["time"],
                "times": {"runtimes": runs},
                **(checked if runs or number in failed else {}),
                "measurements": measurements,
            }
        )
    return {"schema_version": "1.0.0", "results": results, "metadata": {"timeunit": "milliseconds"}}


def t1_of(space: Space, name: str) -> dict[str, object]:
    """Write a space in the T1 format, with its sizes as expressions; refuse what T1 cannot say."""
    rule = space.rule
    cuda, standard = rule.program.is_cuda, rule.program.standard
    total, local = (rule.sizes[name] for name in (("grid", "block") if cuda else ("global", "local")))
    if not local:
        raise InputError.of(where=rule.where, field="local", expected="the local size, for T1", found="none")
    dims = _AXES[: max(len(total), len(local))]
    language = {form: name for name, form in _LANGUAGES.items()}.get(rule.program.form, "OpenCL")
    version = f"-std={standard}" if cuda else f"-cl-std={'CL' * standard[0].isdigit()}{standard}"
    return {
        "General": {"BenchmarkName": name, "FormatVersion": _T1_VERSION, "OutputFormat": "JSON"},
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": each, "Type": _kind(values), "Values": str(list(values)), "Default": values[0]}
                for each, values in space.parameters.items()
            ],
            "Conditions": [
                {"Expression": each.text, "Parameters": sorted(each.names)} for each in space.constraints
            ],
        },
        "KernelSpecification": {
            "Language": language if language != "HIP" else "CUDA",
            "CompilerOptions": [*rule.program.options, version],
            "BenchmarkName": name,
            "KernelName": rule.kernel,
            "KernelFile": str(Path(rule.program.label).absolute()),
            **rule.constants,
            "GlobalSizeType": "CUDA" if cuda else "OpenCL",
            "GlobalSize": dict(zip_longest(dims, (each.text for each in total), fillvalue="1")),
            "LocalSize": dict(zip_longest(dims, (each.text for each in local), fillvalue="1")),
            **({} if rule.shared is None else {"SharedMemory": rule.shared.text}),
            "Arguments": [
                _t1_argument(each, f"{rule.where}: arg[{number}]")
                for number, each in enumerate(rule.arguments)
            ],
        },
    }


def _kind(values: Sequence[object]) -> str:
    kinds = {type(each) for each in values}
    return "int" if kinds <= {int, bool} else "string" if str in kinds else "float"


def _t1_argument(table: Mapping[str, object], where: str) -> dict[str, object]:
    content = {name: value for name, value in table.items() if name not in ("name", "read_only", "seed")}
    local = content.pop("local", None)
    if local is not None:
        size = {"Size": str(local), "TypeSize": 1, "FillType": "Constant"}
        return {"Type": "int8", "MemoryType": "Vector", "MemType": "Local", **size}
    kind = str(content.pop("type", "none"))
    name = {of: name for name, of in _TYPES.items() if name != "bool"}.get(kind, kind)
    if _TYPES.get(name, name) != kind or not _T1_TYPE.fullmatch(name):
        raise InputError.of(where=where, field="type", expected="a type that T1 has", found=kind)
    fill = content.pop("fill", "zeros" if "length" in content else None)
    match fill, sorted(content):
        case None, ["value"]:
            return {"Type": name, "MemoryType": "Scalar", "FillValue": content["value"]}
        case ("zeros", ["length"]) | ("constant", ["length", "value"]):
            filled = {"FillType": "Constant", "FillValue": content.get("value", 0)}
        case "uniform", ["length"]:
            filled = {"FillType": "Random", "FillValue": 1.0}
        case _:
            found = ", ".join(table)
            raise InputError.of(
                where=where, expected="a number, or zeros, one number or uniform ones, for T1", found=found
            )
    return {"Type": name, "MemoryType": "Vector", "Size": str(content["length"]), **filled}
