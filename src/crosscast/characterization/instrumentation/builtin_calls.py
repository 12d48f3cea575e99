"""Lowering of builtin calls to host code: OpenCL's, and operations of warps.

Collective operations of a work-group's items or a warp's lanes (a sub-group, in OpenCL's terms) cut the
kernel into segments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container

from crosscast.characterization import ir
from crosscast.characterization.builtins import parse
from crosscast.characterization.instrumentation.accesses import async_element
from crosscast.characterization.instrumentation.code import Code, InstrumentationOptions, Names
from crosscast.characterization.instrumentation.inline import builtin_name, called_builtin
from crosscast.characterization.instrumentation.sharing import commutes

OPERATIONS = (
    *("sync", "active", "all", "any", "ballot", "shuffle", "up", "down", "xor", "match_any", "match_all"),
    *("add", "min", "max", "and", "or", "bitxor", "scan_add", "scan_min", "scan_max"),
    *("scan_exclusive_add", "scan_exclusive_min", "scan_exclusive_max"),
)
"""Collective operations of lanes, numbered as in `warps.c`."""

WORDS = 4
"""Words that a lane passes to the runtime: a value, a mask, a lane or distance, a width."""
_WORD_OF = {"v": 0, "m": 1, "l": 2, "w": 3, "t": 3}
_SHUFFLES = {"shfl": "shuffle", "shfl_up": "up", "shfl_down": "down", "shfl_xor": "xor"}
_SIMPLE = ("add", "min", "max")

# Each function's operation, and the roles of its arguments: a value, a mask, a lane or distance, the width of
# parts of a warp (`w`), or the width of the participating tile (`t`).
FUNCTIONS: dict[str, tuple[str, str]] = {
    "__syncwarp": ("sync", "m"),
    "__activemask": ("active", ""),
    "__match_any_sync": ("match_any", "mv"),
    "cc_match_all": ("match_all", "mv"),
    **{f"__reduce_{name}_sync": (name, "mv") for name in (*_SIMPLE, "and", "or")},
    "__reduce_xor_sync": ("bitxor", "mv"),
    **{f"__{name}_sync": (name, "mv") for name in ("all", "any", "ballot")},
    **{f"__{name}_sync": (kind, "mvlw") for name, kind in _SHUFFLES.items()},
    # HIP's, of the lanes that are active
    **{f"__{name}": (name, "v") for name in ("all", "any", "ballot")},
    **{f"__{name}": (kind, "vlw") for name, kind in _SHUFFLES.items()},
    # of tiles
    "cc_tile_sync": ("sync", "t"),
    **{f"cc_tile_{name}": (kind, "vlt") for name, kind in _SHUFFLES.items()},
    **{f"cc_tile_{name}": (name, "vt") for name in ("all", "any", "ballot", "match_any", *OPERATIONS[11:])},
    # of OpenCL's sub-groups
    "sub_group_barrier": ("sync", "--"),
    "sub_group_all": ("all", "v"),
    "sub_group_any": ("any", "v"),
    "sub_group_broadcast": ("shuffle", "vl"),
    "sub_group_shuffle": ("shuffle", "vl"),
    **{f"sub_group_shuffle_{name}": (name, "vl") for name in ("xor", "up", "down")},
    **{f"sub_group_reduce_{name}": (name, "v") for name in _SIMPLE},
    **{f"sub_group_scan_inclusive_{name}": (f"scan_{name}", "v") for name in _SIMPLE},
    **{f"sub_group_scan_exclusive_{name}": (f"scan_exclusive_{name}", "v") for name in _SIMPLE},
}

_TYPES = {"i": 0, "j": 1, "l": 2, "m": 3, "x": 2, "y": 3, "f": 4, "d": 5}
_BY_LANES = 32
"""Flag of an operation of all active lanes, without mask or tile."""

_AT_BARRIER, _AT_COLLECTIVE, _AT_WARP = 1, 2, 3
_COLLECTIVE = re.compile(
    r"work_group_(all|any|broadcast|reduce|scan_exclusive|scan_inclusive)(?:_(add|min|max))?$"
)
_KINDS = ("all", "any", "broadcast", "reduce", "scan_exclusive", "scan_inclusive")


def is_barrier(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group barrier."""
    return called_builtin(instruction) in ("barrier", "work_group_barrier")


def is_collective(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group collective such as ``work_group_reduce_add``."""
    name = called_builtin(instruction)
    return name.startswith("work_group_") and not name.startswith("work_group_barrier")


def is_warp_operation(instruction: ir.Instruction) -> bool:
    """Whether an instruction is an operation of a warp."""
    return called_builtin(instruction) in FUNCTIONS


def cut_code(cutter: ir.Instruction | None) -> tuple[int, int, int]:
    """Encode the instruction before a segment for the runtime: kind, operation, type."""
    if cutter is None:
        return 0, 0, 0
    name = builtin_name(cutter.callee)
    types = cutter.callee.removeprefix(f"_Z{len(name)}{name}")
    if name in FUNCTIONS:
        kind, layout = FUNCTIONS[name]
        position = layout.find("v")
        letter = types[position : position + 1] if position >= 0 else "i"
        has_no_mask = "m" not in layout and "t" not in layout
        if letter in _TYPES:
            return _AT_WARP, OPERATIONS.index(kind) | (_BY_LANES if has_no_mask else 0), _TYPES[letter]
        raise cutter.refused(f"{name} of this type is not supported")
    if is_barrier(cutter):
        return _AT_BARRIER, 0, 0
    match = _COLLECTIVE.match(name)
    if match is None or types[:1] not in _TYPES:
        raise cutter.refused(f"{name} is not supported")
    operation = _SIMPLE.index(match[2]) if match[2] else 0
    return _AT_COLLECTIVE, _KINDS.index(match[1]) + 16 * operation, _TYPES[types[:1]]


def _exchange(code: Code, word: int, *, warp: bool) -> str:
    """Return the address of a word that a work-item and the runtime exchange."""
    base, words = ("%cc.warps", WORDS) if warp else ("%cc.exchange", 2)
    return code.at(base, f"%cc.wi, i64 {word}", f"[{words} x i64]")


def hand_over(cut: ir.Instruction, code: Code) -> None:
    """Pass a work-item's arguments of a collective or warp operation to the runtime."""
    if is_warp_operation(cut):
        _, layout = FUNCTIONS[builtin_name(cut.callee)]
        addresses = [_exchange(code, word, warp=True) for word in range(WORDS)]
        for address in addresses:
            code.store("i64", 0, address)
        for operand, letter in zip(cut.operands, layout, strict=False):
            if letter in _WORD_OF:
                code.store(operand.type, operand.value, addresses[_WORD_OF[letter]])
        return
    value, *local_ids = cut.operands
    ids = [local_id.value for local_id in local_ids] + ["0"] * (3 - len(local_ids))
    code.store(value.type, value.value, _exchange(code, 0, warp=False))
    row = code.value(f"add i64 {code.value(f'mul i64 {ids[2]}, %cc.size1')}, {ids[1]}")
    item = code.value(f"add i64 {code.value(f'mul i64 {row}, %cc.size0')}, {ids[0]}")
    code.store("i64", item, _exchange(code, 1, warp=False))


def take(cutter: ir.Instruction, result: str, code: Code) -> None:
    """Load a work-item's result."""
    address = _exchange(code, 0, warp=is_warp_operation(cutter))
    if cutter.type == "i1":
        code.do(f"{result} = trunc i64 {code.load('i64', address)} to i1")
    else:
        code.do(f"{result} = load {cutter.type}, ptr {address}")


_PER_DIMENSION = {
    "get_local_id": ("%cc.id", "0"),
    "get_group_id": ("%cc.group", "0"),
    "get_local_size": ("%cc.size", "1"),
    "get_enqueued_local_size": ("%cc.enqueued", "1"),
    "get_global_size": ("%cc.global", "1"),
    "get_num_groups": ("%cc.groups", "1"),
    "get_global_offset": ("%cc.offset", "0"),
}
# Replacement of a builtin: an instruction, with the arguments of the call.
_EXPRESSIONS = {
    "get_work_dim": "trunc i64 %cc.dims to i32",
    "get_local_linear_id": "add i64 %cc.wi, 0",
    "__translate_sampler_initializer": "inttoptr i64 {0} to ptr",
    "__to_global": "call ptr @cc_to_space(ptr %cc.ctx, ptr {0}, i32 1)",
    "__to_local": "call ptr @cc_to_space(ptr %cc.ctx, ptr {0}, i32 3)",
    "__to_private": "call ptr @cc_to_space(ptr %cc.ctx, ptr {0}, i32 0)",
    "get_fence": "call i32 @cc_fence_of(ptr %cc.ctx, ptr {0})",
}
# Replacements of queries about sub-groups: values of 64 bits, truncated to OpenCL C's 32.
_QUERIES = {
    "get_sub_group_local_id": ["{r}.v = urem i64 %cc.wi, {warp}"],
    "get_sub_group_id": ["{r}.v = udiv i64 %cc.wi, {warp}"],
    "get_num_sub_groups": ["{r}.u = add i64 %cc.items, {less}", "{r}.v = udiv i64 {r}.u, {warp}"],
    "get_enqueued_num_sub_groups": ["{r}.v = add i64 {enqueued}, 0"],
    "get_max_sub_group_size": ["{r}.v = add i64 {most}, 0"],
    "get_sub_group_size": [
        "{r}.s = urem i64 %cc.wi, {warp}",
        "{r}.f = sub i64 %cc.wi, {r}.s",
        "{r}.l = sub i64 %cc.items, {r}.f",
        "{r}.c = icmp ult i64 {r}.l, {warp}",
        "{r}.v = select i1 {r}.c, i64 {r}.l, i64 {warp}",
    ],
}


def _work_item_value(name: str, dimension: str, code: Code, *, small_ids: bool) -> str:
    """Return the replacement of an id or a size in a dimension."""
    fixed = dimension in ("0", "1", "2")
    if name == "get_global_id":
        add, value = f"add {'nuw nsw ' if small_ids else ''}i64", "0"
        values = [code.value(f"{add} %cc.base{d}, %cc.id{d}") for d in range(3)]
    else:
        stem, value = _PER_DIMENSION[name]
        values = [f"{stem}{d}" for d in range(3)]
    if fixed:
        return f"add i64 {values[int(dimension)]}, 0"
    for d in reversed(range(3)):
        value = code.value(
            f"select i1 {code.value(f'icmp eq i32 {dimension}, {d}')}, i64 {values[d]}, i64 {value}"
        )
    return f"add i64 {value}, 0"


def _global_linear_id(code: Code) -> str:
    value = "0"
    for d in reversed(range(3)):
        start = code.value(f"mul i64 %cc.group{d}, %cc.enqueued{d}")
        line = code.value(f"mul i64 {value}, %cc.global{d}")
        value = code.value(f"add i64 {line}, {code.value(f'add i64 {start}, %cc.id{d}')}")
    return f"add i64 {value}, 0"


_NOTHING = frozenset(
    "mem_fence read_mem_fence write_mem_fence atomic_work_item_fence prefetch wait_group_events".split()
)
_REFUSED = {
    r"__(enqueue|get)_kernel|^(enqueue_|get_default_queue|ndrange_|.*user_event)": "device-side enqueue",
    r"__(read|write|reserve|commit|sub_group|work_group|get)_?.*pipe|^.*_pipe": "a pipe",
    r"^(sub_group_|intel_sub)": "a sub-group function",
    r"^cc_refused_clock": "reading a clock",
    r"^cc_refused_texture": "a texture of layers, cubes or levels, or one of several settings",
    r"^cc_refused_surface": "a surface",
    r"^cc_refused_grid": "synchronization of a whole grid",
    r"^cc_refused_runtime": "a call of the runtime in device code (dynamic parallelism)",
    r"^cc_refused_heap": "allocating memory in a kernel (malloc, new)",
    r"^cc_refused_matrix": "a matrix operation of tensor cores",
    r"^(work_group_(reserve|commit))": "a pipe",
}
_DROPPED = re.compile(r"llvm\.(assume|experimental\.noalias|lifetime|dbg|invariant)")
_MOST_PRINT_ARGUMENTS = 256
_PRINT_RECORD_BYTES = 136


class Lowering:
    """Lowers the builtin calls of one kernel, and collects their requirements."""

    def __init__(
        self,
        names: Names,
        options: InstrumentationOptions,
        used: Container[str | None],
        fault_lines: list[int],
    ) -> None:
        self._names, self._options, self._used, self._fault_lines = names, options, used, fault_lines
        items, warp = math.prod(options.local_size), options.warp
        self._numbers = {"warp": warp, "less": warp - 1, "most": min(warp, items)}
        self._numbers["enqueued"] = -(-items // warp)
        self.library_symbols: set[str] = set()
        """Called functions of the library."""
        self.print_calls: list[list[str]] = []
        """Types of the arguments of each call of ``printf``, the format's included."""
        self.is_ordered = False
        """Whether results depend on the order of work-groups: these run on one thread."""

    def lower(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Return host instructions for one instruction of the kernel; the last one has its result."""
        if instruction.opcode in ("atomicrmw", "cmpxchg"):
            self._note_order(instruction)
        symbol = instruction.callee
        if not symbol or not (instruction.counted or symbol.startswith("_Z")):
            return [instruction]
        if symbol.startswith("llvm."):
            if _DROPPED.match(symbol):
                return [_empty(instruction)]
            # Always fused, for equal bits on every machine.
            copy = instruction.copy()
            copy.text = copy.text.replace("@llvm.fmuladd.", "@llvm.fma.")
            return [copy]
        return self._builtin(instruction, symbol, builtin_name(symbol))

    def _builtin(self, instruction: ir.Instruction, symbol: str, name: str) -> list[ir.Instruction]:
        for pattern, what in _REFUSED.items():
            if re.search(pattern, name):
                called = "" if name.startswith("cc_") else f" ({name})"
                raise instruction.refused(f"{what}{called} is not supported")
        if name in _NOTHING:
            return [_empty(instruction)]
        if name == "printf":
            return self._print(instruction)
        if name in ("async_work_group_copy", "async_work_group_strided_copy"):
            return self._async_copy(instruction, symbol)
        values = [operand.value for operand in instruction.operands]
        if name == "cc_assertion_failed":
            self._fault_lines.append(instruction.line)
            text = f"call void @cc_assertion(ptr %cc.ctx, i32 {len(self._fault_lines) - 1}, i64 %cc.wi)"
            return [ir.added(text), _empty(instruction)]
        if name == "cc_shared":
            code = Code(self._names)
            base = code.value(f"trunc i64 {code.value('ptrtoint ptr %cc.local to i64')} to i32")
            offset = code.value(f"zext i32 {code.value(f'sub i32 {values[0]}, {base}')} to i64")
            return [
                *map(ir.added, code.texts),
                _replaced(instruction, f"getelementptr i8, ptr %cc.local, i64 {offset}"),
            ]
        if name in _QUERIES:
            result = self._names.unique("q")
            steps = [text.format(r=result, **self._numbers) for text in _QUERIES[name]]
            return [*map(ir.added, steps), _replaced(instruction, f"trunc i64 {result}.v to i32")]
        if name in _EXPRESSIONS:
            return [_replaced(instruction, _EXPRESSIONS[name].format(*values))]
        if name in ("get_global_id", "get_global_linear_id", *_PER_DIMENSION):
            code = Code(self._names)
            if name == "get_global_linear_id":
                text = _global_linear_id(code)
            else:
                text = _work_item_value(name, values[0], code, small_ids=self._options.small_ids)
            return [*map(ir.added, code.texts), _replaced(instruction, text)]
        if not symbol.startswith("_Z") or parse(symbol) is None:
            raise instruction.refused(f"unresolved function {name!r}")
        self.library_symbols.add(symbol)
        if instruction.accesses and "atom" in symbol:
            self._note_order(instruction)
        return [instruction]

    def _note_order(self, instruction: ir.Instruction) -> None:
        """Record an atomic whose result depends on the order of work-groups."""
        shared = any("addrspace(3)" not in access.pointer_type for access in instruction.accesses)
        self.is_ordered |= shared and not commutes(instruction, self._used)

    def _print(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Write the arguments to a record, each with a flag for pointers, and pass it to the runtime."""
        self.is_ordered = True
        if not self._options.counts:
            return [_replaced(instruction, "add i32 0, 0")]
        number = len(self.print_calls)
        operands = instruction.operands
        self.print_calls.append([operand.type for operand in operands])
        if len(operands) > _MOST_PRINT_ARGUMENTS:
            raise instruction.refused(
                f"printf with more than {_MOST_PRINT_ARGUMENTS - 1} values is not supported"
            )
        code = Code(self._names)
        for position, (type_, value, _) in enumerate(operands):
            address = code.at("%cc.scratch", _PRINT_RECORD_BYTES * position)
            code.store("i64", int(type_.startswith("ptr")), address)
            code.store(type_, value, code.at(address, 8), ", align 1")
        code.do(f"call void @cc_printf(ptr %cc.ctx, i32 {number}, ptr %cc.scratch, i64 {len(operands)})")
        return [*map(ir.added, code.texts), _replaced(instruction, "add i32 0, 0")]

    def _async_copy(self, instruction: ir.Instruction, symbol: str) -> list[ir.Instruction]:
        to, from_, count, *rest = instruction.operands
        stride = rest[0].value if "strided" in symbol else "1"
        sites = 0  # no check; or 1 more than the number of the read's site, before the write's
        if self._options.check_bounds:
            sites = len(self._fault_lines) + 1
            self._fault_lines += [instruction.line] * len(instruction.accesses)
        text = (
            f"call void @cc_async_copy(ptr %cc.ctx, ptr {to.value}, ptr {from_.value}, i64 {count.value}, "
            f"i64 {stride}, i64 {async_element(symbol)}, i64 %cc.wi, "
            f"i32 {int('addrspace(3)' in to.type)}, i32 {sites}, "
            f"{', '.join(f'i32 {access.site}' for access in instruction.accesses)})"
        )
        return [ir.added(text), _empty(instruction)]


def _replaced(instruction: ir.Instruction, text: str) -> ir.Instruction:
    """Replace an instruction by one with the same result; an empty one without a result."""
    copy = instruction.copy()
    copy.text = text if instruction.result else ""
    return copy


def _empty(instruction: ir.Instruction) -> ir.Instruction:
    return _replaced(instruction, "bitcast ptr null to ptr")
