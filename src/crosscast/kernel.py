"""Descriptions of a program, one of its kernels, and a launch with its arguments.

Nothing here imports OpenCL or a compiler.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError, LaunchError

MAX_WORK_GROUP_SIZE = 4096
"""Largest number of work-items of one work-group."""

MAX_BLOCK_SIZE = 1024
"""Largest number of threads of one block of a CUDA or HIP kernel."""

Form = Literal["opencl-c", "cuda", "hip", "llvm-ir", "bitcode"]
ParameterKind = Literal["global", "constant", "local", "value", "image", "sampler"]
OPENCL_STANDARDS = ("1.0", "1.1", "1.2", "2.0", "3.0", "clc++1.0", "clc++2021")
CPP_STANDARDS = ("c++03", "c++11", "c++14", "c++17", "c++20")
CUDA_SUFFIXES: dict[str, Form] = {".cu": "cuda", ".cuh": "cuda", ".hip": "hip", ".cpp": "hip"}
LAUNCH_FILES = (".toml", ".sim")
"""Suffixes of launch files."""


@dataclass(frozen=True)
class Program:
    """A program in one of the forms that the frontend reads.

    Parameters
    ----------
    content
        Source text (of any encoding that has ASCII, as UTF-8 and Latin-1 have), LLVM IR text or LLVM bitcode.
    form
        Form of `content`.
    path
        Path of the source, for messages and for resolving ``#include``; ``None`` if from memory.
    options
        Compiler options such as ``-DN=16`` or ``-cl-fast-relaxed-math`` (sources only).
    standard
        OpenCL C version, by default ``"1.2"``, or ``"clc++2021"`` for C++ for OpenCL; for CUDA and HIP the
        version of C++, by default ``"c++17"``. ``-cl-std=CL2.0`` or ``-std=c++20`` among the options
        overrides it.
    """

    content: bytes
    form: Form = "opencl-c"
    path: Path | None = None
    options: tuple[str, ...] = ()
    standard: str = ""

    def __post_init__(self) -> None:
        standard = self.standard or ("c++17" if self.is_cuda else "1.2")
        options = []
        for option in self.options:
            # Applications often name the standard among their build options; these take precedence.
            if match := re.fullmatch("-std=(.+)" if self.is_cuda else r"-cl-std=(?:CL(?=\d))?(.+)", option):
                standard = match[1].lower()
            else:
                options.append(option)
        object.__setattr__(self, "standard", standard)
        object.__setattr__(self, "options", tuple(options))
        language, standards = ("C++", CPP_STANDARDS) if self.is_cuda else ("OpenCL C", OPENCL_STANDARDS)
        if standard not in standards:
            raise InputError(f"{language} standard must be one of {', '.join(standards)}, found {standard!r}")
        if not self.content.strip():
            raise InputError.of(where=self.label, problem="the program is empty")

    @property
    def label(self) -> str:
        """Name for messages: the path, or ``<source>``."""
        return str(self.path) if self.path is not None else "<source>"

    @property
    def is_cuda(self) -> bool:
        """Whether it is a CUDA or HIP source, whose launches have grids and blocks."""
        return self.form in ("cuda", "hip")

    @property
    def level(self) -> str:
        """Optimization level: the last of the options, or else the usual one.

        That is ``-Oz`` of OpenCL C, as of AIWC, and ``-O3`` of CUDA and HIP, as of nvcc and hipcc.
        """
        usual = "-O3" if self.is_cuda else "-Oz"
        return next((option for option in reversed(self.options) if option.startswith("-O")), usual)

    @property
    def is_optimized(self) -> bool:
        """Whether it is OpenCL C at ``-O1``, ``-O2`` or ``-O3``: compiled for speed, as drivers do."""
        return self.form == "opencl-c" and self.level in ("-O1", "-O2", "-O3")

    @property
    def language(self) -> str:
        """Language and version, such as ``OpenCL C 1.2``, ``CUDA (C++17)`` or ``LLVM IR``."""
        if self.is_cuda:
            return f"{'CUDA' if self.form == 'cuda' else 'HIP'} ({self.standard.upper()})"
        if self.form != "opencl-c":
            return "LLVM IR"
        if self.standard.startswith("clc++"):
            return f"C++ for OpenCL {self.standard.removeprefix('clc++')}"
        return f"OpenCL C {self.standard}"

    @property
    def sha256(self) -> str:
        """Hash of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def from_file(cls, path: str | Path, *, options: Sequence[str] = (), standard: str = "") -> Program:
        """Read a program; its form follows from its first bytes and its suffix.

        ``.cu`` and ``.cuh`` are CUDA, ``.hip`` and ``.cpp`` HIP, ``.ll`` is LLVM IR text; other texts are
        OpenCL C.

        Raises
        ------
        InputError
            If the file cannot be read, is empty, or is none of the known forms.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError.of(
                where=path, problem=f"cannot read the program file ({error.strerror})"
            ) from error
        form: Form
        if content.startswith((b"BC", b"\xde\xc0\x17\x0b")):
            form = "bitcode"
        elif path.suffix == ".ll":
            form = "llvm-ir"
        else:
            form = CUDA_SUFFIXES.get(path.suffix, "opencl-c")
        if form != "bitcode" and (position := _binary_at(content)) is not None:
            raise InputError.of(
                where=path,
                expected="a source text, LLVM IR text or LLVM bitcode",
                found=f"binary data (byte {position} is not text)",
            )
        if form == "llvm-ir":
            content = content.decode(errors="replace").encode()
        return cls(content, form, path, tuple(options), standard)


def _product(sizes: Sequence[int]) -> str:
    """Return sizes and their product, such as ``64 x 32 = 2048``; one size alone."""
    factors = " x ".join(map(str, sizes))
    return factors if len(sizes) == 1 else f"{factors} = {math.prod(sizes)}"


def _binary_at(content: bytes) -> int | None:
    """Position of the first byte that no text contains; comments of sources may be of any encoding."""
    if (zero := content.find(b"\0")) >= 0:
        return zero
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        letters = sum(byte > 127 for byte in content)
        if letters > len(content) // 4 or re.search(rb"[\x01-\x08\x0e-\x19\x1c-\x1f]", content):
            return error.start
    return None


@dataclass(frozen=True)
class Kernel:
    """One kernel of a program.

    Parameters
    ----------
    program
        The program that defines it.
    name
        Its name; of a CUDA or HIP kernel as C++ writes it: ``saxpy``, ``saxpy<float>``,
        ``ns::scale<int, 4>``, or with its parameters, ``scale(float*, int)``, where it is overloaded.
    """

    program: Program
    name: str

    @classmethod
    def from_source(
        cls,
        source: str,
        name: str,
        *,
        options: Sequence[str] = (),
        standard: str = "",
        form: Literal["opencl-c", "cuda", "hip"] = "opencl-c",
    ) -> Kernel:
        """Kernel `name` of a source text: OpenCL C, CUDA or HIP."""
        return cls(Program(source.encode(), form, None, tuple(options), standard), name)

    @classmethod
    def from_ir(cls, ir: str | bytes, name: str) -> Kernel:
        """Kernel `name` of LLVM IR for ``spir64``: text, or bitcode as bytes."""
        if isinstance(ir, bytes):
            return cls(Program(ir, "bitcode"), name)
        return cls(Program(ir.encode(), "llvm-ir"), name)

    @classmethod
    def from_file(
        cls, path: str | Path, name: str, *, options: Sequence[str] = (), standard: str = ""
    ) -> Kernel:
        """Kernel `name` of a file with OpenCL C, CUDA, HIP, LLVM IR text or bitcode."""
        return cls(Program.from_file(path, options=options, standard=standard), name)

    def optimized(self) -> Kernel:
        """Return it with OpenCL C compiled at ``-O3``, as drivers do, unless an option says a level."""
        options = self.program.options
        if self.program.form != "opencl-c" or any(option.startswith("-O") for option in options):
            return self
        return replace(self, program=replace(self.program, options=(*options, "-O3")))


@dataclass(frozen=True)
class Local:
    """Local memory for a local pointer argument.

    Parameters
    ----------
    nbytes
        Size in bytes; at least 1.
    """

    nbytes: int

    def __post_init__(self) -> None:
        if self.nbytes < 1:
            raise LaunchError(f"local memory must have at least 1 byte, found {self.nbytes}")


CHANNELS = {"R": 1, "A": 1, "RG": 2, "RGBA": 4, "BGRA": 4, "INTENSITY": 1, "LUMINANCE": 1, "DEPTH": 1}
"""Channels of a texel, by their order."""


@dataclass(frozen=True, eq=False)
class Image:
    """An image argument.

    Parameters
    ----------
    array
        Texels. Shape ``(width,)``, ``(height, width)`` or ``(depth, height, width)``, with a last
        axis of 2 or 4 channels for the orders RG, RGBA and BGRA. The element type is the channel
        type: ``float32`` and ``float16`` are read by ``read_imagef``, signed integers by
        ``read_imagei``, unsigned ones by ``read_imageui``.
    channel_order
        R, A, RG, RGBA, BGRA, INTENSITY, LUMINANCE or DEPTH.
    normalized
        Integer channels are normalized (UNORM, SNORM) and read by ``read_imagef``.
    layers
        The first axis is an array of 1D or 2D images, not a spatial dimension.
    """

    array: npt.NDArray[np.generic]
    channel_order: str = "RGBA"
    normalized: bool = False
    layers: bool = False

    def __post_init__(self) -> None:
        if self.channel_order not in CHANNELS:
            raise LaunchError(
                f"image channel order must be one of {', '.join(CHANNELS)}, found {self.channel_order!r}"
            )
        channels = CHANNELS[self.channel_order]
        if channels > 1 and (self.array.ndim < 2 or self.array.shape[-1] != channels):
            raise LaunchError(
                f"an image of order {self.channel_order} needs a last axis of {channels} channels, "
                f"found shape {self.array.shape}"
            )
        if not 1 <= self.spatial_ndim <= 3 or 0 in self.array.shape:
            raise LaunchError(f"an image has 1 to 3 dimensions, none empty; found shape {self.array.shape}")

    @property
    def channels(self) -> int:
        """Channels of one texel."""
        return CHANNELS[self.channel_order]

    @property
    def spatial_ndim(self) -> int:
        """Axes of `array` without the channel axis (layers included)."""
        return self.array.ndim - (1 if self.channels > 1 else 0)


Addressing = Literal["none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat"]
"""How a sampler reads outside of an image."""


@dataclass(frozen=True)
class Sampler:
    """A sampler argument.

    Parameters
    ----------
    addressing
        none, clamp_to_edge, clamp, repeat or mirrored_repeat.
    linear
        Linear filter; nearest otherwise.
    normalized_coords
        Coordinates in [0, 1).
    """

    addressing: Addressing = "none"
    linear: bool = False
    normalized_coords: bool = False


Argument = npt.NDArray[np.generic] | np.generic | bytes | Local | Image | Sampler | None
"""One kernel argument: an array is a buffer (or, for a by-value parameter such as ``float4``, its
elements), a NumPy scalar or bytes a value, ``None`` a null buffer."""


@dataclass(frozen=True)
class Parameter:
    """A kernel's formal parameter, as the compiled program declares it.

    Parameters
    ----------
    name
        Its name in the source, or ``arg<k>`` where the program does not keep names.
    type_name
        OpenCL C type such as ``float*`` or ``uint``; the LLVM type where the program has no more.
    kind
        Which arguments fit: a buffer, local memory, a value, ...
    size
        Bytes of a value; 8 for pointers.
    indirect
        A value that the kernel is given a pointer to: a structure.
    is_named
        The program defines a name for the type, so that an argument may be given as bytes.
    """

    name: str
    type_name: str
    kind: ParameterKind
    size: int
    indirect: bool = False
    is_named: bool = False


def as_sizes(kernel: Kernel, label: str, sizes: int | Sequence[int]) -> tuple[int, ...]:
    """Return sizes as plain integers, also from NumPy's."""
    try:
        values = [sizes] if isinstance(sizes, int) or not np.ndim(sizes) else list(sizes)
        # int() would truncate 2.5; an index refuses it.
        return tuple(operator.index(value) for value in values)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise LaunchError.of(
            where=kernel.name, problem=f"the {label} must be whole numbers, found {sizes!r}"
        ) from None


@dataclass(frozen=True, eq=False)
class Launch:
    """One invocation of a kernel.

    Parameters
    ----------
    kernel
        The kernel to run.
    global_size
        Work-items in 1 to 3 dimensions.
    local_size
        Work-items of a work-group, as many dimensions.
    args
        The arguments in order. Arrays hold the kernel's output afterwards.
    global_offset
        Offset of the global ids; zeros if empty.
    read_only
        Indexes of buffer arguments that the kernel must not write (``.sim``'s ``ro``).
    shared
        Bytes of dynamic shared memory (``extern __shared__``) of a CUDA or HIP kernel.
    variables
        Values of ``__constant__`` and ``__device__`` variables of a CUDA or HIP program, and of its texture
        references, by name: a number, an array, or an image. Others hold what the source gives them, or
        zeros.
    """

    kernel: Kernel
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: tuple[Argument, ...] = ()
    global_offset: tuple[int, ...] = ()
    read_only: frozenset[int] = field(default=frozenset())
    shared: int | None = None
    variables: Mapping[str, Argument] = field(default_factory=dict)

    @classmethod
    def on_grid(
        cls,
        kernel: Kernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Argument] = (),
        *,
        shared: int | None = None,
        variables: Mapping[str, Argument] | None = None,
    ) -> Launch:
        """Launch of a CUDA or HIP kernel: `grid` blocks of `block` threads, in 1 to 3 dimensions each.

        Examples
        --------
        >>> kernel = Kernel.from_source("__global__ void k() {}", "k", form="cuda")
        >>> Launch.on_grid(kernel, (4, 2), 128).global_size
        (512, 2)
        """
        blocks, threads = as_sizes(kernel, "grid", grid), as_sizes(kernel, "block", block)
        for label, sizes in (("grid", blocks), ("block", threads)):
            if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes):
                expected = "1 to 3 numbers of at least 1"
                raise LaunchError.of(where=kernel.name, problem=f"{label} must be {expected}, found {sizes}")
        pairs = list(itertools.zip_longest(blocks, threads, fillvalue=1))
        extent = tuple(blocks * threads for blocks, threads in pairs)
        local = tuple(threads for _, threads in pairs)
        return cls(kernel, extent, local, tuple(args), shared=shared, variables=dict(variables or {}))

    def __post_init__(self) -> None:
        for name in ("global_size", "local_size", "global_offset"):
            sizes = as_sizes(self.kernel, name.replace("_", " "), getattr(self, name))
            object.__setattr__(self, name, sizes)  # Plain integers, also of NumPy's
        for problem in self._problems():
            raise LaunchError.of(where=self.kernel.name, problem=problem)

    def _problems(self) -> Iterator[str]:
        """Sentences about wrong sizes; a later one takes it that there is none before."""
        dims = len(self.global_size)
        if not 1 <= dims <= 3:
            yield f"global size must have 1 to 3 dimensions, found {dims}"
        as_many = f"must have as many dimensions as the global size ({dims}), found"
        if len(self.local_size) != dims:
            yield f"local size {as_many} {len(self.local_size)}"
        if self.global_offset and len(self.global_offset) != dims:
            yield f"global offset {as_many} {len(self.global_offset)}"
        for label, sizes in (("global size", self.global_size), ("local size", self.local_size)):
            for value in sizes:
                if not 1 <= value < 1 << 32:
                    limit = "at least 1" if value < 1 else "below 2^32"
                    yield f"{label} must be {limit} in each dimension, found {value}"
        if any(offset < 0 for offset in self.global_offset):
            yield f"global offset must not be negative, found {self.global_offset}"
        for offset, size in zip(self.global_offset, self.global_size, strict=False):
            if offset + size > 1 << 63:
                yield f"global ids must be below 2^63, found an offset of {offset} and a size of {size}"
        group = math.prod(map(int, self.local_size))
        if self.kernel.program.is_cuda:
            if group > MAX_BLOCK_SIZE:
                yield f"a block has at most {MAX_BLOCK_SIZE} threads, found {_product(self.local_size)}"
            if any(self.global_offset):
                yield f"a grid has no offset, found {self.global_offset}"
            if self.shared is not None and self.shared < 0:
                yield f"shared must be at least 0 bytes, found {self.shared}"
        elif self.shared is not None:
            yield "shared is for CUDA and HIP kernels; give local arguments instead"
        elif self.variables:
            yield "variables are for CUDA and HIP kernels"
        if group > MAX_WORK_GROUP_SIZE:
            found = _product(self.local_size)
            yield f"a work-group has at most {MAX_WORK_GROUP_SIZE} work-items, found {found}"
        if self.kernel.program.standard.startswith("1") or self.kernel.program.is_cuda:
            for size, local in zip(self.global_size, self.local_size, strict=True):
                if size % local:
                    language = self.kernel.program.language
                    yield (
                        f"the global size must be a multiple of the local size in {language}, found {size} "
                        f"and {local}"
                    )
