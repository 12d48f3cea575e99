"""CUDA and HIP kernels adapted to the engine's OpenCL C conventions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from crosscast.characterization import ir
from crosscast.characterization.cuda.kernels import CudaKernel, StructureMember, read_kernels
from crosscast.characterization.instrumentation.inline import called_builtin, stack_slot
from crosscast.errors import LaunchError

_LINKAGE = re.compile(r"\b(hidden|local_unnamed_addr|unnamed_addr) ")


def adapt_program(module: ir.Module, text: str) -> dict[str, CudaKernel]:
    """Adapt a program's variables and kernels in place; return the kernels, from its text, by symbol."""
    _adapt_variables(module)
    kernels = {}
    for kernel in read_kernels(text):
        function = module.functions[kernel.symbol]
        function.metadata.update(_split_structures(function, kernel, module.sizes).metadata)
        kernels[kernel.symbol] = kernel
    return kernels


def _adapt_variables(module: ir.Module) -> None:
    """Adapt CUDA's variables to OpenCL C: constants are in constant memory."""
    for name, variable in list(module.globals.items()):
        if name.startswith("@__hip_cuid_"):
            del module.globals[name]  # added by the compiler
            continue
        text = _LINKAGE.sub("", variable.text)
        constant = variable.address_space == 1 and " constant " in text
        space = 2 if constant else variable.address_space
        module.globals[name] = replace(variable, text=text, address_space=space)


_GENERIC, _GLOBAL_POINTER = "ptr addrspace(4)", "ptr addrspace(1)"
_SHARED = 3
_WORK_ITEM_FUNCTIONS = ("get_local_id", "get_group_id", "get_local_size", "get_num_groups")
_TOP = ""  # nothing is known yet
_VARIABLE = re.compile(
    r"addrspacecast \((ptr addrspace\(\d\)) (@(?:\"[^\"]*\"|[-\w$.]+)) to ptr addrspace\(4\)\)"
)
_OFFSET = re.compile(
    r"ptr addrspace\(4\) (getelementptr [^()]*\([^()]*(ptr addrspace\([123]\)) @[^()]*\))(?![\w.])"
)


def _split_structures(
    function: ir.Function, kernel: CudaKernel, sizes: dict[str, tuple[int, int]]
) -> CudaKernel:
    """Make members of structures with pointers parameters of their own, which point to global memory.

    A structure of which the kernel does more than load single members is to be put together again. Returns
    the kernel with the names and types of its parameters.
    """
    if len(function.parameters) != len(kernel.types) or not any(kernel.members):
        return kernel
    parts: list[tuple[ir.FunctionParameter, str, str]] = []
    given = zip(function.parameters, kernel.names, kernel.types, kernel.members, strict=True)
    for parameter, name, type_, members in given:
        if not members:
            parts.append((parameter, name, type_))
            continue
        loads = _loads_of(function, parameter.name, members, sizes)
        loaded = {member: i.type for i, member in loads or ()}
        split = {member: _parameter_of(member, loaded.get(member)) for member in members}
        if loads is None:
            structure = parameter.structure, parameter.name
            split = {m: replace(each, member_of=(*structure, m.offset)) for m, each in split.items()}
        else:
            _use_members(function, {i.result or "": split[member] for i, member in loads})
        for member, each in split.items():
            sizes.setdefault(each.type, (member.nbytes, member.nbytes))
            parts.append((each, member.name, member.type))
    function.parameters = [parameter for parameter, _, _ in parts]
    function.drop_unused(lambda i: i.opcode in ("addrspacecast", "getelementptr"))
    _, names, types = zip(*parts, strict=True)
    return replace(kernel, names=names, types=types)


def _put_together(kernel: ir.Function) -> None:
    """Put structures in private memory together from the parameters that are members, uncounted."""
    made: dict[str, list[ir.Instruction]] = {}
    for each in kernel.parameters:
        if each.member_of is None:
            continue
        type_, name, offset = each.member_of
        value, value_type, address = each.name, each.type, f"{each.name}.address"
        steps = made.setdefault(name, [stack_slot(type_, name)])
        steps.append(_added("getelementptr", f"i8, ptr {name}, i64 {offset}", "ptr", address))
        if value_type == _GLOBAL_POINTER:
            value, value_type = f"{each.name}.generic", _GENERIC
            steps.append(_added("addrspacecast", f"{each.type} {each.name} to {_GENERIC}", _GENERIC, value))
        steps.append(_added("store", f"{value_type} {value}, ptr {address}, align 1"))
    kernel.entry.instructions[:0] = [i for steps in made.values() for i in steps]


def _added(opcode: str, operands: str, type_: str = "void", result: str | None = None) -> ir.Instruction:
    return ir.Instruction(f"{opcode} {operands}", opcode, type_, result, counted=False)


def _loads_of(
    function: ir.Function,
    structure: str,
    members: Sequence[StructureMember],
    sizes: Mapping[str, tuple[int, int]],
) -> list[tuple[ir.Instruction, StructureMember]] | None:
    """Return the loads of single members; ``None`` if there are other uses of the structure."""
    by_place = {(member.offset, member.nbytes): member for member in members}
    offsets, loads = {structure: 0}, []
    pointers = [i for i in function.instructions() if i.opcode in ("addrspacecast", "getelementptr")]
    # Definitions may stand behind uses.
    while derived := [i for i in pointers if i.result not in offsets and _offset(i, offsets) is not None]:
        offsets |= {i.result or "": _offset(i, offsets) or 0 for i in derived}
    types: dict[StructureMember, str] = {}
    for i in function.instructions():
        if i.result in offsets or offsets.keys().isdisjoint(i.uses()):
            continue
        if i.opcode != "load":
            return None
        member = by_place.get((offsets[i.operands[1].value], sizes[i.type][0]))
        if member is None or types.setdefault(member, i.type) != i.type:
            return None
        loads.append((i, member))
    return loads


def _offset(pointer: ir.Instruction, offsets: Mapping[str, int]) -> int | None:
    """Return the constant distance of a pointer from what others point into, if it is one of these."""
    match pointer.opcode, pointer.operands:
        case "addrspacecast", (source, *_):
            return offsets.get(source.value)
        case "getelementptr", (element, source, index) if element.type == "i8" and index.value.isdigit():
            return offsets[source.value] + int(index.value) if source.value in offsets else None
    return None


def _parameter_of(member: StructureMember, loaded: str | None) -> ir.FunctionParameter:
    """Return the parameter for a member that is loaded as a type, if it is known."""
    is_pointer = member.type.endswith("*")
    return ir.FunctionParameter(
        _GLOBAL_POINTER if is_pointer else loaded or f"i{8 * member.nbytes}",
        f"%{re.sub(r'[^a-zA-Z0-9_.]', '.', member.name)}.member",
        "noalias" if is_pointer and member.is_restricted else "",
    )


def _use_members(function: ir.Function, parameters: Mapping[str, ir.FunctionParameter]) -> None:
    """Replace loads, by the names of their results, by parameters."""
    for block in function.blocks.values():
        kept = []
        for i in block.instructions:
            if (parameter := parameters.get(i.result or "")) is None:
                if not parameters.keys().isdisjoint(i.uses()):
                    i.rename(lambda name: _plain(parameters, name))
                kept.append(i)
            elif parameter.type == _GLOBAL_POINTER:
                i.opcode = "addrspacecast"
                i.text = f"addrspacecast {parameter.type} {parameter.name} to {_GENERIC}"
                kept.append(i)
        block.instructions = kept


def _plain(parameters: Mapping[str, ir.FunctionParameter], name: str) -> str:
    """Return the parameter for a loaded number, or the name itself."""
    parameter = parameters.get(name)
    return name if parameter is None or parameter.type == _GLOBAL_POINTER else parameter.name


def adapt_kernel(module: ir.Module, kernel: ir.Function, shared: int | None) -> ir.Module:
    """Adapt a flattened kernel in place; return its module with `shared` bytes of dynamic shared memory."""
    for space in ("ptr", *(f"ptr addrspace({number})" for number in (1, 2, 3))):
        module.sizes.setdefault(space, (8, 8))
    _put_together(kernel)
    _pass_carries(kernel)
    _sort_pointers(kernel, module.globals)
    _use_builtins(kernel)
    module = replace(module, globals=_used(kernel, module.globals))
    dynamic = [v for v in module.globals.values() if v.address_space == _SHARED and " external " in v.text]
    used = [v for v in dynamic if any(v.name in i.symbols for i in kernel.instructions())]
    if not used:
        return module
    if not shared:
        line = next((i.where for i in kernel.instructions() if used[0].name in i.symbols and i.line), None)
        raise LaunchError.of(
            field=line,
            problem=f"the kernel uses dynamic shared memory (extern __shared__ {used[0].name[1:]}), "
            "whose size is missing: expected --shared, or shared in the launch file, in bytes",
        )
    # All its names refer to the same memory.
    first, *others = (v.name for v in used)

    def renamed(text: str) -> str:
        return ir.SYMBOL.sub(lambda name: first if name[0] in others else name[0], text)

    for instruction in kernel.instructions() if others else ():
        instruction.text = renamed(instruction.text)
        instruction.incoming = [(renamed(value), label) for value, label in instruction.incoming]
    kept = {name: v for name, v in module.globals.items() if v not in dynamic}
    return replace(module, globals={**kept, first: replace(used[0], nbytes=shared)})


def _used(kernel: ir.Function, variables: dict[str, ir.GlobalVariable]) -> dict[str, ir.GlobalVariable]:
    """Return the variables that a kernel refers to, transitively."""
    pending = [name for i in kernel.instructions() for name in i.symbols]
    used: set[str] = set()
    while pending:
        name = pending.pop()
        if name in variables and name not in used:
            used.add(name)
            pending += ir.SYMBOL.findall(variables[name].text)
    return {name: variable for name, variable in variables.items() if name in used}


def _pass_carries(function: ir.Function) -> None:
    """Give each carry that is taken the value of the last one that was left, in the same block."""
    carries: dict[str, str] = {}
    for block in function.blocks.values():
        left, kept = "", []
        for instruction in block.instructions:
            name = called_builtin(instruction)
            if name == "cc_leave_carry":
                left = instruction.operands[0].value
            elif name == "cc_take_carry" and not left:
                raise instruction.refused("a carry of another block of code is not supported")
            elif name == "cc_take_carry":
                carries[str(instruction.result)] = left
            else:
                kept.append(instruction)
        block.instructions = kept
    for instruction in function.instructions() if carries else ():
        instruction.rename(lambda value: carries.get(value, value))


def _sort_pointers(function: ir.Function, variables: dict[str, ir.GlobalVariable]) -> None:
    """Infer the address spaces of generic pointers of a flattened kernel."""
    choices = _name_variables(function, variables)
    aliases = _find_conversions(function)
    spaces = _propagate(function, aliases, choices)
    known = {name: space for name, space in spaces.items() if space not in (_TOP, _GENERIC)}
    names = {name: _origin(name, aliases) for name in aliases if name in known}
    for block in function.blocks.values():
        block.instructions = [i for i in block.instructions if i.result not in names]  # the conversions
        for instruction in block.instructions:
            if not known.keys().isdisjoint(instruction.uses()):
                instruction.rename(lambda name: names.get(name, name), known)
            if instruction.result in known:
                instruction.type = known[instruction.result]
                if instruction.opcode == "phi":
                    instruction.text = f"phi {instruction.type}"
    function.drop_unused(lambda i: i.opcode == "ptrtoint")


_Typed = tuple[str, str]
"""A type and a value."""


def _name_variables(
    function: ir.Function, variables: dict[str, ir.GlobalVariable]
) -> dict[str | None, list[_Typed]]:
    """Replace conversions of addresses of variables, and of constant offsets, by the variables.

    Returns the choices of each phi.
    """

    def name(match: re.Match[str]) -> str:
        variable = variables.get(match[2])
        space = f"ptr addrspace({variable.address_space})" if variable else match[1]
        return f"{space} {match[2]}"

    def rewrite(text: str) -> str:
        if "@" not in text:
            return text
        # The type before a converted address is replaced with it.
        text = re.sub(rf"ptr addrspace\(4\) ({_VARIABLE.pattern})", r"\1", text)
        text = _VARIABLE.sub(name, text)
        while (changed := _OFFSET.sub(r"\2 \1", text)) != text:
            text = changed
        return text

    choices: dict[str | None, list[_Typed]] = {}
    for instruction in function.instructions():
        instruction.text = rewrite(instruction.text)
        typed = [rewrite(f"{_GENERIC} {value}").split(" ", 2) for value, _ in instruction.incoming]
        choices[instruction.result] = [(f"{ptr} {space}", value) for ptr, space, value in typed]
        labels = (label for _, label in instruction.incoming)
        instruction.incoming = [(value, label) for (*_, value), label in zip(typed, labels, strict=True)]
    return choices


def _find_conversions(function: ir.Function) -> dict[str, _Typed]:
    """Return the source type and value of each conversion to a generic pointer."""
    integers: dict[str, _Typed] = {}
    conversions: dict[str, _Typed] = {}
    for instruction in function.instructions():
        if instruction.result is None or not instruction.text:
            continue
        if instruction.opcode not in ("ptrtoint", "addrspacecast", "inttoptr"):
            continue
        type_, value, _ = instruction.operands[0]
        if instruction.opcode == "ptrtoint" and value.startswith("%"):
            integers[instruction.result] = (type_, value)
        elif instruction.type == _GENERIC and value in integers and integers[value][0] != _GENERIC:
            conversions[instruction.result] = integers[value]
        elif instruction.type == _GENERIC and instruction.opcode == "addrspacecast" and value.startswith("%"):
            conversions[instruction.result] = (type_, value)
    return conversions


def _origin(name: str, aliases: dict[str, _Typed]) -> str:
    while name in aliases:
        name = aliases[name][1]
    return name


def _propagate(
    function: ir.Function, aliases: dict[str, _Typed], choices: dict[str | None, list[_Typed]]
) -> dict[str, str]:
    """Propagate address spaces, as types, to each generic pointer that an instruction makes."""
    instructions = {
        i.result: i for i in function.instructions() if i.result and i.type == _GENERIC and i.text
    }
    pending = {name: instruction for name, instruction in instructions.items() if name not in aliases}
    spaces = {**dict.fromkeys(pending, _TOP), **{name: space for name, (space, _) in aliases.items()}}
    before: dict[str, str] = {}
    while spaces != before:
        before = dict(spaces)
        for name, instruction in pending.items():
            spaces[name] = _space(instruction, spaces, choices[name])
    return spaces


def _space(instruction: ir.Instruction, spaces: dict[str, str], choices: list[_Typed]) -> str:
    """Return the address space of an instruction's result, from its source pointers."""
    sources = [(operand.type, operand.value) for operand in instruction.operands]
    match instruction.opcode:
        case "getelementptr":
            sources = sources[1:2]
        case "select":
            sources = sources[1:]
        case "phi":
            sources = [(type_, value) for type_, value in choices if value.startswith("%") or "@" in value]
        case "freeze":
            pass
        case _:
            return _GENERIC
    named = [source for source in sources if source[1] not in ("null", "undef", "poison")]
    possible = {spaces.get(value, type_) for type_, value in named} - {_TOP}
    return _GENERIC if len(possible) > 1 else possible.pop() if possible else _TOP


def _use_builtins(function: ir.Function) -> None:
    """Replace expressions of CUDA by the equivalent builtin calls of OpenCL C."""
    definitions = {i.result: i for i in function.instructions() if i.result}
    for block in function.blocks.values():
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            if index := _GLOBAL.get(_meaning(instruction, definitions)):
                builtin, dimension = index
                call = f"call spir_func i64 @_Z{len(builtin)}{builtin}j(i32 {dimension})"
                name = f"{instruction.result}.cc.index"
                rewritten.append(ir.Instruction(call, "call", "i64", name, line=instruction.line))
                instruction.text, instruction.opcode = f"trunc i64 {name} to i32", "trunc"
            elif instruction.opcode == "extractvalue" and instruction.text.endswith(", 0"):
                source = definitions.get(instruction.text.removesuffix(", 0").split()[-1])
                if source is not None and source.opcode == "cmpxchg":
                    instruction.counted = False
            rewritten.append(instruction)
        block.instructions = rewritten
    function.drop_unused(lambda i: i.opcode in ("mul", "trunc") or called_builtin(i) in _WORK_ITEM_FUNCTIONS)
    _compute_wide(function)


def _compute_wide(function: ir.Function) -> None:
    """Compute with ids in 64 bits before truncation, as OpenCL C does, if they have no other use."""
    definitions = {i.result: i for i in function.instructions() if i.result}
    uses: Counter[str] = Counter()
    for instruction in function.instructions():
        uses.update(operand.value for operand in instruction.operands)
        uses.update(value for value, _ in instruction.incoming)
    narrowed = {
        name
        for name, i in definitions.items()
        if i.opcode == "trunc" and uses[name] == 1 and _index(i, definitions)
    }
    for block in function.blocks.values():
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            rewritten.append(instruction)
            name = instruction.result
            if name is None or instruction.type != "i32" or instruction.opcode not in ("add", "mul"):
                continue
            operands = _operands(instruction)
            if not set(operands) <= narrowed or operands[0] == operands[1]:
                continue
            wide = [definitions[operand].text.split()[2] for operand in operands]
            result = f"{name}.cc.wide"
            text = f"{instruction.opcode} i64 {wide[0]}, {wide[1]}"
            widened = ir.Instruction(text, instruction.opcode, "i64", result, line=instruction.line)
            definitions[result] = widened
            rewritten.insert(-1, widened)
            instruction.text, instruction.opcode = f"trunc i64 {result} to i32", "trunc"
            if uses[name] == 1:
                narrowed.add(name)
        block.instructions = rewritten
    function.drop_unused(lambda i: i.opcode == "trunc")


def _operands(instruction: ir.Instruction) -> tuple[str, str]:
    first, second = instruction.operands
    return first.value, second.value


def _index(instruction: ir.Instruction, definitions: dict[str, ir.Instruction]) -> tuple[str, str] | None:
    """Return name and dimension of the work-item function that an instruction truncates."""
    call = definitions.get(instruction.text.split()[2]) if instruction.opcode == "trunc" else None
    if call is None or (name := called_builtin(call)) not in _WORK_ITEM_FUNCTIONS:
        return None
    return name, call.operands[0].value


def _meaning(
    instruction: ir.Instruction | None, definitions: dict[str, ir.Instruction], depth: int = 2
) -> Hashable:
    """Normalize a sum or product of ids and sizes: the operation and its unordered operands."""
    if instruction is None or instruction.type != "i32":
        return None
    if instruction.opcode not in ("add", "mul") or not depth:
        return _index(instruction, definitions)
    terms = (_meaning(definitions.get(name), definitions, depth - 1) for name in _operands(instruction))
    return instruction.opcode, frozenset(terms)


_PRODUCTS = {d: ("mul", frozenset({("get_group_id", d), ("get_local_size", d)})) for d in "012"}
_SIZES = {d: frozenset({("get_local_size", d), ("get_num_groups", d)}) for d in "012"}
_GLOBAL: dict[Hashable, tuple[str, str]] = {
    **{("add", frozenset({("get_local_id", d), _PRODUCTS[d]})): ("get_global_id", d) for d in "012"},
    **{("mul", _SIZES[d]): ("get_global_size", d) for d in "012"},
}
"""Builtin and dimension for each normalized expression."""
