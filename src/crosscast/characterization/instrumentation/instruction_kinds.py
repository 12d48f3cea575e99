"""Kinds of instructions, by a device's units: operation and type, or memory and width.

A kind is a path such as ``fp32.add`` or ``loads.global.4``. Each instruction has exactly one.

Integer operations for addresses and loops only are ``indexing``: a device's compiler folds most of them into
addresses, replaces products by sums from one iteration to the next, and unrolls loops.

The costs of one execution of each basic block are sums of kinds, and of classes of the instruction mix.
Instructions and accesses are not counted during execution: the cost of a block is constant, and is multiplied
by its executions afterwards. Executions follow from the few counted edges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import OTHER, BlockCosts
from crosscast.characterization.instrumentation import graph
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


_INTEGER_DIVISIONS = ("udiv", "sdiv", "urem", "srem")
_INTEGER = _by_name(
    {
        "add": "add sub and or xor shl lshr ashr fshl fshr cc_funnel_lc cc_funnel_rc cc_byte_perm cc_sad "
        "cc_vabsdiffu4 cc_vsadu4 cc_dp4a cc_dp2a_lo cc_dp2a_hi",
        "mul": "mul mul_hi umul_with_overflow smul_with_overflow",
        "mul24": "mul24",
        "fused": "mad_hi mad_sat",
        "fused24": "mad24",
        "div": " ".join(_INTEGER_DIVISIONS),
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
INDEXING = "indexing"
"""Prefix of the kinds of integer operations for addresses and loops only."""
_MAY_INDEX = frozenset("add sub mul shl lshr ashr and or xor select icmp sext zext trunc phi freeze".split())
_INDEXING_CALLS = frozenset("mul24 mad24 min max umin umax smin smax".split())
_OF_OPERANDS = frozenset(
    (*_INTEGER_DIVISIONS, *"add sub mul and or xor shl lshr ashr zext sext trunc".split())
)
_VALUES = ("%", "@")
_CONSTANT = re.compile(r"-?\d+")
_SHORT_BITS = 23  # And a sign
_JOINED_ATOMICS = ("atomics.global", "atomics.generic")
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
_INTEGERS = re.compile(r"(?:<\d+ x )?i(\d+)\b")
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


def mark_indexing(function: ir.Function) -> None:
    """Set the kind of integer operations of a flattened kernel for addresses and loops only.

    These are computed from ids, arguments and constants, not from loaded values, and used by addresses, by
    the exits of loops, and by each other.
    """
    flow = function.flow
    inside = graph.innermost(graph.find_loops(flow))
    exits = {
        label
        for label, loop in inside.items()
        if len(set(flow[label])) > 1 and not loop.blocks.issuperset(flow[label])
    }
    definitions = {i.result: i for i in function.instructions() if i.result}
    ids = {name for name, i in definitions.items() if called_builtin(i) in graph.IDENTITIES}
    chosen = {name for name, i in definitions.items() if _may_index(i)}
    users: dict[str, set[str]] = {name: set() for name in chosen}
    for label, block in function.blocks.items():
        for i in block.instructions:
            if i.opcode == "getelementptr" or (i is block.terminator and label in exits):
                continue
            for name in i.uses() & chosen:
                users[name].add(i.result or "")
    computed = definitions.keys() - ids
    sources = {name: definitions[name].uses() & computed for name in chosen}
    results: dict[str, set[str]] = {}
    for name, of_name in sources.items():
        for source in of_name:
            results.setdefault(source, set()).add(name)
    # Twice, as an index that is also a value makes no values of the addresses computed from it.
    _keep_within(chosen, sources, results)
    _keep_within(chosen, users, sources)
    for name in chosen:
        instruction = definitions[name]
        kind, elements = instruction.kind
        if kind.startswith(("int", "conversions")):
            instruction.kind = f"{INDEXING}.{kind}", elements
    for label in exits:
        branch = function.blocks[label].terminator
        if branch.opcode == "br" and branch.uses() <= chosen:
            branch.kind = f"{INDEXING}.{branch.kind[0]}", 1


def mark_divisions(function: ir.Function) -> None:
    """Set the kind of divisions of integers by a divisor that is no constant.

    Compilers divide by constants with a product and shifts. GPUs have no instruction for the others, but
    begin with the divisor's reciprocal, once for a loop that does not change it. A division that repeats
    another, of its block or in each iteration, is free.
    """
    if not any(map(_divides_by_variable, function.instructions())):
        return
    inside = graph.innermost(graph.find_loops(function.flow))
    computed_in = {i.result: label for label, block in function.blocks.items() for i in block.instructions}
    same = _equal_values(function)
    for label, block in function.blocks.items():
        loop = inside[label].blocks if label in inside else frozenset()
        done: set[str] = set()
        for i in filter(_divides_by_variable, block.instructions):
            dividend_changes, divisor_changes = (computed_in.get(each.value) in loop for each in i.operands)
            value = same[i.result or ""]
            kind, elements = i.kind
            if value in done or (loop and not dividend_changes and not divisor_changes):
                i.kind = FREE, 1
            else:
                i.kind = f"{kind}_by_{'variable' if divisor_changes or not loop else 'invariant'}", elements
            done.add(value)


def mark_short_products(function: ir.Function) -> None:
    """Set the kind of products of 32 bits of which the code shows that both factors have 24 bits at most.

    AMD's compiler looks for these, as GPUs of AMD have a faster instruction for them (LLVM,
    AMDGPUCodeGenPrepare).
    """
    products = [i for i in function.instructions() if i.opcode == "mul" and i.kind[0] == "int32.mul"]
    if not products:
        return
    definitions = {i.result: i for i in function.instructions() if i.result}
    for i in products:
        if all(_is_short(operand.value, definitions) for operand in i.operands):
            i.kind = "int32.mul24", i.kind[1]


def _is_short(value: str, definitions: Mapping[str, ir.Instruction]) -> bool:
    if _CONSTANT.fullmatch(value):
        return abs(int(value)) < 1 << _SHORT_BITS
    i = definitions.get(value)
    if i is None:
        return False
    values = [operand.value for operand in i.operands]
    constant = int(values[1]) if len(values) > 1 and _CONSTANT.fullmatch(values[1]) else -1
    match i.opcode:
        case "zext" | "sext":
            source = _INTEGERS.match(i.operands[0].type)
            return source is not None and int(source[1]) <= 16
        case "trunc":
            return _is_short(values[0], definitions)
        case "and":
            return 0 <= constant < 1 << _SHORT_BITS
        case "lshr":
            return constant >= 32 - _SHORT_BITS
    return called_builtin(i) in ("get_local_id", "get_local_size")


def _divides_by_variable(instruction: ir.Instruction) -> bool:
    return instruction.opcode in _INTEGER_DIVISIONS and instruction.operands[1].value.startswith(_VALUES)


def _equal_values(function: ir.Function) -> dict[str, str]:
    """Map integers computed alike from ids, and from equal values, to the first of them."""
    same: dict[str, str] = {}
    first: dict[tuple[str, ...], str] = {}
    for i in function.instructions():
        name = called_builtin(i) or i.opcode
        if i.result and (name in graph.IDENTITIES or name in _OF_OPERANDS):
            operands = (same.get(operand.value, operand.value) for operand in i.operands)
            same[i.result] = first.setdefault((name, i.type, *operands), i.result)
    return same


def mark_uniform_atomics(function: ir.Function) -> None:
    """Set the kind of atomics on integers whose address is the same for all work-items of a group.

    Compilers for GPUs replace those of a sub-group by one (Nvidia's since CUDA 9, AMD's since LLVM 8).
    """
    atomics = [i for i in function.instructions() if i.kind[0] in _JOINED_ATOMICS]
    if not atomics:
        return
    flow = function.flow
    values = graph.find_uniform(function.blocks, flow, [p.name for p in function.parameters]).values
    for i in atomics:
        if all(access.pointer in values or access.pointer.startswith("@") for access in i.accesses):
            i.kind = f"{i.kind[0]}_uniform", i.kind[1]


def _keep_within(chosen: set[str], needs: Mapping[str, Set[str]], affected: Mapping[str, Set[str]]) -> None:
    """Remove names until all that each needs is chosen; without one, those it affects are looked at again."""
    pending = [*chosen]
    while pending:
        name = pending.pop()
        if name in chosen and not needs[name] <= chosen:
            chosen.remove(name)
            pending += affected.get(name, ())


def _may_index(instruction: ir.Instruction) -> bool:
    if not _INTEGERS.fullmatch(instruction.type):
        return False
    name = called_builtin(instruction) or instruction.callee.removeprefix("llvm.").split(".")[0]
    return instruction.opcode in _MAY_INDEX or name in _INDEXING_CALLS


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
        if (integer := _INTEGERS.match(type_)) and type_ != "i1":
            bits = int(integer[1])
            # A single bit is a predicate, which counts as 32 bits.
            size = 32 if bits == 1 else 16 if bits <= 16 else 32 if bits <= 32 else 64
            return f"int{size}.{_INTEGER.get(name, 'add')}"
    return f"int32.{_INTEGER[name]}" if name in _INTEGER else "other"


def value_bytes(type_: str) -> int:
    """Return the bytes of a value: of a vector's elements, 4 of a pointer to local memory, 8 of others."""
    if match := _WIDTH.match(type_):
        return int(match[1]) * value_bytes(type_[match.end() : -1])
    if integer := _INTEGERS.fullmatch(type_):
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
