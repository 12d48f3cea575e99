"""Synthetic launches for kernels without host programs, as CLDrive makes them (Cummins et al. 2017).

Buffers have random elements, all integer arguments one value, and local buffers are large. A kernel with
out-of-bounds accesses is repeated with a smaller value.
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
from crosscast.characterization import characterize
from crosscast.characterization.frontend import load, load_kernel
from crosscast.characterization.value_types import ValueType
from crosscast.data.files import make_folder
from crosscast.data.profiles import VERSION, to_row
from crosscast.errors import CrosscastError, InputError, KernelFault
from crosscast.kernel import Argument, Kernel, Launch, Local, Parameter, Program
from crosscast.profile import Profile

_LOCAL_BYTES = 1 << 15


@dataclass(frozen=True)
class Shape:
    """Parameters of a synthetic launch."""

    number: int  # Value of all integers, and bound of those in buffers
    elements: int  # Elements of a buffer
    group: int  # Most work-items of a work-group
    groups: int = 2  # Work-groups in each dimension


def synthesize(kernel: Kernel, shape: Shape) -> Launch:
    """Synthesize a launch of a kernel, in as many dimensions as its source uses ids of."""
    loaded, dims = load_kernel(kernel), _dimensions(kernel)
    row = min(16, shape.group) if dims > 1 else shape.group
    local: tuple[int, ...] = loaded.required_local_size or (row, shape.group // row, 1)[:dims]
    generator = np.random.default_rng(0)
    args = tuple(_argument(p, shape, generator) for p in loaded.parameters)
    return Launch(kernel, tuple(shape.groups * n for n in local), local, args)


def characterize_synthesized(
    kernel: Kernel, shapes: Iterable[Shape], timeout_s: float
) -> tuple[Shape, Profile]:
    """Characterize a kernel in the first launch that ends in time and without out-of-bounds accesses."""
    last: KernelFault | None = None
    for shape in shapes:
        try:
            launch = synthesize(kernel, shape)
            return shape, characterize(launch, check_bounds=True, timeout_s=timeout_s)
        except KernelFault as error:
            last = error
    raise last or InputError.of(where="shapes", expected="one or more", found="none")


def _dimensions(kernel: Kernel) -> int:
    text = kernel.program.content.decode(errors="replace")
    return max((int(d) + 1 for d in re.findall(r"get_(?:global|local|group)_id\((\d)\)", text)), default=1)


def _element(parameter: Parameter) -> tuple[np.dtype[np.generic], int]:
    """Return the type of a parameter's elements, and the components of an element."""
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
        raise InputError.of(where=parameter.name, problem=f"no {parameter.kind} can be made up")
    count = shape.elements * width
    if dtype.kind == "f":
        return generator.uniform(0.5, 1.5, count).astype(dtype)
    return generator.integers(0, max(1, min(shape.number, 100)), count).astype(dtype)


MOST_ITEMS = 1024
"""Approximate limit on the work-items of a synthetic launch, as larger ones take long.

In several dimensions the numbers of work-groups are equal, which may exceed the limit by two thirds.
"""

_ELEMENTS = 1 << 16
_NUMBERS = (32, 8, 2, 1)
_GROUP = 64
_TIMEOUT_S = 20.0


class LaunchRequest(NamedTuple):
    """Known properties of a launch with unknown arguments."""

    source: str  # OpenCL C with one kernel, or with one of the name A
    group: int  # Work-items of a work-group; 0 if unknown
    nbytes: int  # Bytes of its buffers

    @property
    def key(self) -> str:
        """Cache key, which depends on the version of profiles."""
        facts = [self.source, self.group, self.nbytes, VERSION, crosscast.__version__]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


Cells: TypeAlias = Mapping[str, object]
Watch = Callable[[int], Callable[[], None]]


def profiles_of(
    launches: Sequence[tuple[str, int, int]],
    keep: Path | None = None,
    watch: Watch = lambda _: lambda: None,
) -> list[Cells | str]:
    """Return cells of the table of profiles for each launch (`LaunchRequest`), or the reason of a failure.

    A launch has the work-items of its work-group, and as many work-groups as its buffers have elements for,
    up to about `MOST_ITEMS` work-items. Integers are 32, or smaller if the kernel would access memory out of
    bounds. `keep` is a file for finished profiles, with which a later call resumes; `watch` is called with
    the number of missing ones, and returns a function to call after each.
    """
    requests = [LaunchRequest(*request) for request in launches]
    profiles = {} if keep is None else _read_finished(keep)
    missing = [request for request in dict.fromkeys(requests) if request.key not in profiles]
    advance = watch(len(missing))
    by_shape: dict[tuple[str, Shape], Cells | str] = {}
    with ExitStack() as stack:
        file = None
        if keep is not None and missing:
            make_folder(keep.parent, "cache")
            file = stack.enter_context(keep.open("a", encoding="utf-8"))
        for request in missing:
            profiles[request.key] = _profile_of(request, by_shape)
            if file is not None:
                file.write(json.dumps([request.key, profiles[request.key]]) + "\n")
                file.flush()
            advance()
    return [profiles[request.key] for request in requests]


def _read_finished(path: Path) -> dict[str, Cells | str]:
    """Read the finished profiles of a file, without incomplete lines."""
    profiles: dict[str, Cells | str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                key, cells = json.loads(line)
            except ValueError:
                continue
            profiles[key] = cells
    return profiles


def _profile_of(launch: LaunchRequest, by_shape: dict[tuple[str, Shape], Cells | str]) -> Cells | str:
    program = Program(launch.source.encode(), "opencl-c", standard="1.2")
    try:
        names = load(program).kernel_names
        kernel = Kernel(program, "A" if "A" in names else names[0])
        shape = _shape(kernel, launch)
        key = launch.source, shape
        if key not in by_shape:
            shapes = (Shape(number, _ELEMENTS, shape.group, shape.groups) for number in _NUMBERS)
            _, profile = characterize_synthesized(kernel, shapes, _TIMEOUT_S)
            # Without timings, so that equal kernels give equal bytes.
            by_shape[key] = to_row(replace(profile, timing_s={}))
        return by_shape[key]
    except CrosscastError as error:
        return str(error).partition("\n")[0]


def _shape(kernel: Kernel, launch: LaunchRequest) -> Shape:
    buffers = [p for p in load_kernel(kernel).parameters if p.kind == "global"]
    nbytes = sum(dtype.itemsize * width for dtype, width in map(_element, buffers))
    items = min(launch.nbytes // max(nbytes, 1), MOST_ITEMS)
    group = launch.group or _GROUP
    groups = max(1, round((items / group) ** (1 / _dimensions(kernel))))
    return Shape(_NUMBERS[0], _ELEMENTS, group, groups)
