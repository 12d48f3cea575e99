"""Kinds of instructions, by a device's units: operation and type, or memory and width.

A kind is a path such as ``fp32.add`` or ``loads.global.4``. Each instruction has exactly one.

The costs of one execution of each basic block are sums of kinds, and of classes of the instruction mix.
Instructions and accesses are not counted during execution: the cost of a block is constant, and is multiplied
by its executions afterwards. Executions follow from the few counted edges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import OTHER, BlockCosts
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.builtin_calls import (
    is_barrier,
    is_collective,
    is_warp_operation,
)
from crosscast.characterization.instrumentation.inline import called_builtin

FREE = "free"
"""Kind of instructions without cost: phis, and changes of type that do not change bits."""
CALLS = "calls"
"""Kind of calls and returns of the program's functions, which a device's compiler inlines."""


def _by_name(groups: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for kind, names in groups.items() for name in names.split()}


INTEGER_DIVISIONS = ("udiv", "sdiv", "urem", "srem")
_INTEGER = _by_name(
    {
        "add": "add sub and or xor cc_byte_perm cc_sad cc_vabsdiffu4 cc_vsadu4 cc_dp4a cc_dp2a_lo cc_dp2a_hi",
        "shift": "shl lshr ashr fshl fshr rotate cc_funnel_lc cc_funnel_rc",
        "mul": "mul mul_hi umul_with_overflow smul_with_overflow",
        "mul24": "mul24",
        "fused": "mad_hi mad_sat",
        "fused24": "mad24",
        "div": " ".join(INTEGER_DIVISIONS),
        "compare": "icmp any all",
        "select": "select bitselect",
    }
)
_REAL = _by_name(
    {
        "add": "fadd fsub fneg",
        "mul": "fmul",
        "fused": "fma mad fmuladd",
        "div": "fdiv frem fmod remainder remquo",
        "native_div": "native_divide",
        "half_div": "half_divide",
        "compare": "fcmp isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater "
        "isfinite isinf isnan isnormal isordered isunordered signbit",
        "select": "select bitselect",
        "sqrt": "sqrt",
        "rsqrt": "rsqrt",
        "exp": "exp exp2 exp10 expm1",
        "log": "log log2 log10 log1p",
        "pow": "pow pown powr rootn",
        "sin": "sin sinpi",
        "cos": "cos cospi",
        "tan": "tan tanpi",
        "asin": "asin asinpi",
        "acos": "acos acospi",
        "atan": "atan atanpi atan2 atan2pi",
        "erf": "erf erfc",
        "gamma": "tgamma lgamma lgamma_r",
        **{name: name for name in "recip sincos sinh cosh tanh asinh acosh atanh cbrt hypot".split()},
    }
)
_OPCODES = _by_name(
    {
        FREE: "phi bitcast addrspacecast freeze ptrtoint inttoptr trunc alloca extractvalue insertvalue",
        "addresses": "getelementptr",
        "branches.switch": "switch indirectbr",
        "branches.return": "ret unreachable",
        "vectors.extract": "extractelement",
        "vectors.insert": "insertelement",
        "vectors.shuffle": "shufflevector",
        "fences": "fence",
    }
)
_CONVERSIONS = frozenset("zext sext fpext fptrunc fptoui fptosi uitofp sitofp".split())
_CALLS = _by_name(
    {
        "vectors.shuffle": "shuffle shuffle2",
        "fences": "mem_fence read_mem_fence write_mem_fence atomic_work_item_fence wait_group_events",
        FREE: "assume stacksave stackrestore expect __to_global __to_local __to_private",
        "copies": "memcpy memmove memset",
    }
)
_FAST = re.compile(r"(native|half)_(\w+)")
_RELAXED = re.compile(
    r"(?:tail |notail )?call (?:[a-z]+ )*?(?:fast|afn)\b|fdiv (?:[a-z]+ )*?(?:fast|afn|arcp)\b"
)
"""Beginning of an instruction that a compiler may approximate."""
_HAVE_FAST = frozenset("div sqrt rsqrt exp log sin cos pow".split())
_BITS = {"half": "fp16", "bfloat": "fp16", "float": "fp32", "double": "fp64"}
_REALS = re.compile(r"(?:<\d+ x )?(half|bfloat|float|double)\b")
INTEGERS = re.compile(r"(?:<\d+ x )?i(\d+)\b")
_WIDTH = re.compile(r"<(\d+) x ")


def kind_of(
    instruction: ir.Instruction, classes: PointerClasses, sizes: Mapping[str, tuple[int, int]]
) -> tuple[str, int]:
    """Return the kind of an instruction of a flattened kernel with known accesses, and its elements.

    Elements are 1 for scalars, and for all but arithmetic and conversions.
    """
    kind = _kind(instruction, classes, sizes)
    return kind, _elements(instruction) if kind.startswith(("fp", "int", "conversions")) else 1


def _kind(instruction: ir.Instruction, classes: PointerClasses, sizes: Mapping[str, tuple[int, int]]) -> str:
    opcode = instruction.opcode
    if not instruction.text:
        return CALLS
    if opcode == "call":
        return _kind_of_call(instruction, classes, sizes)
    if opcode in ("load", "store"):
        return _transfer(instruction, classes, sizes)
    if opcode in ("atomicrmw", "cmpxchg"):
        return _atomic(opcode, instruction, classes)
    if opcode == "br":
        return f"branches.{'conditional' if len(instruction.targets) > 1 else 'unconditional'}"
    if opcode in _OPCODES:
        return _OPCODES[opcode]
    types = [instruction.type, *(operand.type for operand in instruction.operands)]
    if opcode in _CONVERSIONS:
        return _conversion(types)
    if opcode in ("icmp", "fcmp", "select"):
        del types[:-1]  # the type of the operands
    return _relaxed(_operation(opcode, types), instruction)


def _elements(instruction: ir.Instruction) -> int:
    types = [instruction.type, *(operand.type for operand in instruction.operands)]
    return max(map(ir.width_of, types))


def describe(kinds: Mapping[tuple[str, int], int]) -> dict[str, object]:
    """Return the executions of each kind as nested dictionaries, with vectors counted by element."""
    tree: dict[str, Any] = {}
    for (kind, width), times in sorted(kinds.items()):
        *groups, name = kind.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[name] = node.get(name, 0) + width * times
    return tree


def _kind_of_call(
    instruction: ir.Instruction, classes: PointerClasses, sizes: Mapping[str, tuple[int, int]]
) -> str:
    name = called_builtin(instruction)
    if instruction.callee.startswith("llvm."):
        name = instruction.callee.split(".")[1]
    types = [instruction.type, *(operand.type for operand in instruction.operands)]
    if is_barrier(instruction):
        return "barriers"
    if is_warp_operation(instruction) or is_collective(instruction):
        return "sub_group" if is_warp_operation(instruction) else "collectives"
    if name in _CALLS:
        return _CALLS[name]
    if name.startswith("get_"):
        return "ids"
    if name.startswith(("read_image", "write_image")):
        return f"images.{name.split('_')[0]}"
    if name.startswith("as_"):
        return FREE
    if name.startswith("convert_"):
        return _conversion(types)
    if name.startswith("atom"):
        return _atomic(name, instruction, classes)
    if name.startswith("async_work_group"):
        return "copies"
    if name.startswith(("vload", "vstore")):
        return _transfer(instruction, classes, sizes)
    return _relaxed(_operation(name, types), instruction)


def _atomic(name: str, instruction: ir.Instruction, classes: PointerClasses) -> str:
    compares = any(word in name for word in ("cmpxchg", "compare_exchange"))
    adds = any(_REALS.match(operand.type) for operand in instruction.operands)
    suffix = "_compare" if compares else "_fp" if adds else ""
    return f"atomics.{_space(instruction.accesses, classes)}{suffix}"


def _transfer(
    instruction: ir.Instruction, classes: PointerClasses, sizes: Mapping[str, tuple[int, int]]
) -> str:
    access, *_ = instruction.accesses or accesses_of(instruction, sizes) or [None]
    stores = instruction.opcode == "store" or called_builtin(instruction).startswith("vstore")
    nbytes = access.nbytes if access else 0
    if access is None:  # the library has no accesses to private memory
        types = [operand.type for operand in instruction.operands[:1]] if stores else [instruction.type]
        nbytes = sum(value_bytes(type_) for type_ in types)
    return f"{'stores' if stores else 'loads'}.{_space(instruction.accesses, classes)}.{nbytes}"


def _space(accesses: list[MemoryAccess], classes: PointerClasses) -> str:
    if not accesses:
        return "private"
    cls = classes.of(accesses[0].pointer, accesses[0].pointer_type)
    if cls.memory in ("private", "dynamic"):
        return "private" if cls.memory == "private" else "generic"
    return space_name(accesses[0], cls)


def _conversion(types: list[str]) -> str:
    """Return the kind of a conversion, by the widest real type involved."""
    reals = [_BITS[match[1]] for type_ in types if (match := _REALS.match(type_))]
    return f"conversions.{max(reals, default='int')}"


def _relaxed(kind: str, instruction: ir.Instruction) -> str:
    """Return the kind that a device's compiler makes of one where it may approximate."""
    group, _, name = kind.partition(".")
    is_fast = group == "fp32" and name in _HAVE_FAST and _RELAXED.match(instruction.text)
    return f"{group}.native_{name}" if is_fast else kind


def _operation(name: str, types: list[str]) -> str:
    """Return the kind of an operation on numbers, by the first real type, or else by the first type."""
    fast = _FAST.fullmatch(name)
    for type_ in types:
        if real := _REALS.match(type_):
            kind = _REAL.get(name) or (_REAL.get(fast[2]) if fast else None) or "other"
            mark = f"{fast[1]}_" if fast and name not in _REAL else ""
            return f"{_BITS[real[1]]}.{mark}{kind}"
    for type_ in types:
        if "ptr" in type_:
            return f"int{32 if address_space(type_) == 3 else 64}.{_INTEGER.get(name, 'add')}"
        if (integer := INTEGERS.match(type_)) and type_ != "i1":
            bits = int(integer[1])
            # A single bit is a predicate, which counts as 32 bits.
            size = 32 if bits == 1 else 16 if bits <= 16 else 32 if bits <= 32 else 64
            return f"int{size}.{_INTEGER.get(name, 'add')}"
    return f"int32.{_INTEGER[name]}" if name in _INTEGER else "other"


def value_bytes(type_: str) -> int:
    """Return the bytes of a value: of a vector's elements, 4 of a pointer to local memory, 8 of others."""
    if match := _WIDTH.match(type_):
        return int(match[1]) * value_bytes(type_[match.end() : -1])
    if integer := INTEGERS.fullmatch(type_):
        return -(-int(integer[1]) // 8)
    if type_.startswith("ptr"):
        return 4 if address_space(type_) == 3 else 8
    return {"half": 2, "bfloat": 2, "float": 4, "double": 8}.get(type_, 8)


_CLASS_OF_OPCODE = _by_name(
    {
        "mem": "load store atomicrmw cmpxchg fence",
        "stack": "alloca",
        "shift": "shl lshr ashr mul",
        "fp": "fadd fsub fmul fdiv frem fneg fcmp fptoui fptosi uitofp sitofp fptrunc fpext",
        "control": "br switch indirectbr ret unreachable",
        OTHER: "phi bitcast addrspacecast freeze ptrtoint inttoptr",
    }
)
OF_VECTORS = ("extractelement", "insertelement", "shufflevector")
"""Operations that make vectors, or take them apart."""
_TRANSFERS = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")


def class_of(instruction: ir.Instruction) -> str:
    """Return one of `CLASSES`, or `OTHER`.

    Each instruction is in one class only. If it could be in several, the first of these holds: memory,
    vectors, then its operation; a call of a builtin is classified by the type of its result.
    """
    opcode = instruction.opcode
    if instruction.callee.startswith(_TRANSFERS):
        return "string"
    if instruction.accesses:
        # Atomics and loads of vectors are calls.
        return "mem"
    opcode_class = _CLASS_OF_OPCODE.get(opcode)
    if opcode_class in ("mem", "stack", "control", OTHER):
        return opcode_class
    if instruction.width > 1 or opcode in OF_VECTORS:
        return "sse"
    if opcode == "call":
        # Barriers and inlined calls have no instruction of their own.
        if not instruction.text or instruction.type == "void":
            return "control"
        return "fp" if instruction.type in _BITS else "alu"
    return opcode_class or "alu"


_ARITHMETIC = frozenset("fadd fsub fmul fdiv frem".split())
_FUSED = re.compile(r"llvm\.(fma|fmuladd)\.|_Z3(fma|mad)")
_PRECISIONS = {"half": "half", "bfloat": "half", "float": "single", "double": "double"}
_OF_REALS = re.compile(r"(?:<\d+ x )?(half|bfloat|float|double)>?")


def work_of(instruction: ir.Instruction) -> dict[str, int]:
    """Return floating-point operations by precision, or elements that a mathematical function computes.

    A multiply-add is two operations, as in the peak rates of data sheets; a comparison or conversion is none.
    Of vectors, the elements of its kind are counted.
    """
    reals = _OF_REALS.fullmatch(instruction.type)
    if reals is None or instruction.accesses:
        return {}
    if instruction.opcode in _ARITHMETIC:
        return {f"flops_{_PRECISIONS[reals[1]]}": instruction.kind[1]}
    if instruction.opcode != "call" or not instruction.text:
        return {}
    if _FUSED.match(instruction.callee):
        return {f"flops_{_PRECISIONS[reals[1]]}": 2 * instruction.kind[1]}
    return {"function_elements": instruction.width}


def add_instruction(costs: BlockCosts, instruction: ir.Instruction, classes: PointerClasses) -> None:
    """Add one instruction to the costs of its block."""
    costs.opcodes[instruction.opcode] += 1
    costs.widths[instruction.width] += 1
    costs.classes[class_of(instruction)] += 1
    costs.work.update(work_of(instruction))
    costs.kinds[instruction.kind] += 1
    plain = instruction.opcode in ("load", "store")
    if plain and not instruction.accesses:
        costs.private += 1
    for access in instruction.accesses:
        cls = classes.of(access.pointer, access.pointer_type)
        if cls.memory != "private":
            # The length of a copy may be dynamic.
            sized = access.nbytes * (1 + (access.kind == "read-write"))
            space = "generic" if cls.memory == "dynamic" else space_name(access, cls)
            known = sized and not access.repeated
            costs.work.update({f"{space}_bytes": sized} if known else {"unsized_accesses": 1})
        if cls.memory in ("dynamic", "private") or access.repeated:
            costs.private += plain and cls.memory == "private"
            continue
        space = space_name(access, cls)
        if access.kind != "write":
            costs.reads[space] += 1
        if access.kind in ("write", "read-write"):
            costs.writes[space] += 1
        if plain:
            costs.plain[space] += 1


def space_name(access: MemoryAccess, cls: PointerClass) -> str:
    """Return the address space in which an access is counted."""
    space = address_space(access.pointer_type)
    if space == 4:
        return "local" if cls.memory == "local" else "global"
    return {1: "global", 2: "constant", 3: "local"}[space]
