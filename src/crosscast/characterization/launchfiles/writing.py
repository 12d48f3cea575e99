"""Write a launch as a launch file, with its source and arrays in files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.kernel import Argument, Image, Launch, Local, Sampler

__all__ = ["write_launch"]

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
