"""Launches made up for kernels whose programs are not there, as CLDrive makes them (Cummins et al. 2017).

Buffers hold random elements, whole numbers are of one size, and local buffers are large. A kernel that leaves
its memory is tried again with smaller numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

import crosscast
from crosscast.characterization import characterize, frontend
from crosscast.characterization.value_types import ValueType
from crosscast.data.files import make_folder
from crosscast.data.profiles import VERSION, to_row
from crosscast.errors import CrosscastError, InputError, KernelFault
from crosscast.kernel import Argument, Kernel, Launch, Local, Parameter, Program
from crosscast.profile import Profile

_LOCAL_BYTES = 1 << 15


@dataclass(frozen=True)
class Shape:
    """How to make up a launch."""

    number: int  # Value of all whole numbers, and bound of those in buffers
    elements: int  # Elements of a buffer
    group: int  # Most work-items of a work-group
    groups: int = 2  # Work-groups in each dimension


def synthesize(kernel: Kernel, parameters: Sequence[Parameter], shape: Shape) -> Launch:
    """Make up a launch of a kernel, in as many dimensions as its source asks for ids in.

    Raises
    ------
    InputError
        If an argument cannot be made up, such as an image.
    """
    required = frontend.required_local_size(kernel.program, kernel.name)
    dims = _dimensions(kernel)
    row = min(16, shape.group) if dims > 1 else shape.group
    local: tuple[int, ...] = required or (row, shape.group // row, 1)[:dims]
    generator = np.random.default_rng(0)
    args = tuple(_argument(p, shape, generator) for p in parameters)
    return Launch(kernel, tuple(shape.groups * n for n in local), local, args)


def characterize_synthesized(
    kernel: Kernel, shapes: Iterable[Shape], timeout_s: float
) -> tuple[Shape, Profile]:
    """Characterize a kernel in the first of the launches that ends in time and stays inside its memory.

    Raises
    ------
    KernelFault
        Why the last one did not.
    CrosscastError
        If the kernel cannot be characterized at all.
    """
    parameters = frontend.parameters(kernel.program, kernel.name)
    last: KernelFault | None = None
    for shape in shapes:
        try:
            launch = synthesize(kernel, parameters, shape)
            return shape, characterize(launch, check_bounds=True, timeout_s=timeout_s)
        except KernelFault as error:
            last = error
    raise last or InputError.of(where="shapes", expected="one or more", found="none")


def _dimensions(kernel: Kernel) -> int:
    text = kernel.program.content.decode(errors="replace")
    return max((int(d) + 1 for d in re.findall(r"get_(?:global|local|group)_id\((\d)\)", text)), default=1)


def _element(parameter: Parameter) -> tuple[np.dtype[np.generic], int]:
    """Type of the elements that a parameter holds or points to, and how many a vector of them has."""
    kind = ValueType.find(parameter.type_name)
    return (kind.dtype, kind.slots) if kind else (np.dtype(np.int32), 1)


def _argument(parameter: Parameter, shape: Shape, generator: np.random.Generator) -> Argument:
    dtype, width = _element(parameter)
    if parameter.kind == "local":
        return Local(_LOCAL_BYTES)
    if parameter.kind == "value":
        if ValueType.find(parameter.type_name) is None:
            return np.full(-(-parameter.size // 4), shape.number, np.int32).tobytes()[: parameter.size]
        value = np.full(width, 1.25 if dtype.kind == "f" else shape.number).astype(dtype)
        return value.tobytes() if width > 1 else dtype.type(value[0])
    if parameter.kind not in ("global", "constant"):
        raise InputError(f"{parameter.name}: no {parameter.kind} can be made up")
    count = shape.elements * width
    if dtype.kind == "f":
        return generator.uniform(0.5, 1.5, count).astype(dtype)
    return generator.integers(0, max(1, min(shape.number, 100)), count).astype(dtype)


MOST_ITEMS = 1024
"""About the most work-items of a launch that is made up, as counts of larger ones take long.

In several dimensions there are as many work-groups in each, which may make it up to two thirds more.
"""

_ELEMENTS = 1 << 16
_NUMBERS = (32, 8, 2, 1)
_GROUP = 64
_TIMEOUT_S = 20.0


class Known(NamedTuple):
    """What is known of a launch whose arguments are not."""

    source: str  # OpenCL C with one kernel, or with one that is called A
    group: int  # Work-items of a work-group; 0 if that is not known
    nbytes: int  # Bytes of its buffers

    @property
    def key(self) -> str:
        """A text that tells it from others, and its profile from those of other versions."""
        facts = [self.source, self.group, self.nbytes, VERSION, crosscast.__version__]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


Cells: TypeAlias = Mapping[str, object]
Watch = Callable[[int], Callable[[], None]]


def profiles_of(
    launches: Sequence[tuple[str, int, int]],
    keep: Path | None = None,
    watch: Watch = lambda _: lambda: None,
) -> list[Cells | str]:
    """Cells of the table of profiles for each launch (`Known`), or why there are none.

    A launch has the work-items of its work-group, and as many work-groups as its buffers have elements for,
    up to about `MOST_ITEMS` work-items. Whole numbers are 32, or smaller where the kernel leaves its memory
    otherwise. `keep` is a file for finished ones, so that a later call goes on where this one was cut off;
    `watch` is told how many are left, and what it returns is called after each.
    """
    works = [Known(*each) for each in launches]
    found = {} if keep is None else _kept(keep)
    missing = [each for each in dict.fromkeys(works) if each.key not in found]
    advance = watch(len(missing))
    known: dict[tuple[str, Shape], Cells | str] = {}
    with ExitStack() as stack:
        file = None
        if keep is not None and missing:
            make_folder(keep.parent, "cache")
            file = stack.enter_context(keep.open("a", encoding="utf-8"))
        for each in missing:
            found[each.key] = _profile_of(each, known)
            if file is not None:
                file.write(json.dumps([each.key, found[each.key]]) + "\n")
                file.flush()
            advance()
    return [found[each.key] for each in works]


def _kept(path: Path) -> dict[str, Cells | str]:
    """What a file holds; a line that was cut off is as good as none."""
    found: dict[str, Cells | str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                key, cells = json.loads(line)
            except ValueError:
                continue
            found[key] = cells
    return found


def _profile_of(launch: Known, known: dict[tuple[str, Shape], Cells | str]) -> Cells | str:
    program = Program(launch.source.encode(), "opencl-c", standard="1.2")
    try:
        names = frontend.kernel_names(program)
        kernel = Kernel(program, "A" if "A" in names else names[0])
        shape = _shape(kernel, launch)
        place = launch.source, shape
        if place not in known:
            shapes = (Shape(number, _ELEMENTS, shape.group, shape.groups) for number in _NUMBERS)
            _, profile = characterize_synthesized(kernel, shapes, _TIMEOUT_S)
            # Without what took how long, so that the same kernels give the same bytes.
            known[place] = to_row(replace(profile, timing_s={}))
        return known[place]
    except CrosscastError as error:
        return str(error).partition("\n")[0]


def _shape(kernel: Kernel, launch: Known) -> Shape:
    buffers = [p for p in frontend.parameters(kernel.program, kernel.name) if p.kind == "global"]
    nbytes = sum(dtype.itemsize * width for dtype, width in map(_element, buffers))
    items = min(launch.nbytes // max(nbytes, 1), MOST_ITEMS)
    group = launch.group or _GROUP
    groups = max(1, round((items / group) ** (1 / _dimensions(kernel))))
    return Shape(_NUMBERS[0], _ELEMENTS, group, groups)
