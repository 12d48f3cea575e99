"""Calls of builtins, and what stands for each of them in host code: OpenCL's, and operations of warps.

What the lanes of a warp (a sub-group, in OpenCL's words) do together cuts the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.builtins import library
from crosscast.characterization.builtins.declarations import parse
from crosscast.characterization.instrumentation.accesses import PointerClasses, address_space, async_element
from crosscast.characterization.instrumentation.context import Names
from crosscast.characterization.instrumentation.inline import Call, builtin_name, called_builtin, parse_call
from crosscast.errors import UnsupportedError

OPERATIONS = (
    *("sync", "active", "all", "any", "ballot", "shuffle", "up", "down", "xor", "match_any", "match_all"),
    *("add", "min", "max", "and", "or", "bitxor", "scan_add", "scan_min", "scan_max"),
    *("scan_exclusive_add", "scan_exclusive_min", "scan_exclusive_max"),
)
"""What lanes do together; `warps.c` numbers them alike."""

_VALUE, _MASK, _LANE, _WIDTH, _IGNORED = 0, 1, 2, 3, -1
_PLACES = {"v": _VALUE, "m": _MASK, "l": _LANE, "w": _WIDTH, "t": _WIDTH, "-": _IGNORED}
WORDS = 4

# Each function's operation, and what its arguments are: a value, a mask, a lane or distance, the width of the
# parts that a warp has for it (`w`), or the width of the tile that takes part (`t`).
FUNCTIONS: dict[str, tuple[str, str]] = {
    "__syncwarp": ("sync", "m"),
    "__activemask": ("active", ""),
    "__all_sync": ("all", "mv"),
    "__any_sync": ("any", "mv"),
    "__ballot_sync": ("ballot", "mv"),
    "__shfl_sync": ("shuffle", "mvlw"),
    "__shfl_up_sync": ("up", "mvlw"),
    "__shfl_down_sync": ("down", "mvlw"),
    "__shfl_xor_sync": ("xor", "mvlw"),
    "__match_any_sync": ("match_any", "mv"),
    "cc_match_all": ("match_all", "mv"),
    "__reduce_add_sync": ("add", "mv"),
    "__reduce_min_sync": ("min", "mv"),
    "__reduce_max_sync": ("max", "mv"),
    "__reduce_and_sync": ("and", "mv"),
    "__reduce_or_sync": ("or", "mv"),
    "__reduce_xor_sync": ("bitxor", "mv"),
    # HIP's, of the lanes that are active
    "__all": ("all", "v"),
    "__any": ("any", "v"),
    "__ballot": ("ballot", "v"),
    "__shfl": ("shuffle", "vlw"),
    "__shfl_up": ("up", "vlw"),
    "__shfl_down": ("down", "vlw"),
    "__shfl_xor": ("xor", "vlw"),
    # of tiles
    "cc_tile_sync": ("sync", "t"),
    "cc_tile_all": ("all", "vt"),
    "cc_tile_any": ("any", "vt"),
    "cc_tile_ballot": ("ballot", "vt"),
    "cc_tile_shfl": ("shuffle", "vlt"),
    "cc_tile_shfl_up": ("up", "vlt"),
    "cc_tile_shfl_down": ("down", "vlt"),
    "cc_tile_shfl_xor": ("xor", "vlt"),
    "cc_tile_match_any": ("match_any", "vt"),
    **{f"cc_tile_{name}": (name, "vt") for name in ("add", "min", "max", "and", "or", "bitxor")},
    **{f"cc_tile_{name}": (name, "vt") for name in OPERATIONS if name.startswith("scan")},
    # of OpenCL's sub-groups
    "sub_group_barrier": ("sync", "--"),
    "sub_group_all": ("all", "v"),
    "sub_group_any": ("any", "v"),
    "sub_group_broadcast": ("shuffle", "vl"),
    "sub_group_shuffle": ("shuffle", "vl"),
    "sub_group_shuffle_xor": ("xor", "vl"),
    "sub_group_shuffle_up": ("up", "vl"),
    "sub_group_shuffle_down": ("down", "vl"),
    **{f"sub_group_reduce_{name}": (name, "v") for name in ("add", "min", "max")},
    **{f"sub_group_scan_inclusive_{name}": (f"scan_{name}", "v") for name in ("add", "min", "max")},
    **{f"sub_group_scan_exclusive_{name}": (f"scan_exclusive_{name}", "v") for name in ("add", "min", "max")},
}

_WARP_TYPES = {"i": 0, "j": 1, "l": 2, "m": 3, "x": 2, "y": 3, "f": 4, "d": 5}
_BY_LANES = 32
"""Flag of an operation of all lanes that get there: no mask and no tile says who takes part."""

_AT_BARRIER, _AT_COLLECTIVE, _AT_WARP = 1, 2, 3


def is_warp_operation(instruction: ir.Instruction) -> bool:
    """Whether an instruction is an operation of a warp."""
    return called_builtin(instruction) in FUNCTIONS


def hand_to_warp(operation: ir.Instruction, names: Names) -> list[str]:
    """Hand a lane's arguments to the runtime: a value, a mask, a lane or distance, a width."""
    call = parse_call(operation)
    _, layout = FUNCTIONS[builtin_name(call.name)]
    places = {word: names.unique("x") for word in range(WORDS)}
    texts = [
        f"{place} = getelementptr [{WORDS} x i64], ptr %cc.warps, i64 %cc.wi, i64 {word}"
        for word, place in places.items()
    ]
    texts += [f"store i64 0, ptr {place}" for place in places.values()]
    for (type_, value), letter in zip(call.arguments, layout, strict=False):
        word = _PLACES[letter]
        if word != _IGNORED:
            texts.append(f"store {type_.split(' ')[0]} {value}, ptr {places[word]}")
    return texts


def take_from_warp(operation: ir.Instruction, result: str, names: Names) -> list[str]:
    """Take a lane's result."""
    address = names.unique("x")
    word = f"getelementptr [{WORDS} x i64], ptr %cc.warps, i64 %cc.wi, i64 0"
    if operation.type != "i1":
        return [f"{address} = {word}", f"{result} = load {operation.type}, ptr {address}"]
    return [
        f"{address} = {word}",
        f"{address}.w = load i64, ptr {address}",
        f"{result} = trunc i64 {address}.w to i1",
    ]


def _warp_code(operation: ir.Instruction) -> tuple[int, int]:
    """Operation and type, as the runtime numbers them."""
    symbol = parse_call(operation).name
    name = builtin_name(symbol)
    kind, layout = FUNCTIONS[name]
    types = symbol[len(f"_Z{len(name)}{name}") :]
    position = layout.find("v")
    letter = types[position : position + 1] if position >= 0 else "i"
    if letter not in _WARP_TYPES:
        raise UnsupportedError(f"{operation.where}{name} of this type is not supported")
    alone = "m" not in layout and "t" not in layout
    return OPERATIONS.index(kind) | (_BY_LANES if alone else 0), _WARP_TYPES[letter]


def cut_codes(
    cutters: list[ir.Instruction | None], collectives: dict[int, tuple[int, int]], turns: list[int]
) -> list[tuple[int, int, int, int]]:
    """What stands before each segment, as the runtime reads it: kind, operation, type.

    Beside the k-th there is the number of the segment that is the k-th as the program runs. Empty where
    `turns` is.
    """
    codes = []
    for turn, (number, cutter) in zip(turns, enumerate(cutters), strict=False):
        if cutter is None:
            codes.append((0, 0, 0, turn))
        elif is_warp_operation(cutter):
            codes.append((_AT_WARP, *_warp_code(cutter), turn))
        elif number in collectives:
            codes.append((_AT_COLLECTIVE, *collectives[number], turn))
        else:
            codes.append((_AT_BARRIER, 0, 0, turn))
    return codes


_QUERIES = {
    # Values of 64 bits; each is cut to the 32 that OpenCL C has for it.
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


def query(name: str, result: str, warp: int, items: int) -> list[str]:
    """Code for a query of OpenCL's about sub-groups; empty where it is none."""
    texts = _QUERIES.get(name, [])
    numbers = {"warp": warp, "less": warp - 1, "enqueued": -(-items // warp), "most": min(warp, items)}
    return [text.format(r=result, **numbers) for text in texts]


_LOCAL = 3
_COMMUTATIVE = frozenset("add sub and or xor max min umax umin".split())


@dataclass(frozen=True)
class Sharing:
    """Names of parameters and variables, by what the kernel does to their memory."""

    written: set[str]  # It may write there
    # All it does there is atomic, commutes, and its results are not used: work-groups can do it in any order
    # and end up with the same
    commuting: set[str]
    # Written memory in which accesses may overlap without starting at the same address, so that the counters
    # cannot tell whether work-groups communicate
    overlapping: set[str]


def commutes(instruction: ir.Instruction, is_used: Callable[[ir.Instruction], bool]) -> bool:
    """Whether an instruction is an atomic update whose order among others does not matter."""
    if is_used(instruction):
        return False
    if instruction.opcode == "atomicrmw":
        operation = re.match(r"atomicrmw (?:volatile )?(\w+)", instruction.text)
        return operation is not None and operation[1] in _COMMUTATIVE
    return instruction.opcode == "call" and library.is_commutative(parse_call(instruction).name)


def find_sharing(
    function: ir.Function, classes: PointerClasses, is_used: Callable[[ir.Instruction], bool]
) -> Sharing:
    """Sort the memory of a kernel by what it does there."""
    written: set[str] = set()
    touched: set[str] = set()
    ordered: set[str] = set()
    extents: dict[str, set[int]] = {}
    for instruction in function.instructions():
        for access in instruction.accesses:
            if address_space(access.pointer_type) == _LOCAL:
                continue  # no other work-group sees it
            members = classes.members(access.pointer)
            touched |= members
            if access.kind != "read":
                written |= members
            if not commutes(instruction, is_used):
                ordered |= members
            # Of no known extent where its length is only known while running, or it may start anywhere.
            known = 0 < access.nbytes <= access.alignment or access.repeated
            for name in members:
                extents.setdefault(name, set()).add(access.nbytes if known else 0)
    mixed = {name for name, found in extents.items() if len(found) > 1 or 0 in found}
    return Sharing(written, touched - ordered, written & mixed)


_PER_DIMENSION = {
    "get_local_id": ("%cc.id", "0"),
    "get_group_id": ("%cc.group", "0"),
    "get_local_size": ("%cc.size", "1"),
    "get_enqueued_local_size": ("%cc.enqueued", "1"),
    "get_global_size": ("%cc.global", "1"),
    "get_num_groups": ("%cc.groups", "1"),
    "get_global_offset": ("%cc.offset", "0"),
}
_LINEAR_PARTS = ("group", "enqueued", "id", "global")
_OTHERS = {
    "get_work_dim": "trunc i64 %cc.dims to i32",
    "get_local_linear_id": "add i64 %cc.wi, 0",
    "get_global_linear_id": "call i64 @cc.linear("
    + ", ".join(f"i64 %cc.{part}{d}" for d in range(3) for part in _LINEAR_PARTS)
    + ")",
}


def is_work_item_function(name: str) -> bool:
    """Whether a builtin is a work-item function."""
    return name == "get_global_id" or name in _PER_DIMENSION or name in _OTHERS


def work_item_value(name: str, call: Call, *, small_ids: bool) -> str:
    """Instruction that stands for a call of a work-item function."""
    if name in _OTHERS:
        return _OTHERS[name]
    dimension = call.arguments[0][1]
    fixed = dimension in ("0", "1", "2")
    if name == "get_global_id":
        return _global_id(dimension, fixed=fixed, small_ids=small_ids)
    if name == "get_local_id" and fixed:
        return f"call i64 @cc.small_sum(i64 0, i64 %cc.id{dimension})"
    stem, other = _PER_DIMENSION[name]
    if fixed:
        return f"add i64 {stem}{dimension}, 0"
    values = ", ".join(f"i64 {stem}{d}" for d in range(3))
    return f"call i64 @cc.pick(i32 {dimension}, {values}, i64 {other})"


def _global_id(dimension: str, *, fixed: bool, small_ids: bool) -> str:
    if fixed and small_ids:
        return f"call i64 @cc.small_sum(i64 %cc.base{dimension}, i64 %cc.id{dimension})"
    if fixed:
        return f"add i64 %cc.base{dimension}, %cc.id{dimension}"
    values = ", ".join(f"i64 %cc.{part}{d}" for part in ("base", "id") for d in range(3))
    return f"call i64 @cc.pick_sum(i32 {dimension}, {values})"


_NOTHING = frozenset(
    "mem_fence read_mem_fence write_mem_fence atomic_work_item_fence prefetch wait_group_events".split()
)
_REFUSED = (
    (
        re.compile(r"__(enqueue_kernel|get_kernel_)|^(enqueue_|get_default_queue|ndrange_|.*user_event)"),
        "device-side enqueue",
    ),
    (re.compile(r"__(read|write|reserve|commit|sub_group|work_group|get)_?.*pipe|^.*_pipe"), "a pipe"),
    (re.compile(r"^(sub_group_|intel_sub)"), "a sub-group function"),
    (re.compile(r"^cc_refused_clock"), "reading a clock"),
    (re.compile(r"^cc_refused_texture"), "a texture"),
    (re.compile(r"^cc_refused_surface"), "a surface"),
    (re.compile(r"^cc_refused_grid"), "synchronization of a whole grid"),
    (re.compile(r"^cc_refused_matrix"), "a matrix operation of tensor cores"),
    (re.compile(r"^(work_group_(reserve|commit))"), "a pipe"),
)
_FUSED = re.compile(r"llvm\.fmuladd\.")
_DROPPED = re.compile(r"llvm\.(assume|experimental\.noalias|lifetime|dbg|invariant)")
_TO_SPACE = {"__to_global": 1, "__to_local": 3, "__to_private": 0}
_ASYNC_COPIES = ("async_work_group_copy", "async_work_group_strided_copy")
_MOST_PRINT_ARGUMENTS = 256
_PRINT_RECORD_BYTES = 136


class Lowering:
    """Lowers the builtin calls of one kernel and remembers what they need."""

    def __init__(
        self,
        names: Names,
        is_used: Callable[[ir.Instruction], bool],
        sites: list[int],
        *,
        small_ids: bool,
        check_bounds: bool,
        warp: int,
        items: int,
    ) -> None:
        self._names, self._is_used, self._sites = names, is_used, sites
        self._small_ids, self._check_bounds = small_ids, check_bounds
        self._warp, self._items = warp, items
        self.library_symbols: set[str] = set()
        """Functions of the library that are called."""
        self.print_calls: list[list[str]] = []
        """Types of the arguments of each call of ``printf``, the format's included."""
        self.ordered = False
        """Whether results depend on the order of work-groups: these run on one thread."""

    def lower(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Host instructions for one instruction of the kernel; the last one bears its result."""
        if instruction.opcode in ("atomicrmw", "cmpxchg"):
            self._note_order(instruction)
        if instruction.opcode != "call" or not instruction.text:
            return [instruction]
        if not instruction.counted and "@_Z" not in instruction.text:
            return [instruction]
        call = parse_call(instruction)
        if call.name.startswith("llvm."):
            return self._intrinsic(instruction, call)
        return self._builtin(instruction, call, builtin_name(call.name))

    def _builtin(self, instruction: ir.Instruction, call: Call, name: str) -> list[ir.Instruction]:
        _refuse(instruction, name)
        if name in _NOTHING:
            return [self._empty(instruction)]
        if name == "printf":
            return self._print(instruction, call)
        if name in _ASYNC_COPIES:
            return self._async_copy(instruction, call, name)
        if name == "cc_assertion_failed":
            self._sites.append(instruction.line)
            text = f"call void @cc_assertion(ptr %cc.ctx, i32 {len(self._sites) - 1}, i64 %cc.wi)"
            return [ir.added(text), self._empty(instruction)]
        if steps := query(name, self._names.unique("q"), self._warp, self._items):
            result = steps[-1].split(" = ")[0]
            return [*map(ir.added, steps), self._value(instruction, f"trunc i64 {result} to i32")]
        if text := self._expression(call, name):
            return [self._value(instruction, text)]
        if not call.name.startswith("_Z") or parse(call.name) is None:
            raise UnsupportedError(f"{instruction.where}unresolved function {name!r}")
        self._from_library(instruction, call.name)
        return [instruction]

    def _expression(self, call: Call, name: str) -> str:
        """The one instruction that stands for a builtin; empty if there is none."""
        if is_work_item_function(name):
            return work_item_value(name, call, small_ids=self._small_ids)
        if name == "__translate_sampler_initializer":
            return f"inttoptr i64 {call.arguments[0][1]} to ptr"
        if name in _TO_SPACE:
            return f"call ptr @cc_to_space(ptr %cc.ctx, ptr {call.arguments[0][1]}, i32 {_TO_SPACE[name]})"
        if name == "get_fence":
            return f"call i32 @cc_fence_of(ptr %cc.ctx, ptr {call.arguments[0][1]})"
        return ""

    def _from_library(self, instruction: ir.Instruction, symbol: str) -> None:
        self.library_symbols.add(symbol)
        if instruction.accesses and "atom" in symbol:
            self._note_order(instruction)

    def _note_order(self, instruction: ir.Instruction) -> None:
        """Note an atomic whose result depends on which work-group comes first."""
        shared = any("addrspace(3)" not in access.pointer_type for access in instruction.accesses)
        if shared and not commutes(instruction, self._is_used):
            self.ordered = True

    @staticmethod
    def _value(instruction: ir.Instruction, text: str) -> ir.Instruction:
        copy = ir.copy_instruction(instruction)
        copy.text = text if instruction.result else ""
        return copy

    def _empty(self, instruction: ir.Instruction) -> ir.Instruction:
        return self._value(instruction, "bitcast ptr null to ptr")

    def _intrinsic(self, instruction: ir.Instruction, call: Call) -> list[ir.Instruction]:
        if _DROPPED.match(call.name):
            return [self._empty(instruction)]
        if _FUSED.match(call.name):
            # Always fused: the same bits on every machine, whether its backend likes to fuse or not.
            copy = ir.copy_instruction(instruction)
            copy.text = copy.text.replace("@llvm.fmuladd.", "@llvm.fma.")
            return [copy]
        return [instruction]

    def _print(self, instruction: ir.Instruction, call: Call) -> list[ir.Instruction]:
        """Write the arguments to a record, each with whether it is a pointer, and hand it over."""
        self.ordered = True
        number = len(self.print_calls)
        types = [ir.Operand.parse(type_).type for type_, _ in call.arguments]
        self.print_calls.append(types)
        if len(types) > _MOST_PRINT_ARGUMENTS:
            raise UnsupportedError(
                f"{instruction.where}printf with more than {_MOST_PRINT_ARGUMENTS - 1} values "
                "is not supported"
            )
        steps = []
        for position, (type_, (_, value)) in enumerate(zip(types, call.arguments, strict=True)):
            place = self._names.unique("p")
            steps += [
                f"{place} = getelementptr i8, ptr %cc.scratch, i64 {_PRINT_RECORD_BYTES * position}",
                f"store i64 {int(type_.startswith('ptr'))}, ptr {place}",
                f"{place}.v = getelementptr i8, ptr {place}, i64 8",
                f"store {type_} {value}, ptr {place}.v, align 1",
            ]
        steps.append(f"call void @cc_printf(ptr %cc.ctx, i32 {number}, ptr %cc.scratch, i64 {len(types)})")
        return [*map(ir.added, steps), self._value(instruction, "add i32 0, 0")]

    def _async_copy(self, instruction: ir.Instruction, call: Call, name: str) -> list[ir.Instruction]:
        (to_type, to), (_, from_), (_, count), *rest = call.arguments
        stride = rest[0][1] if "strided" in name else "1"
        to_local = "addrspace(3)" in to_type
        sites = 0  # no check; or 1 more than the number of the read's site, before the write's
        if self._check_bounds:
            sites = len(self._sites) + 1
            self._sites += [instruction.line] * len(instruction.accesses)
        text = (
            f"call void @cc_async_copy(ptr %cc.ctx, ptr {to}, ptr {from_}, i64 {count}, i64 {stride}, "
            f"i64 {async_element(call.name)}, i64 %cc.wi, i32 {int(to_local)}, i32 {sites})"
        )
        return [ir.added(text), self._empty(instruction)]


def _refuse(instruction: ir.Instruction, name: str) -> None:
    for pattern, what in _REFUSED:
        if pattern.search(name):
            raise UnsupportedError(f"{instruction.where}{what} ({name}) is not supported")


def declarations(module: ir.Module, text: str) -> list[str]:
    """Declarations of the LLVM intrinsics and library functions that `text` calls."""
    names = dict.fromkeys(re.findall(r"@(llvm\.[-a-zA-Z$._0-9]+|_Z\w+)\(", text))
    rows = [module.declared[name] for name in names if name in module.declared]
    for name in names:
        unfused = name.replace("llvm.fma.", "llvm.fmuladd.")
        if name not in module.declared and unfused in module.declared:
            rows.append(module.declared[unfused].replace("llvm.fmuladd.", "llvm.fma."))
    return rows


_COLLECTIVE = re.compile(
    r"work_group_(all|any|broadcast|reduce|scan_exclusive|scan_inclusive)(?:_(add|min|max))?$"
)
_KINDS = ("all", "any", "broadcast", "reduce", "scan_exclusive", "scan_inclusive")
_OPERATIONS = ("add", "min", "max")
_TYPES = {"i": 0, "j": 1, "l": 2, "m": 3, "f": 4, "d": 5}


def collective_code(call: ir.Instruction) -> tuple[int, int]:
    """Operation and type of a collective, as the runtime numbers them."""
    symbol = parse_call(call).name
    name = builtin_name(symbol)
    match = _COLLECTIVE.match(name)
    letter = symbol[len(f"_Z{len(name)}{name}") :][:1]
    if match is None or letter not in _TYPES:
        raise UnsupportedError(f"{call.where}{name} is not supported")
    operation = _OPERATIONS.index(match[2]) if match[2] else 0
    return _KINDS.index(match[1]) + 16 * operation, _TYPES[letter]


def hand_over(collective: ir.Instruction, names: Names) -> list[str]:
    """Hand a work-item's arguments to the runtime: 16 bytes, a value and whose value is wanted."""
    (type_, value), *whose = parse_call(collective).arguments
    address, second = names.unique("x"), names.unique("x")
    ids = [local_id for _, local_id in whose] + ["0"] * (3 - len(whose))
    plane, row, line, item = (names.unique("x") for _ in range(4))
    return [
        f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
        f"{second} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 1",
        f"store {type_.split(' ')[0]} {value}, ptr {address}",
        f"{plane} = mul i64 {ids[2]}, %cc.size1",
        f"{row} = add i64 {plane}, {ids[1]}",
        f"{line} = mul i64 {row}, %cc.size0",
        f"{item} = add i64 {line}, {ids[0]}",
        f"store i64 {item}, ptr {second}",
    ]


def take(collective: ir.Instruction, result: str, names: Names) -> list[str]:
    """Take a work-item's result."""
    address = names.unique("x")
    return [
        f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
        f"{result} = load {collective.type}, ptr {address}",
    ]
