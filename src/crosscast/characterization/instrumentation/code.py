"""Building blocks of instrumented code: options, names, text, alias scopes, small helper functions.

The helpers are inlined. The scopes tell LLVM that counters, data and bookkeeping never overlap, without which
it could not keep values in registers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.characterization.engine.layout import CONSTANTS, RUNTIME_FUNCTIONS, slot
from crosscast.characterization.instrumentation.accesses import PointerClass

_FIRST_NODE = 1_000_000
_MOST_SCOPES = 100
"""Most scopes; further kinds of memory share one, as each scope refers to all others."""
WORK_ITEM_LOOP = 999_980
"""Metadata node of loops over work-items, which must not be unrolled before LLVM has vectorized them."""

# A single addition to memory, so that the processor can overlap cache misses.
_COUNT_SMALL = """\
define internal void @{name}(ptr %p, ptr %from, i64 %beyond, i64 %small, i64 %shift) alwaysinline nounwind {{
enter:
  %at = ptrtoint ptr %from to i64
  %quarter = lshr i64 %at, 2
  %place = add i64 %quarter, %small
  %base = inttoptr i64 %place to ptr
  %c = getelementptr i8, ptr %base, i64 %beyond
  %old = load i8, ptr %c{scope}
  %new = add i8 %old, {amount}
  store i8 %new, ptr %c{scope}
  %full = icmp ult i8 %new, {amount}
  br i1 %full, label %spill, label %done, !prof !999990
spill:
  %wide = getelementptr i8, ptr %p, i64 %shift
  %before = load {type}, ptr %wide, align {granule}{scope}
  %after = add {type} %before, 256
  %flagged = or {type} %after, {flags}
  store {type} %flagged, ptr %wide, align {granule}{scope}
  br label %done
done:
  ret void
}}"""
_COUNT = """\
define internal void @{name}(ptr %ctx, ptr %p, i64 %shift, {type} %flags, {type} %amount) \
alwaysinline nounwind {{
enter:
  %c = getelementptr i8, ptr %p, i64 %shift
  %old = load {type}, ptr %c, align {granule}{scope}
  %low = and {type} %old, {most}
  %near = icmp ugt {type} %low, {nearly}
  br i1 %near, label %spill, label %add, !prof !999990
spill:
  %left = call i64 @cc_spill(ptr %ctx, ptr %c, i32 {granule})
  %less = trunc i64 %left to {type}
  br label %add
add:
  %now = phi {type} [ %old, %enter ], [ %less, %spill ]
  %sum = add {type} %now, %amount
  %new = or {type} %sum, %flags
  store {type} %new, ptr %c, align {granule}{scope}
  ret void
}}"""
_HELPERS = """\
define internal void @cc.leave_loop(ptr %h, i64 %n, i64 %stay) alwaysinline nounwind {{
  %lastp = getelementptr i8, ptr %h, i64 8
  %steadyp = getelementptr i8, ptr %h, i64 16
  %repeatsp = getelementptr i8, ptr %h, i64 24
  %last = load i64, ptr %lastp{history}
  %steady = load i64, ptr %steadyp{history}
  %same = icmp eq i64 %last, %n
  %is = icmp ne i64 %steady, 0
  %quick = and i1 %same, %is
  br i1 %quick, label %again, label %slow
again:
  %r = load i64, ptr %repeatsp{history}
  %s = add i64 %r, 1
  store i64 %s, ptr %repeatsp{history}
  ret void
slow:
  call void @cc_leave_loop(ptr %h, i64 %n, i64 %stay)
  ret void
}}
define internal void @cc.end_run(ptr %h, i64 %n, i64 %stay) alwaysinline nounwind {{
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %some
some:
  call void @cc_end_run(ptr %h, i64 %n, i64 %stay)
  ret void
done:
  ret void
}}
define internal void @cc.add_strided(ptr %ctx, i32 %site, i32 %flags, i64 %base, i64 %step, i64 %n) \
alwaysinline nounwind {{
  %allp = getelementptr i8, ptr %ctx, i64 {strided_slot}
  %all = load ptr, ptr %allp
  %s = getelementptr [{strided_bytes} x i8], ptr %all, i32 %site
  %np = getelementptr i8, ptr %s, i64 8
  %lastp = getelementptr i8, ptr %s, i64 24
  %countp = getelementptr i8, ptr %s, i64 32
  %usualp = getelementptr i8, ptr %s, i64 40
  %deltap = getelementptr i8, ptr %s, i64 48
  %known.step = load i64, ptr %s{strided}
  %known.n = load i64, ptr %np{strided}
  %last = load i64, ptr %lastp{strided}
  %count = load i64, ptr %countp{strided}
  %usual = load i64, ptr %usualp{strided}
  %delta = load i64, ptr %deltap{strided}
  %differ.step = xor i64 %known.step, %step
  %differ.n = xor i64 %known.n, %n
  %next = add i64 %last, %delta
  %differ.base = xor i64 %next, %base
  %differ.1 = or i64 %differ.step, %differ.n
  %differ.2 = or i64 %differ.1, %differ.base
  %same = icmp eq i64 %differ.2, 0
  %several = icmp ugt i64 %count, 1
  %open = icmp ne i64 %count, %usual
  %goes = and i1 %several, %open
  %quick = and i1 %same, %goes
  br i1 %quick, label %again, label %slow
again:
  %more = add i64 %count, 1
  store i64 %base, ptr %lastp{strided}
  store i64 %more, ptr %countp{strided}
  ret void
slow:
  call void @cc_add_strided(ptr %ctx, i32 %site, i32 %flags, i64 %base, i64 %step, i64 %n)
  ret void
}}"""


@dataclass(frozen=True)
class InstrumentationOptions:
    """Options of instrumentation, beyond the metrics."""

    local_size: tuple[int, int, int]  # Work-items of a group, three numbers
    uniform: bool = True  # Every work-group is full
    check_bounds: bool = False  # Check every access against its buffer
    published: bool = False  # Also record the data of the published tool's conventions
    checked: bool = False  # Spill counters of 4 bytes before they overflow
    small_ids: bool = True  # All global ids fit 31 bits, so that LLVM can see through conversions to `int`
    same: tuple[tuple[int, ...], ...] = ()  # Groups of positions of arguments that are the same buffer
    cuda: bool = False  # A kernel of CUDA or HIP: barriers do not wait for work-items that have ended
    shared: int | None = None  # Bytes of CUDA's dynamic shared memory
    # Name, sizes and content of the variables of a CUDA or HIP program that are set
    variables: tuple[tuple[str, tuple[int, int, int], bytes], ...] = ()
    # Sizes of each argument that is an image of a texture object, and the bytes of a texel; empty for others
    images: tuple[tuple[int, ...], ...] = ()
    warp: int = 32  # Lanes of a warp, or work-items of a sub-group
    stream_words: int = 1 << 22  # Room for the addresses of a work-group at one access, a power of two
    counts: bool = True  # Count; otherwise the kernel runs uninstrumented


@dataclass
class Names:
    """Generator of unique names in the kernel."""

    given: int = 0

    def unique(self, stem: str) -> str:
        """Return a new name that begins with ``%cc.`` and `stem`."""
        self.given += 1
        return f"%cc.{stem}{self.given}"


class Code:
    """Text of consecutive instructions, with unique names for results."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.texts: list[str] = []

    def do(self, *texts: str) -> None:
        """Add instructions."""
        self.texts += texts

    def do_if(self, condition: str, inner: Code) -> None:
        """Add instructions that run if a condition, given as an instruction, is met."""
        if inner.texts:
            then, end = (self._names.unique(stem) for stem in ("then", "end"))
            self.do(f"br i1 {self.value(condition)}, label {then}, label {end}", f"{then[1:]}:", *inner.texts)
            self.do(f"br label {end}", f"{end[1:]}:")

    def value(self, text: str) -> str:
        """Add an instruction, and return the name of its result."""
        name = self._names.unique("e")
        self.texts.append(f"{name} = {text}")
        return name

    def at(self, base: str, index: int | str, type_: str = "i8") -> str:
        """Compute the address of an element of an array."""
        return self.value(f"getelementptr {type_}, ptr {base}, i64 {index}")

    def load(self, type_: str, address: str, scope: str = "") -> str:
        """Load a value; `scope` is metadata of the kind of memory."""
        return self.value(f"load {type_}, ptr {address}{scope}")

    def store(self, type_: str, value: int | str, address: str, scope: str = "") -> None:
        """Store a value."""
        self.texts.append(f"store {type_} {value}, ptr {address}{scope}")

    def add_to(self, type_: str, address: str, amount: int | str, scope: str = "") -> None:
        """Add an amount to the value at an address."""
        old = self.load(type_, address, scope)
        self.store(type_, self.value(f"add {type_} {old}, {amount}"), address, scope)


class Scopes:
    """Alias scopes of one kernel: a scope per kind of memory, disjoint from all others."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._functions: dict[str, str] = {}

    def attach(self, name: str) -> str:
        """Return metadata to append to a load or store in memory `name`."""
        number = self._numbers.setdefault(name, min(len(self._numbers), _MOST_SCOPES))
        node = _FIRST_NODE + 3 * number
        return f", !alias.scope !{node + 1}, !noalias !{node + 2}"

    def counter(self, cls: PointerClass) -> str:
        """Return the name of the function that counts an access to a class whose counters may spill."""
        most = (1 << (8 * cls.granule - 2)) - 1
        return self._function("cc.count", _COUNT, cls, most=most, nearly=most - 2)

    def small_counter(self, cls: PointerClass) -> str:
        """Return the name of the function that counts an access to a class with small counters."""
        flags = cls.scattered << (8 * cls.granule - 2)
        return self._function(
            "cc.count_small", _COUNT_SMALL, cls, amount=1 + (cls.scattered == 3), flags=flags
        )

    def _function(self, stem: str, text: str, cls: PointerClass, **numbers: int) -> str:
        name, scope = f"{stem}{cls.number}", self.attach(f"counter{cls.number}")
        self._functions[name] = text.format(
            name=name, scope=scope, type=f"i{8 * cls.granule}", granule=cls.granule, **numbers
        )
        return name

    def complete(self, functions: Sequence[str]) -> str:
        """Return functions with their callees and metadata; to be called last."""
        helpers = _HELPERS.format(
            history=self.attach("history"),
            strided=self.attach("strided"),
            strided_slot=slot("strided"),
            strided_bytes=CONSTANTS["STRIDED_BYTES"],
        )
        text = "\n".join([helpers, *self._functions.values(), *functions])
        called = set(re.findall(r"@(cc_\w+)\(", text))
        declared = [RUNTIME_FUNCTIONS[name] for name in RUNTIME_FUNCTIONS if name in called]
        return "\n".join([*declared, text, *self._metadata()])

    def _metadata(self) -> list[str]:
        domain, loop = _FIRST_NODE - 1, WORK_ITEM_LOOP
        rows = [
            f"!{loop} = distinct !{{!{loop}, !{loop + 1}}}",
            f'!{loop + 1} = !{{!"llvm.loop.unroll.disable"}}',
            f"!{domain} = distinct !{{!{domain}}}",
            '!999990 = !{!"branch_weights", i32 1, i32 10000}',
            '!999991 = !{!"branch_weights", i32 10000, i32 1}',
        ]
        scopes = [_FIRST_NODE + 3 * number for number in sorted(set(self._numbers.values()))]
        for node in scopes:
            others = ", ".join(f"!{other}" for other in scopes if other != node)
            rows += [
                f"!{node} = distinct !{{!{node}, !{domain}}}",
                f"!{node + 1} = !{{!{node}}}",
                f"!{node + 2} = !{{{others}}}",
            ]
        return rows
