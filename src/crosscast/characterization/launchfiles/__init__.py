"""Launch files: a kernel, its sizes and its arguments in TOML; and launches from files of any format."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import AnyArray
from crosscast.characterization import default_local_size
from crosscast.characterization.launchfiles import simfile
from crosscast.characterization.launchfiles.arguments import (
    build_argument,
    frontend_parameters,
    within,
)
from crosscast.characterization.value_types import SCALAR_NAMES, ValueType
from crosscast.data.fields import Fields
from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import (
    CPP_STANDARDS,
    OPENCL_STANDARDS,
    Argument,
    Image,
    Kernel,
    Launch,
    Local,
    Parameter,
    Program,
    Sampler,
)

SIZE_NAMES = ("global", "local", "offset", "grid", "block", "shared")
"""Fields with the sizes of a launch, in OpenCL's terms or in those of CUDA and HIP."""


def refuse_sizes(program: Program, given: Mapping[str, object], where: str, flag: str = "") -> None:
    """Raise for OpenCL's terms on launches of CUDA and HIP, and vice versa."""
    known = SIZE_NAMES[3:] if program.is_cuda else SIZE_NAMES[:3]
    for name in SIZE_NAMES:
        if given[name] and name not in known:
            expected = ", ".join(f"{flag}{other}" for other in known)
            raise InputError.of(
                where=where, problem=f"{flag}{name} is not for {program.language}, expected {expected}"
            )


def read(path: str | Path) -> list[Launch]:
    """Read the launches of a launch file, in the order in which they run.

    Launches share the arrays of their arguments: what one writes the next one reads.
    """
    path = Path(path)
    fields = Fields(_load(path), str(path))
    head = _Head.read(fields, path.parent)
    seed = fields.integer("seed", 0) or 0
    tables, variants = fields.tables("arg"), fields.tables("launch")
    variables = dict(_variables(fields.tables("variable"), path.parent, seed))
    fields.finish()
    arguments = []
    for index, table in enumerate(tables):
        name, read_only = table.text("name"), table.flag("read_only")
        declared = functools.partial(head.parameter, index, table.where)
        value = build_argument(table, path.parent, (seed, index), declared)
        arguments.append(_Argument(name, value, read_only, table.where))
    if variables and not head.program.is_cuda:
        raise InputError.of(
            where=path, problem=f"variable is not for {head.program.language}, but for CUDA and HIP"
        )
    if not variants:
        launches = [head.launch(str(path), arguments)]
    else:
        launches = [_variant(variant, head, arguments) for variant in variants]
    return [replace(launch, variables=variables) for launch in launches]


def _variables(tables: Sequence[Fields], base: Path, seed: int) -> Iterator[tuple[str, Argument]]:
    """Yield names and values of the program's variables."""
    for index, table in enumerate(tables):
        table.require("name", "the name of a __constant__ or __device__ variable, or of a texture")
        name = str(table.text("name"))
        yield (
            name,
            build_argument(table, base, (seed, 1 << 16, index), functools.partial(_untyped, table.where)),
        )


def _untyped(where: str) -> Parameter:
    raise InputError.of(where=where, problem="type is missing, expected that of the variable's elements")


def _load(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the launch file ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError.of(where=path, expected="a TOML text", found="binary data") from error
    if not text.strip():
        raise InputError.of(where=path, problem="the launch file is empty")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, problem=f"not valid TOML: {error}") from error


@dataclass(frozen=True)
class _Argument:
    """An argument of the file, for one or several launches."""

    name: str | None
    value: Argument
    read_only: bool
    where: str


@dataclass(frozen=True)
class _Head:
    """A launch without its arguments; sizes of CUDA and HIP are those of grid and block."""

    program: Program
    kernel: str | None = None
    global_size: tuple[int, ...] | None = None
    local_size: tuple[int, ...] | None = None
    offset: tuple[int, ...] = ()
    shared: int | None = None

    @classmethod
    def read(cls, fields: Fields, base: Path) -> _Head:
        fields.require("source", "the path of the program")
        source = base / str(fields.text("source"))
        options = fields.texts("options")
        standard = fields.choice("standard", (*OPENCL_STANDARDS, *CPP_STANDARDS), "")
        return cls(Program.from_file(source, options=options, standard=standard)).override(fields)

    def override(self, fields: Fields) -> _Head:
        """Return a copy with the fields of a ``[[launch]]`` table."""
        refuse_sizes(self.program, {name: name in fields for name in SIZE_NAMES}, fields.where)
        cuda = self.program.is_cuda
        global_size = fields.sizes("grid" if cuda else "global", 1)
        local_size = fields.sizes("block" if cuda else "local", 1)
        kernel = fields.text("kernel")
        offset = None if cuda else fields.sizes("offset", 0)
        shared = fields.integer("shared", 0)
        head = replace(
            self,
            kernel=self.kernel if kernel is None else kernel,
            global_size=self.global_size if global_size is None else global_size,
            local_size=self.local_size if local_size is None else local_size,
            offset=self.offset if offset is None else offset,
            shared=self.shared if shared is None else shared,
        )
        # An inherited local size of other dimensions than the new global size does not apply.
        is_other = global_size and self.local_size and len(global_size) != len(self.local_size)
        return replace(head, local_size=None) if is_other and not local_size and not cuda else head

    def parameter(self, index: int, where: str) -> Parameter:
        """Return the kernel's parameter of an argument, found when needed."""
        if self.kernel is None:
            raise InputError.of(where=where, problem="type is missing, and the kernel is not known yet")
        declared = frontend_parameters(self.program, self.kernel)
        if index >= len(declared):
            raise InputError.of(
                where=where,
                problem=f"{self.kernel} has {len(declared)} parameters, this is argument {index} (from 0)",
            )
        return declared[index]

    def launch(self, where: str, arguments: Sequence[_Argument], *, check_names: bool = True) -> Launch:
        """Make the launch, and check the names of its arguments against the kernel's."""
        if self.kernel is None:
            raise InputError.of(where=where, problem="kernel is missing, expected the name of a kernel")
        cuda = self.program.is_cuda
        if self.global_size is None:
            name, meaning = ("grid", "the number of blocks") if cuda else ("global", "the global size")
            raise InputError.of(where=where, problem=f"{name} is missing, expected {meaning}")
        if cuda and self.local_size is None:
            raise InputError.of(
                where=where, problem="block is missing, expected the number of threads of a block"
            )
        if check_names and any(argument.name for argument in arguments):
            _check_names(self.kernel, frontend_parameters(self.program, self.kernel), arguments)
        kernel, values = Kernel(self.program, self.kernel), tuple(argument.value for argument in arguments)
        if cuda and self.local_size is not None:
            return Launch.on_grid(kernel, self.global_size, self.local_size, values, shared=self.shared)
        return Launch(
            kernel,
            self.global_size,
            self.local_size or default_local_size(self.global_size),
            values,
            self.offset,
            frozenset(index for index, argument in enumerate(arguments) if argument.read_only),
        )


def _check_names(kernel: str, declared: Sequence[Parameter], arguments: Sequence[_Argument]) -> None:
    """Raise for an argument whose name is not that of the kernel's parameter at its position."""
    for index, (argument, parameter) in enumerate(zip(arguments, declared, strict=False)):
        # Parameters of stripped bitcode have names arg<k>.
        if argument.name not in (None, parameter.name) and parameter.name != f"arg{index}":
            raise InputError.of(
                where=argument.where,
                field="name",
                expected=f"{parameter.name!r}, which parameter {index} of {kernel} is called",
                found=repr(argument.name),
            )


def _variant(fields: Fields, defaults: _Head, arguments: Sequence[_Argument]) -> Launch:
    """Make the launch of a ``[[launch]]`` table, which overrides the file's head."""
    head = defaults.override(fields)
    by_name = {argument.name: argument for argument in arguments if argument.name}
    names, values = fields.texts("use"), fields.table("set")
    for name in names:
        if name not in by_name:
            raise InputError.of(
                where=fields.where,
                field="use",
                expected=f"names of [[arg]] tables ({', '.join(by_name) or 'none has a name'})",
                found=repr(name),
            )
    chosen = [by_name[name] for name in names] or arguments
    if values is not None:
        chosen = _set_values(values, chosen)
    fields.finish()
    return head.launch(fields.where, chosen, check_names=not names)


def _set_values(values: Fields, arguments: Sequence[_Argument]) -> list[_Argument]:
    """Return arguments with other values for this launch, of unchanged types."""
    scalars = {a.name: a.value.dtype for a in arguments if a.name and isinstance(a.value, np.generic)}
    new: dict[str | None, Argument] = {}
    for name, value in values.items():
        if name not in scalars:
            raise InputError.of(
                where=values.where,
                expected=f"names of scalar arguments ({', '.join(scalars) or 'none'})",
                found=repr(name),
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise values.fail(name, "a number")
        with within(f"{values.where}: {name}"):
            new[name] = ValueType.parse(SCALAR_NAMES[scalars[name]]).fit(value)
    return [replace(a, value=new[a.name]) if a.name in new else a for a in arguments]


def read_launches(path: str | Path) -> list[Launch]:
    """Read the launches of a launch file (TOML) or of Oclgrind's simulator file (``.sim``).

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Launch
        The launches, in order; they share buffers as the file says.

    Raises
    ------
    InputError
        If the file cannot be read or is invalid; the message has the position.
    """
    if Path(path).suffix == ".sim":
        return [simfile.read(path).launch]
    return read(path)


Header = tuple[str, str]
"""Key of an included file, and its text."""

# Comments and strings first, so that an include inside of one does not match
_TOKEN = re.compile(
    r"/\*.*?\*/|//(?:\\\r?\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|^[ \t]*#[ \t]*include[ \t]*(?:\"(?P<quoted>[^\"\n]+)\"|<(?P<angled>[^>\n]+)>)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[A-Za-z_]", re.MULTILINE)
_GUARD = re.compile(r"^[ \t]*#[ \t]*(?:ifndef\b|if[ \t]+!)", re.MULTILINE)


def inlined(
    text: str,
    find: Callable[[str, bool, str], Header | None],
    label: str,
    stack: tuple[str, ...] = (),
    once: set[str] | None = None,
) -> str:
    """Inline the includes of a source; those that are not found are left.

    `find` gets the name of a header, whether that is in quotes, and the key of the including file, which is
    `label` for the source. Files that include it, and those that are included at most once and were, are in
    `stack` and `once`.
    """
    seen: set[str] = set() if once is None else once

    def put(match: re.Match[str]) -> str:
        name = match["quoted"] or match["angled"]
        header = find(name, match["quoted"] is not None, label) if name else None
        if header is None:
            return match[0]
        key, content = header
        is_once = _ONCE.search(content) is not None
        if key in (*stack, label) and not (is_once or _GUARD.search(content)):
            raise UnsupportedError.of(where=label, problem=f"its header {name} includes itself")
        if key in (*stack, label) or key in seen:
            return ""
        if is_once:
            seen.add(key)
        return inlined(_ONCE.sub("", content), find, key, (*stack, label), seen)

    return _TOKEN.sub(put, text)


def self_contained(program: Program) -> Program:
    """Return a program of a single source, with the user's headers inlined."""
    if program.form in ("llvm-ir", "bitcode") or b"include" not in program.content:
        return replace(program, options=_without_folders(program))
    text = program.content.decode("utf-8", "surrogateescape")
    folders = [Path(option[2:].strip()) for option in program.options if option.startswith("-I")]

    def find(name: str, quoted: bool, of: str) -> Header | None:
        including = [Path(of).parent] if quoted and program.path else []
        source = [program.path.parent] if program.path else []
        for folder in (*including, *source, *folders):
            path = (folder / name).absolute()
            try:
                if path.is_file():
                    return str(path), path.read_text("utf-8", "surrogateescape")
            except OSError as error:
                raise InputError.of(where=path, problem=f"cannot be read ({error.strerror})") from error
        return None

    source_text = inlined(text, find, str(program.path.absolute()) if program.path else program.label)
    if folders and _BY_MACRO.search(source_text):
        raise UnsupportedError.of(
            where=program.label, problem="it includes a file by the name that a macro has"
        )
    content = source_text.encode("utf-8", "surrogateescape")
    return replace(program, content=content, options=_without_folders(program))


def _without_folders(program: Program) -> tuple[str, ...]:
    return tuple(option for option in program.options if not option.startswith("-I"))


_SUFFIXES = {"opencl-c": ".cl", "cuda": ".cu", "hip": ".hip", "llvm-ir": ".ll", "bitcode": ".bc"}


def write_launch(launch: Launch, path: Path) -> None:
    """Write a launch file that `crosscast.read_launches` reads as the same launch.

    Its source is written beside it, named by the hash of its content, with the user's headers inlined, and
    each array of argument ``k`` as ``NAME-k.npy``, where NAME is the file's. Memory that several arguments
    share is written once.
    """
    program = self_contained(launch.kernel.program)
    source = path.parent / f"{program.sha256[:16]}{_SUFFIXES[program.form]}"
    head = launch_head(launch, program, source.name)
    try:
        source.write_bytes(program.content)
        parts = *_arguments(launch, path), *_written_variables(launch, path)
        path.write_text(toml_lines(head) + "".join(parts), encoding="utf-8")
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot be written ({error.strerror})") from error


def launch_head(launch: Launch, program: Program, source: str) -> dict[str, object]:
    """Return the fields of a launch file above its arguments, of `program` in the file `source`."""
    sizes: dict[str, Sequence[int]] = {"global": launch.global_size, "local": launch.local_size}
    if program.is_cuda:
        pairs = zip(launch.global_size, launch.local_size, strict=True)
        sizes = {"grid": [extent // block for extent, block in pairs], "block": launch.local_size}
    head: dict[str, object] = {"source": source, "kernel": launch.kernel.name, **sizes}
    if any(launch.global_offset):
        head["offset"] = launch.global_offset
    if launch.shared is not None:
        head["shared"] = launch.shared
    if program.options:
        head["options"] = program.options
    if program.form in ("opencl-c", "cuda", "hip"):
        head["standard"] = program.standard
    return head


def _arguments(launch: Launch, path: Path) -> Iterator[str]:
    """Yield tables of the arguments; those of the same memory share one, by name."""
    names: dict[int, str] = {}
    used = []
    for number, argument in enumerate(launch.args):
        shared = names.get(id(argument)) if isinstance(argument, np.ndarray | Image) else None
        used.append(shared or f"a{number}")
        if shared is None:
            names[id(argument)] = used[-1]
            table = {"name": used[-1], **_table(argument, path.parent / f"{path.stem}-{number}.npy")}
            if number in launch.read_only:
                table["read_only"] = True
            yield f"\n[[arg]]\n{toml_lines(table)}"
    if used:
        yield f"\n[[launch]]\n{toml_lines({'use': used})}"


def _written_variables(launch: Launch, path: Path) -> Iterator[str]:
    for name, value in launch.variables.items():
        table = {"name": name, **_table(value, path.parent / f"{path.stem}-{name}.npy")}
        yield f"\n[[variable]]\n{toml_lines(table)}"


def _table(argument: Argument, file: Path) -> dict[str, object]:
    match argument:
        case None:
            return {"null": True}
        case Local():
            return {"local": argument.nbytes}
        case Sampler() | Image():
            facts = dict(vars(argument))
            if isinstance(argument, Sampler):
                return {"sampler": facts}
            return {"image": facts | _saved(facts.pop("array"), file)}
        case bytes():
            return {"type": "uchar", "value": list(argument)}
        case np.generic():
            return {"type": _type_of(argument.dtype), "value": argument.item()}
    return _saved(argument, file)


def _saved(array: AnyArray, file: Path) -> dict[str, object]:
    kind = _type_of(array.dtype)
    np.save(file, array)
    return {"type": kind, "file": file.name}


def _type_of(dtype: np.dtype[np.generic]) -> str:
    name = SCALAR_NAMES.get(dtype.newbyteorder("="))
    if name is None:
        raise InputError(f"launch file: expected an array of numbers that OpenCL C has, found {dtype}")
    return name


def toml_lines(table: Mapping[str, object]) -> str:
    """Format fields as lines of TOML."""
    return "".join(f"{name} = {_toml(value)}\n" for name, value in table.items())


def _toml(value: object) -> str:
    """Format a value in TOML; strings are those of JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(field)}" for name, field in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # also inf and nan
    return json.dumps(value)
