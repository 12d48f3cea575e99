"""Profiles, sources and SPIR-V modules to try embedding with."""

import struct
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from crosscast.data.profiles import COLUMNS
from crosscast.profile import METRICS, Profile

NASTY = '*/ #error broken\n/* // \\ ??/ "é\u2028\x00\x7f'
"""What could end a comment, begin one, splice lines or not be ASCII."""

_WHOLE = {column.name for column in COLUMNS if column.type == "integer"}


def profile(kernel: str = "k", invocation: int = 0, **facts: Any) -> Profile:
    """A profile whose launch has the given facts."""
    return Profile(
        kernel=kernel,
        invocation=invocation,
        metrics={
            m.name: 7 if m.name in _WHOLE else None if m.name == "reread_ratio" else 0.1 for m in METRICS
        },
        timing_s={},
        launch={"global_size": [256], **facts},
        program={"path": "k.cl", "sha256": "ab" * 32, "compiler": "clang 22", "options": ["-DT=float*"]},
        environment={"python": "3.11"},
    )


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_counts = st.integers(0, (1 << 63) - 1)
_reals = st.floats(0, 1e18)
_metrics = st.fixed_dictionaries(
    {m.name: st.none() | (_counts if m.name in _WHOLE else _counts | _reals) for m in METRICS}
)

profiles = st.lists(
    st.builds(
        Profile,
        kernel=st.just("k"),
        invocation=_counts,
        metrics=_metrics,
        timing_s=st.just({}),
        launch=st.dictionaries(st.text(), _json, max_size=3),
        program=st.just({"path": None, "compiler": "clang */ 22"}),
        environment=st.dictionaries(st.text(), _json, max_size=2),
        application=st.none() | st.text(),
        size=st.none() | st.text(),
    ),
    min_size=1,
    max_size=2,
)
"""One or two profiles of kernel ``k`` with any facts."""

_endings = st.sampled_from([b"", b"\n", b"\r\n", b"\\", b"\\\n", b"// last", b"??/\n", b"\n\n\n", b"\r"])
sources = st.builds(bytes.__add__, st.text().map(str.encode) | st.binary(), _endings)
"""Any bytes, often with an end that what is appended could run into."""


def op(opcode: int, *operands: int) -> list[int]:
    """Words of an instruction."""
    return [(len(operands) + 1) << 16 | opcode, *operands]


def text_words(text: str) -> list[int]:
    """Words of a literal string."""
    octets = text.encode() + b"\0"
    return list(struct.unpack(f"<{-(-len(octets) // 4)}I", octets + b"\0" * (-len(octets) % 4)))


def module(
    *debug: list[int],
    order: str = "<",
    version: int = 0x10000,
    bound: int = 50,
    kernels: Iterable[str] = ("k",),
    rest: Iterable[list[int]] = (),
) -> bytes:
    """A module with an empty kernel: capability, memory model, entry points, debug, a type and functions."""
    instructions = [
        op(17, 6),  # OpCapability Kernel
        op(11, 1, *text_words("OpenCL.std")),
        op(14, 2, 2),  # OpMemoryModel Physical64 OpenCL
        *(op(15, 6, 2, *text_words(kernel)) for kernel in kernels),
        op(16, 2, 31),  # OpExecutionMode ContractionOff
        *debug,
        op(19, 3),  # OpTypeVoid
        op(33, 4, 3),  # OpTypeFunction
        *rest,
        op(54, 3, 2, 0, 4),  # OpFunction
        op(248, 5),  # OpLabel
        op(253),  # OpReturn
        op(56),  # OpFunctionEnd
    ]
    words = [0x07230203, version, 0, bound, 0, *(word for words in instructions for word in words)]
    return struct.pack(f"{order}{len(words)}I", *words)


_debug = st.lists(
    st.one_of(
        st.builds(lambda n, text: op(7, n, *text_words(text)), st.integers(6, 49), st.text()),
        st.builds(lambda n: op(3, 3, 102000, n), st.integers(6, 49)),  # OpSource
        st.builds(lambda n, text: op(5, n, *text_words(text)), st.integers(2, 5), st.text()),  # OpName
        st.just(op(71, 2, 44, 4)),  # OpDecorate Alignment
    ),
    max_size=4,
)
modules = st.builds(
    lambda debug, **facts: module(*debug, **facts),
    _debug,
    order=st.sampled_from("<>"),
    version=st.integers(0, 6).map(lambda minor: 0x10000 | minor << 8),
    bound=st.integers(50, 4_000_000),
)
"""Modules of every version in either order of bytes, with all sorts of debug instructions."""
