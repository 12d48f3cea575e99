"""Runs a launch of a kernel, work-item after work-item between barriers, and writes all of it down."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from crosscast.characterization import ir
from crosscast.characterization.builtins import SCALARS, parse
from crosscast.characterization.frontend import load_kernel
from crosscast.characterization.instrumentation import inline
from crosscast.kernel import Launch, Local
from support.interpreter import functions
from support.interpreter.values import Type, Types

Kind = Literal["read", "write", "atomic"]
_SPACES = {0: "private", 1: "global", 2: "constant", 3: "local"}
_MEMORY = 40
"""Addresses have the number of their memory from this bit on, and the offset below it."""


class Access(NamedTuple):
    """One access of one work-item to memory that is not private."""

    site: int  # Static instruction, by its position in the flattened kernel
    group: int  # Work-group
    item: int  # Work-item, by its position in the group's linear order
    turn: int  # How many times the work-item had executed the instruction before
    space: str  # `global`, `constant` or `local`
    memory: int  # Buffer or variable
    offset: int  # Byte in it
    nbytes: int
    kind: Kind
    failed: bool = False  # Whether it is a comparison that failed, and so exchanged nothing


@dataclass
class Trace:
    """What a launch did."""

    sites: list[ir.Instruction]  # The static instructions
    accesses: list[Access] = field(default_factory=list)
    # Executions of each instruction by each work-item, by (group, item)
    executions: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)  # Blocks that the first work-item ran, in order
    pieces: list[int] = field(default_factory=list)  # Instructions of each work-item between barriers
    # Outcomes of each conditional branch in order, by number and work-group
    outcomes: dict[int, dict[int, list[bool]]] = field(default_factory=dict)


@dataclass
class _Item:
    """One work-item."""

    group: int
    item: int
    ids: dict[str, tuple[int, int, int]]  # What `get_local_id` and the like give, by dimension
    counts: list[int]
    values: dict[str, Any]
    came_from: str = ""
    went_to: str | None = ""


Get = Callable[[_Item], Any]


def _each(count: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Apply a function lane by lane; scalars among vectors stand for all lanes."""
    if not count:
        return function(*arguments)
    return tuple(
        function(*(a[lane] if isinstance(a, tuple) else a for a in arguments)) for lane in range(count)
    )


def interpret(launch: Launch) -> Trace:
    """Run a launch; arrays among its arguments hold the output afterwards."""
    with np.errstate(all="ignore"):
        return _Machine(launch).run()


class _Machine:
    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        kernel = load_kernel(launch.kernel)
        module = kernel.program.module
        flat = inline.flatten(module, kernel.function)
        self.types = Types(module.types)
        self.memories: dict[int, bytearray | memoryview] = {}
        self.spaces: dict[int, str] = {}
        self.symbols: dict[str, int] = {}
        for variable in module.globals.values():
            self.symbols[variable.name] = self.allocate(variable.nbytes, _SPACES[variable.address_space])
        for variable in module.globals.values():
            initializer = re.split(r" (?:global|constant) ", variable.text, maxsplit=1)[1]
            (given,) = ir.Instruction(initializer.split(", align")[0], "constant").operands[:1]
            type_ = self.types.read(given.type)
            self.store(None, type_, self.symbols[variable.name], self.get(given)(None))
        self.parameters = flat.parameters
        self.arguments = self.bind()
        self.sites = list(flat.instructions())
        numbers = itertools.count()
        self.blocks = {
            label: [(next(numbers), i, self.compile(i)) for i in block.instructions]
            for label, block in flat.blocks.items()
        }
        self.entry = flat.entry.label
        self.trace = Trace(self.sites)

    # -- memory

    def allocate(self, nbytes: int, space: str, data: memoryview | None = None) -> int:
        number = len(self.memories) + 1
        self.memories[number] = bytearray(nbytes) if data is None else data
        self.spaces[number] = space
        return number << _MEMORY

    def bind(self) -> list[Any]:
        """Values of the parameters; of structures by value, their bytes."""
        bound: list[Any] = []
        buffers: dict[tuple[int, int], int] = {}
        for parameter, argument in zip(self.parameters, self.launch.args, strict=True):
            type_ = self.types.read(parameter.type)
            if isinstance(argument, Local):
                bound.append(self.allocate(argument.nbytes, "local"))
            elif argument is None:
                bound.append(0)
            elif type_.kind == "pointer" and not parameter.structure:
                assert isinstance(argument, np.ndarray)
                assert argument.flags.c_contiguous
                place = (argument.__array_interface__["data"][0], argument.nbytes)
                if place not in buffers:
                    space = _SPACES[_space(parameter.type)]
                    data = memoryview(argument.reshape(-1).view(np.uint8).data)
                    buffers[place] = self.allocate(argument.nbytes, space, data)
                bound.append(buffers[place])
            else:
                given = argument if isinstance(argument, bytes) else np.asarray(argument).tobytes()
                bound.append(given if parameter.structure else type_.unpack(given[: type_.nbytes]))
        return bound

    def at(self, w: _Item | None, address: int, nbytes: int, kind: Kind) -> tuple[Any, slice]:
        """The bytes at an address, and a line in the trace for the access."""
        number, offset = address >> _MEMORY, address & ((1 << _MEMORY) - 1)
        memory, space = self.memories[number], self.spaces[number]
        assert offset + nbytes <= len(memory), f"an access of {nbytes} bytes at {offset} of {len(memory)}"
        if w is not None and space != "private" and nbytes:
            turn = w.counts[w.values["site"]] - 1
            place = (w.values["site"], w.group, w.item, turn, space, number, offset, nbytes)
            self.trace.accesses.append(Access(*place, kind))
        return memory, slice(offset, offset + nbytes)

    def load(self, w: _Item | None, type_: Type, address: int, kind: Kind = "read") -> Any:
        memory, place = self.at(w, address, type_.nbytes, kind)
        return type_.unpack(memory[place])

    def store(self, w: _Item | None, type_: Type, address: int, value: Any) -> None:
        memory, place = self.at(w, address, type_.nbytes, "write")
        memory[place] = type_.pack(value)

    def update(self, w: _Item, type_: Type, address: int, new: Callable[[Any], Any]) -> Any:
        """An atomic: what was there, and what `new` makes of it in its place."""
        old = self.load(w, type_, address, "atomic")
        self.store(None, type_, address, type_.fit(new(old)))
        return old

    def exchange(self, w: _Item, type_: Type, address: int, expected: Any, new: Any) -> Any:
        """What was there, in whose place `new` is if it is as expected."""
        old = self.update(w, type_, address, lambda old: new if old == expected else old)
        if old != expected and self.trace.accesses:
            last = self.trace.accesses[-1]
            self.trace.accesses[-1] = last._replace(failed=last.kind == "atomic")
        return old

    def copy(self, w: _Item, to: int, from_: int, nbytes: int) -> None:
        source, place = self.at(w, from_, nbytes, "read")
        data = bytes(source[place])
        target, place = self.at(w, to, nbytes, "write")
        target[place] = data

    def fill(self, w: _Item, to: int, value: int, nbytes: int) -> None:
        target, place = self.at(w, to, nbytes, "write")
        target[place] = bytes([value]) * nbytes

    # -- work-items

    def run(self) -> Trace:
        sizes, wanted, offset = (
            (*given, *(default,) * (3 - len(given)))
            for given, default in (
                (self.launch.global_size, 1),
                (self.launch.local_size, 1),
                (self.launch.global_offset, 0),
            )
        )
        groups = tuple(-(-size // local) for size, local in zip(sizes, wanted, strict=True))
        below = len(self.memories)
        for number, backwards in enumerate(np.ndindex(groups[::-1])):
            group = backwards[::-1]
            local = tuple(min(n, size - g * n) for n, size, g in zip(wanted, sizes, group, strict=True))
            for memory, space in self.spaces.items():
                if space == "local":
                    self.memories[memory] = bytearray(len(self.memories[memory]))
            running = []
            for item, place in enumerate(np.ndindex(local[::-1])):
                own = place[::-1]
                ids = {
                    "get_local_id": own,
                    "get_group_id": group,
                    "get_global_id": tuple(
                        o + g * n + i for o, g, n, i in zip(offset, group, wanted, own, strict=True)
                    ),
                    "get_local_size": local,
                    "get_enqueued_local_size": wanted,
                    "get_global_size": sizes,
                    "get_num_groups": groups,
                    "get_global_offset": offset,
                }
                counts = self.trace.executions[number, item] = [0] * len(self.sites)
                running.append(self.work_item(_Item(number, item, ids, counts, {})))
            while running:
                running = [item for item in running if next(item, None)]
            for memory in range(below + 1, len(self.memories) + 1):
                del self.memories[memory], self.spaces[memory]
        return self.trace

    def work_item(self, w: _Item) -> Iterator[bool]:
        """Run to the end, and stop at every barrier."""
        for parameter, value in zip(self.parameters, self.arguments, strict=True):
            if parameter.structure:
                type_ = self.types.read(parameter.structure)
                w.values[parameter.name] = address = self.allocate(type_.nbytes, "private")
                self.memories[address >> _MEMORY][:] = value[: type_.nbytes]
            else:
                w.values[parameter.name] = value
        label: str | None = self.entry
        before = 0
        while label is not None:
            w.went_to = ""
            if w.group == w.item == 0:
                self.trace.path.append(label)
            chosen: dict[str, Any] = {}
            for site, instruction, execute in self.blocks[label]:
                w.counts[site] += instruction.counted
                if instruction.opcode == "phi" and instruction.result:
                    chosen[instruction.result] = execute(w)
                    continue
                w.values.update(chosen)
                chosen.clear()
                w.values["site"] = site
                result = execute(w)
                if instruction.result:
                    w.values[instruction.result] = result
                elif result == "barrier":
                    self.trace.pieces.append(sum(w.counts) - 1 - before)
                    before = sum(w.counts)
                    yield True
            w.came_from, label = label, w.went_to
        self.trace.pieces.append(sum(w.counts) - before)

    # -- instructions

    def get(self, operand: ir.Operand) -> Callable[[Any], Any]:
        """How to get the value of an operand."""
        name = operand.value
        if name.startswith("%"):
            return lambda w: w.values[name]
        expression = operand.constant_expression
        if expression is not None and expression.opcode != "splat":
            value = self.compile(expression)(None)  # type: ignore[arg-type]
        else:
            value = self.types.constant(name, self.types.read(operand.type), self.symbols)
        return lambda w: value

    def compile(self, i: ir.Instruction) -> Get:
        """The function that executes an instruction."""
        if not i.text:
            return lambda w: None
        if i.opcode == "phi":
            ways = {label: self.get(ir.Operand(i.type, value)) for value, label in i.incoming}
            return lambda w: ways[w.came_from](w)
        special = getattr(self, f"_{i.opcode}", None)
        if special is not None:
            return special(i, [o for o in i.operands if o.value])  # type: ignore[no-any-return]
        return self._scalars(i, i.operands)

    def _scalars(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        """What works on scalars, and on vectors lane by lane."""
        from_ = self.types.read(operands[0].type).scalar
        opcode = i.opcode
        if opcode in ("icmp", "fcmp"):
            predicate = re.search(
                r"cmp (?:[a-z]+ )*?((?:[ous]?(?:eq|ne|[gl][te]))|ord|uno|true|false) ", i.text
            )
            assert predicate is not None
            if opcode == "icmp":
                function, signed = functions.compare_integers(predicate[1])
            else:
                function, signed = functions.compare_reals(predicate[1]), False
        elif opcode in functions.SIGNED:
            function, signed = functions.SIGNED[opcode], True
        elif found := functions.UNSIGNED.get(opcode) or functions.REAL.get(opcode):
            function, signed = found, False
        else:
            function, signed = functions.cast(opcode, from_, self.types.read(i.type).scalar), False
            operands = operands[:1]
        return self.apply(i, operands, function, [signed] * len(operands))

    def apply(
        self,
        i: ir.Instruction,
        operands: tuple[ir.Operand, ...],
        function: Callable[..., Any],
        signed: list[bool],
    ) -> Get:
        """Apply a function of scalars, of which some are signed integers."""
        gets = [self.get(operand) for operand in operands]
        scalars = [self.types.read(operand.type).scalar for operand in operands]
        type_ = self.types.read(i.type)
        fit, count = type_.scalar.fit, len(type_.parts)
        numbers = [position for position, is_signed in enumerate(signed) if is_signed]

        def one(*arguments: Any) -> Any:
            if numbers:
                given = list(arguments)
                for position in numbers:
                    given[position] = scalars[position].signed(given[position])
                return fit(function(*given))
            return fit(function(*arguments))

        if not count:
            return lambda w: one(*[get(w) for get in gets])
        return lambda w: _each(count, one, *[get(w) for get in gets])

    def _select(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        condition, yes, no = map(self.get, operands)
        if not self.types.read(operands[0].type).parts:
            return lambda w: yes(w) if condition(w) else no(w)
        count = i.width
        return lambda w: _each(count, lambda c, a, b: a if c else b, condition(w), yes(w), no(w))

    def _freeze(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        return self.get(operands[0])

    def _bitcast(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        get, from_, to = self.get(operands[0]), self.types.read(operands[0].type), self.types.read(i.type)
        return lambda w: to.unpack(from_.pack(get(w)))

    def _extractelement(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        vector, index = map(self.get, operands)
        return lambda w: vector(w)[index(w)]

    def _insertelement(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        vector, element, index = map(self.get, operands)

        def insert(w: _Item) -> Any:
            lanes = list(vector(w))
            lanes[index(w)] = element(w)
            return tuple(lanes)

        return insert

    def _shufflevector(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        first, second, mask = map(self.get, operands)
        return lambda w: tuple((first(w) + second(w))[lane] for lane in mask(w))

    def _extractvalue(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        get, path = self.get(operands[0]), [int(o.value) for o in operands[1:]]

        def extract(w: _Item) -> Any:
            value = get(w)
            for step in path:
                value = value[step]
            return value

        return extract

    def _insertvalue(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        whole, element, (index,) = self.get(operands[0]), self.get(operands[1]), map(int, _indices(i.text))
        return lambda w: tuple(element(w) if n == index else old for n, old in enumerate(whole(w)))

    def _alloca(self, i: ir.Instruction, _: list[ir.Operand]) -> Get:
        nbytes = self.types.read(i.operands[0].type).step
        return lambda w: self.allocate(nbytes, "private")

    def _load(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        type_, pointer = self.types.read(i.type), self.get(operands[0])
        return lambda w: self.load(w, type_, pointer(w))

    def _store(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        type_, value, pointer = self.types.read(operands[0].type), *map(self.get, operands)
        return lambda w: self.store(w, type_, pointer(w), value(w))

    def _fence(self, i: ir.Instruction, _: list[ir.Operand]) -> Get:
        return lambda w: None

    def _getelementptr(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        base, *indices = operands
        type_, pointer = self.types.read(i.operands[0].type), self.get(base)
        steps: list[tuple[int, Type, Callable[[Any], int]]] = []
        fixed = 0
        for position, operand in enumerate(indices):
            index, number = self.get(operand), self.types.read(operand.type)
            if position and type_.kind == "struct":
                field_ = index(None)
                fixed, type_ = fixed + type_.offsets[field_], type_.parts[field_]
                continue
            if position:
                type_ = type_.parts[0]
            steps.append((type_.step, number, index))
        return lambda w: pointer(w) + fixed + sum(n * t.signed(index(w)) for n, t, index in steps)

    def _atomicrmw(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        pointer, value = map(self.get, operands)
        operation = i.text.replace(" volatile", "").split()[1]
        type_, update = self.types.read(i.type), functions.UPDATES[operation]
        read = type_.signed if operation in ("min", "max") else type_.fit
        return lambda w: self.update(w, type_, pointer(w), lambda old: update(read(old), read(value(w))))

    def _cmpxchg(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        type_, (pointer, expected, new) = self.types.read(operands[1].type), map(self.get, operands)

        def exchange(w: _Item) -> Any:
            old = self.exchange(w, type_, pointer(w), expected(w), new(w))
            return old, int(old == expected(w))

        return exchange

    def _br(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        targets = i.targets
        condition = self.get(operands[0]) if len(targets) == 2 else lambda w: 1

        def go(w: _Item) -> None:
            outcome = bool(condition(w))
            w.went_to = targets[0] if outcome else targets[-1]
            if i.branch is not None:
                self.trace.outcomes.setdefault(i.branch, {}).setdefault(w.group, []).append(outcome)

        return go

    def _switch(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        value, default, *cases = operands
        get = self.get(value)
        targets = {self.get(n)(None): t.value for n, t in zip(cases[::2], cases[1::2], strict=True)}

        def go(w: _Item) -> None:
            w.went_to = targets.get(get(w), default.value)

        return go

    def _unreachable(self, i: ir.Instruction, _: list[ir.Operand]) -> Get:
        def fail(w: _Item) -> None:
            raise AssertionError(f"{i.where}the kernel got where it says that it never gets")

        return fail

    def _ret(self, i: ir.Instruction, _: list[ir.Operand]) -> Get:
        def end(w: _Item) -> None:
            w.went_to = None

        return end

    # -- calls

    def _call(self, i: ir.Instruction, operands: tuple[ir.Operand, ...]) -> Get:
        name, *_ = i.callee.removeprefix("llvm.").partition(".")
        if i.callee.startswith("llvm."):
            return self._intrinsic(i, operands, name)
        if i.callee.startswith("__to_"):
            space, pointer = i.callee.removeprefix("__to_"), self.get(operands[0])
            return lambda w: at if self.spaces[(at := pointer(w)) >> _MEMORY] == space else 0
        declaration = parse(i.callee)
        assert declaration is not None, i.callee
        name = declaration.name
        gets = [self.get(operand) for operand in operands]
        if name in ("barrier", "work_group_barrier"):
            return lambda w: "barrier"
        if name.endswith("mem_fence") or name in ("atomic_work_item_fence", "prefetch"):
            return lambda w: None
        if name == "get_work_dim":
            return lambda w: len(self.launch.global_size)
        if name == "get_local_linear_id":
            return lambda w: w.item
        if name == "get_global_linear_id":
            return _global_linear_id
        if name.startswith("get_"):
            beyond = int("size" in name or name == "get_num_groups")
            return lambda w: w.ids[name][d] if (d := gets[0](w)) < 3 else beyond
        signs = [SCALARS[t.base].kind == "i" for t in declaration.parameters if t.base in SCALARS]
        if match := re.fullmatch(r"v(load|store)(\d*)", name):
            pointed = self.types.read(i.type if match[1] == "load" else operands[0].type)
            step = len(pointed.parts) * pointed.scalar.step
            exact = Type("vector", step, 1, 0, pointed.parts, pointed.offsets)
            *value, index, pointer = gets
            if not value:
                return lambda w: self.load(w, exact, pointer(w) + index(w) * step)
            return lambda w: self.store(w, exact, pointer(w) + index(w) * step, value[0](w))
        if match := re.fullmatch(r"atom(?:ic)?_(?:fetch_)?(\w+?)(_explicit)?", name):
            return self._atomic(match[1], i, operands, signed=signs[0])
        from_ = self.types.read(operands[0].type).scalar
        make = functions.real_function if from_.kind == "real" else None
        function = make(name, from_) if make else functions.integer_function(name, from_, signs[0])
        return self.apply(i, operands, function, [bool(sign and not make) for sign in signs])

    def _intrinsic(self, i: ir.Instruction, operands: tuple[ir.Operand, ...], name: str) -> Get:
        gets = [self.get(operand) for operand in operands]
        if name in ("memcpy", "memmove"):
            return lambda w: self.copy(w, *(get(w) for get in gets[:3]))
        if name == "memset":
            return lambda w: self.fill(w, *(get(w) for get in gets[:3]))
        if i.type == "void":
            return lambda w: None
        if i.callee.startswith("llvm.vector.reduce."):
            type_, fold = self.types.read(i.type), functions.UPDATES[i.callee.split(".")[3]]
            return lambda w: type_.fit(_folded(fold, gets[0](w)))
        type_ = self.types.read(i.type).scalar
        if type_.kind == "real":
            return self.apply(i, operands, functions.real_function(name, type_), [False] * len(operands))
        saturating = f"{name}.sat" if ".sat." in i.callee else name
        signed = name.startswith("s") or name == "abs"
        function = functions.integer_function(saturating, type_, signed)
        flags = name in ("abs", "ctlz", "cttz")
        return self.apply(i, operands[:1] if flags else operands, function, [signed] * len(operands))

    def _atomic(self, name: str, i: ir.Instruction, operands: tuple[ir.Operand, ...], *, signed: bool) -> Get:
        """An `atomic_` builtin, of OpenCL C 1.x or of C11's without its memory orders."""
        pointer, *gets = [self.get(operand) for operand in operands]
        type_ = self.types.read(operands[1].type if i.type == "void" else i.type)
        if name == "load":
            return lambda w: self.load(w, type_, pointer(w))
        if name in ("store", "init"):
            return lambda w: self.store(w, type_, pointer(w), gets[0](w))
        if name == "cmpxchg":
            expected, new = gets
            return lambda w: self.exchange(w, type_, pointer(w), expected(w), new(w))
        update = functions.UPDATES[{"exchange": "xchg"}.get(name, name)]
        read = type_.signed if signed and name in ("min", "max") else type_.fit
        count = 0 if name in ("inc", "dec") else 1
        return lambda w: self.update(
            w, type_, pointer(w), lambda old: update(read(old), *(read(get(w)) for get in gets[:count]))
        )


def _global_linear_id(w: _Item) -> int:
    x, y, z = (
        at - begin for at, begin in zip(w.ids["get_global_id"], w.ids["get_global_offset"], strict=True)
    )
    width, height, _ = w.ids["get_global_size"]
    return (z * height + y) * width + x


def _space(type_: str) -> int:
    match = re.search(r"addrspace\((\d+)\)", type_)
    return int(match[1]) if match else 0


def _indices(text: str) -> list[str]:
    match = re.search(r"((?:, \d+)+)$", text)
    return match[1].split(", ")[1:] if match else []


def _folded(function: Callable[..., Any], lanes: tuple[Any, ...]) -> Any:
    first, *others = lanes
    for lane in others:
        first = function(first, lane)
    return first
