"""Launch files: a kernel, its sizes and its arguments, written in TOML; launches from files of any format."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.characterization import default_local_size
from crosscast.characterization.launchfiles import simfile
from crosscast.characterization.launchfiles.arguments import (
    SCALAR_DTYPES,
    Parameters,
    ValueType,
    build_argument,
    frontend_parameters,
)
from crosscast.errors import InputError
from crosscast.fields import Fields
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
"""What says how many work-items a launch has, in OpenCL's words or in those of CUDA and HIP."""


def refuse_sizes(program: Program, given: Mapping[str, object], where: str, flag: str = "") -> None:
    """Refuse words of OpenCL's on launches of CUDA and HIP, and the reverse."""
    known = SIZE_NAMES[3:] if program.is_cuda else SIZE_NAMES[:3]
    for name in SIZE_NAMES:
        if given[name] and name not in known:
            expected = ", ".join(f"{flag}{other}" for other in known)
            raise InputError(f"{where}: {flag}{name} is not for {program.language}, expected {expected}")


def read(path: str | Path, *, parameters: Parameters | None = None) -> list[Launch]:
    """Read the launches of a launch file, in the order in which they run.

    Launches share the arrays of their arguments: what one writes the next one reads.
    """
    path = Path(path)
    fields = Fields(_load(path), str(path))
    base = path.parent
    launch = _Header.read(fields, base)
    seed = fields.integer("seed", 0) or 0
    tables = fields.tables("arg")
    variants = fields.tables("launch")
    fields.finish()

    arguments = [
        _SharedArgument.read(
            table,
            base,
            (seed, index),
            index,
            _Lookup(parameters or frontend_parameters, launch, table.where),
        )
        for index, table in enumerate(tables)
    ]
    if not variants:
        return [launch.launch(str(path), arguments, parameters or frontend_parameters)]
    return [_variant(variant, launch, arguments, parameters or frontend_parameters) for variant in variants]


def _load(path: Path) -> dict[str, Any]:
    """Read and parse the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot read the launch file ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a TOML text, found binary data") from error
    if not text.strip():
        raise InputError(f"{path}: the launch file is empty")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error


@dataclass(frozen=True)
class _Lookup:
    """Finds the kernel parameter of an argument, when it is needed."""

    parameters: Parameters
    header: _Header
    where: str

    def __call__(self, index: int) -> Parameter:
        if self.header.kernel is None:
            raise InputError(f"{self.where}: type is missing, and the kernel is not known yet")
        declared = self.parameters(self.header.program, self.header.kernel)
        if index >= len(declared):
            raise InputError(
                f"{self.where}: {self.header.kernel} has {len(declared)} parameters, "
                f"this is argument {index} (from 0)"
            )
        return declared[index]


@dataclass(frozen=True)
class _SharedArgument:
    """An argument of the file, which one or several launches use."""

    name: str | None
    index: int
    value: Argument
    read_only: bool
    where: str

    @classmethod
    def read(
        cls, fields: Fields, base: Path, seed: tuple[int, ...], index: int, lookup: _Lookup
    ) -> _SharedArgument:
        name = fields.text("name")
        read_only = fields.flag("read_only")
        value = build_argument(fields, base, seed, lambda: lookup(index))
        return cls(name, index, value, read_only, fields.where)


@dataclass(frozen=True)
class _Header:
    """What a launch consists of beside its arguments; of CUDA and HIP, sizes are those of grid and block."""

    program: Program
    kernel: str | None
    global_size: tuple[int, ...] | None
    local_size: tuple[int, ...] | None
    offset: tuple[int, ...]
    shared: int | None = None

    @classmethod
    def read(cls, fields: Fields, base: Path) -> _Header:
        fields.require("source", "the path of the program")
        source = base / str(fields.text("source"))
        options = fields.texts("options")
        standard = fields.choice("standard", (*OPENCL_STANDARDS, *CPP_STANDARDS), "")
        program = Program.from_file(source, options=options, standard=standard)
        return cls(program, fields.text("kernel"), None, None, ()).override(fields)

    def override(self, fields: Fields) -> _Header:
        """Copy with what a ``[[launch]]`` table says otherwise."""
        shared = fields.integer("shared", 0)
        refuse_sizes(self.program, {name: name in fields for name in SIZE_NAMES}, fields.where)
        if self.program.is_cuda:
            return replace(
                self,
                kernel=fields.text("kernel") or self.kernel,
                global_size=fields.sizes("grid", 1) or self.global_size,
                local_size=fields.sizes("block", 1) or self.local_size,
                shared=self.shared if shared is None else shared,
            )
        global_size = fields.sizes("global", 1)
        local_size = fields.sizes("local", 1)
        return replace(
            self,
            kernel=fields.text("kernel") or self.kernel,
            global_size=global_size or self.global_size,
            # A local size for other dimensions than the new global size cannot be meant.
            local_size=local_size or (self.local_size if _same_rank(global_size, self.local_size) else None),
            offset=fields.sizes("offset", 0) or self.offset,
        )

    def launch(
        self,
        where: str,
        arguments: list[_SharedArgument],
        parameters: Parameters,
        *,
        check_names: bool = True,
    ) -> Launch:
        """Make the launch, after checking the names of its arguments against the kernel's."""
        if self.kernel is None:
            raise InputError(f"{where}: kernel is missing, expected the name of a kernel")
        cuda = self.program.is_cuda
        if self.global_size is None:
            name, meaning = ("grid", "the number of blocks") if cuda else ("global", "the global size")
            raise InputError(f"{where}: {name} is missing, expected {meaning}")
        if cuda and self.local_size is None:
            raise InputError(f"{where}: block is missing, expected the number of threads of a block")
        if check_names:
            _check_names(self, arguments, parameters)
        kernel = Kernel(self.program, self.kernel)
        if cuda and self.local_size is not None:
            values = [argument.value for argument in arguments]
            return Launch.on_grid(kernel, self.global_size, self.local_size, values, shared=self.shared)
        return Launch(
            kernel,
            self.global_size,
            self.local_size or default_local_size(self.global_size),
            tuple(argument.value for argument in arguments),
            self.offset,
            frozenset(index for index, argument in enumerate(arguments) if argument.read_only),
        )


def _same_rank(global_size: tuple[int, ...] | None, local_size: tuple[int, ...] | None) -> bool:
    return global_size is None or (local_size is not None and len(global_size) == len(local_size))


def _check_names(header: _Header, arguments: list[_SharedArgument], parameters: Parameters) -> None:
    """Refuse an argument whose name is not that of the kernel's parameter at its place."""
    if header.kernel is None or not any(argument.name for argument in arguments):
        return
    declared = parameters(header.program, header.kernel)
    for index, argument in enumerate(arguments):
        if argument.name is None or index >= len(declared):
            continue
        expected = declared[index].name
        # Programs without names of parameters (stripped bitcode) give arg<k>.
        if argument.name != expected and expected != f"arg{index}":
            raise InputError(
                f"{argument.where}: name: expected {expected!r}, "
                f"which parameter {index} of {header.kernel} is called, found {argument.name!r}"
            )


def _variant(
    fields: Fields, common: _Header, arguments: list[_SharedArgument], parameters: Parameters
) -> Launch:
    """One ``[[launch]]`` table: what it says otherwise than the file's head."""
    header = common.override(fields)
    names = fields.texts("use")
    chosen = _choose(fields, names, arguments) if names else list(arguments)
    values = fields.table("set")
    if values is not None:
        chosen = _set_values(values, chosen)
    fields.finish()
    return header.launch(fields.where, chosen, parameters, check_names=not names)


def _choose(
    fields: Fields, names: tuple[str, ...], arguments: list[_SharedArgument]
) -> list[_SharedArgument]:
    """Arguments by name, in the order of this launch's kernel."""
    by_name = {argument.name: argument for argument in arguments if argument.name}
    for name in names:
        if name not in by_name:
            raise InputError(
                f"{fields.where}: use: expected names of [[arg]] tables "
                f"({', '.join(by_name) or 'none has a name'}), found {name!r}"
            )
    return [by_name[name] for name in names]


def _set_values(values: Fields, arguments: list[_SharedArgument]) -> list[_SharedArgument]:
    """Arguments with other values for this launch; the types stay."""
    given: Mapping[str, Any] = dict(values.items())
    by_name = {argument.name: argument for argument in arguments if argument.name}
    for name, value in given.items():
        argument = by_name.get(name)
        if argument is None or not isinstance(argument.value, np.generic):
            scalars = [n for n, a in by_name.items() if isinstance(a.value, np.generic)]
            raise InputError(
                f"{values.where}: expected names of scalar arguments ({', '.join(scalars) or 'none'}), "
                f"found {name!r}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise values.fail(name, "a number")
        by_name[name] = replace(argument, value=_cast(values, name, value, argument.value.dtype))
    return [by_name.get(argument.name, argument) if argument.name else argument for argument in arguments]


def _cast(values: Fields, name: str, value: float, dtype: Any) -> Argument:
    """`value` in the type of the argument that it replaces."""
    kind = next(n for n, candidate in SCALAR_DTYPES.items() if candidate == dtype)
    try:
        return ValueType.parse(kind).scalar(value)
    except InputError as error:
        raise InputError(f"{values.where}: {name}: {error}") from None


LAUNCH_FILES = (".toml", ".sim")
"""How names of launch files end."""


def read_launches(path: str | Path) -> list[Launch]:
    """Read the launches of a launch file (TOML) or of Oclgrind's simulator file (``.sim``).

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Launch
        The launches, in order; buffers are shared where the file says so.

    Raises
    ------
    InputError
        If the file cannot be read or something in it is wrong; the message says where.
    """
    if Path(path).suffix == ".sim":
        return [simfile.read(path).launch]
    return read(path)


_SUFFIXES = {"opencl-c": ".cl", "cuda": ".cu", "hip": ".hip", "llvm-ir": ".ll", "bitcode": ".bc"}
_NAMES = {
    "i1": "char",
    "u1": "uchar",
    "i2": "short",
    "u2": "ushort",
    "i4": "int",
    "u4": "uint",
    "i8": "long",
    "u8": "ulong",
    "f2": "half",
    "f4": "float",
    "f8": "double",
}


def write_launch(launch: Launch, path: Path) -> None:
    """Write a launch file that `crosscast.read_launches` reads as the same launch.

    Its source is written beside it by the hash of its content, and each array of argument ``k`` as
    ``NAME-k.npy``, where NAME is the file's. Memory that several arguments share is written once.

    Parameters
    ----------
    launch
        The launch; of CUDA and HIP, too.
    path
        The file, with the suffix ``.toml``, in a folder that is there.

    Raises
    ------
    InputError
        If a file cannot be written, or an array is of a type that OpenCL C has not.
    """
    program = launch.kernel.program
    source = path.parent / f"{program.sha256[:16]}{_SUFFIXES[program.form]}"
    sizes: dict[str, Any] = {"global": launch.global_size, "local": launch.local_size}
    if program.is_cuda:
        pairs = zip(launch.global_size, launch.local_size, strict=True)
        sizes = {"grid": [extent // block for extent, block in pairs], "block": launch.local_size}
    head = {"source": source.name, "kernel": launch.kernel.name, **sizes}
    if any(launch.global_offset):
        head["offset"] = launch.global_offset
    if launch.shared is not None:
        head["shared"] = launch.shared
    if program.options:
        head["options"] = program.options
    if program.form in ("opencl-c", "cuda", "hip"):
        head["standard"] = program.standard
    text = "".join(f"{name} = {_toml(value)}\n" for name, value in head.items())
    try:
        source.write_bytes(program.content)
        path.write_text(text + "".join(_arguments(launch, path)), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _arguments(launch: Launch, path: Path) -> Iterator[str]:
    """Tables of the arguments; those that are the same memory share one, by name."""
    names: dict[int, str] = {}
    used = []
    for number, argument in enumerate(launch.args):
        known = names.get(id(argument)) if isinstance(argument, np.ndarray | Image) else None
        used.append(known or f"a{number}")
        if known is None:
            names[id(argument)] = used[-1]
            table = _table(argument, path.parent / f"{path.stem}-{number}.npy")
            if number in launch.read_only:
                table["read_only"] = True
            yield "".join(f"{key} = {_toml(value)}\n" for key, value in table.items()).join(
                (f'\n[[arg]]\nname = "{used[-1]}"\n', "")
            )
    if used:
        yield f"\n[[launch]]\nuse = {_toml(used)}\n"


def _table(argument: Argument, file: Path) -> dict[str, Any]:
    if argument is None:
        return {"null": True}
    if isinstance(argument, Local):
        return {"local": argument.nbytes}
    if isinstance(argument, Sampler):
        facts = {"addressing": argument.addressing, "linear": argument.linear}
        return {"sampler": {**facts, "normalized_coords": argument.normalized_coords}}
    if isinstance(argument, Image):
        kind = _type_of(argument.array.dtype)
        np.save(file, argument.array)
        order = {"channel_order": argument.channel_order}
        return {
            "image": {
                "file": file.name,
                "type": kind,
                **order,
                "normalized": argument.normalized,
                "layers": argument.layers,
            }
        }
    if isinstance(argument, bytes):
        return {"type": "uchar", "value": list(argument)}
    if isinstance(argument, np.generic):
        return {"type": _type_of(argument.dtype), "value": argument.item()}
    kind = _type_of(argument.dtype)
    np.save(file, argument)
    return {"type": kind, "file": file.name}


def _type_of(dtype: np.dtype[Any]) -> str:
    name = _NAMES.get(dtype.newbyteorder("=").str[1:]) if dtype.kind in "iuf" else None
    if name is None:
        raise InputError(f"launch file: expected an array of numbers that OpenCL C has, found {dtype}")
    return name


def _toml(value: Any) -> str:
    """A value as TOML writes it; texts are those of JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # also inf and nan
    return json.dumps(value)
