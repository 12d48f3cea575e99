"""LLVM IR of a program as data that can be rewritten: functions, blocks, instructions as text.

LLVM parses and checks the IR and prints it in one canonical form (in a child process, see `engine/llvm.py`),
but llvmlite cannot insert instructions; so the canonical text is read here, in step with a walk by LLVM,
which gives the opcode and the type of every instruction. All instrumentation works on these classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LOCAL = re.compile(r'%(?:"[^"]*"|[-a-zA-Z$._0-9]+)')
_LABEL = re.compile(r'^("[^"]*"|[-a-zA-Z$._0-9]+):')
_TARGET = re.compile(r"label (" + LOCAL.pattern + r")")
_INCOMING = re.compile(r"\[ (.*?), (" + LOCAL.pattern + r") \]")
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True)
class Operand:
    """A value that an instruction takes, or an argument of a call."""

    type: str  # LLVM type, without attributes
    value: str  # Local or global name, constant or constant expression; empty for a type alone

    @classmethod
    def parse(cls, text: str) -> Operand:
        """Read ``<type> <attributes> <value> <ordering>``, of which only the type must be there."""
        words = split_top_level(text, " ")
        while len(words) > 1 and (words[-1] in _ORDERINGS or words[-1].startswith("syncscope(")):
            words.pop()
        while len(words) > 1 and words[0] in _QUALIFIERS:
            del words[0]
        spaced = len(words) > 1 and words[0] == "ptr" and words[1].startswith("addrspace(")
        type_ = " ".join(words[: 1 + spaced])
        return cls(type_, split_typed(" ".join(words))[1] if len(words) > 1 + spaced else "")


@dataclass
class Instruction:
    """One instruction."""

    text: str  # What follows `%result =`; empty where it counts but nothing is left to execute
    opcode: str  # LLVM's name of the operation
    type: str = "void"  # LLVM type of the result (`void` if none)
    result: str | None = None  # Name of the result with its `%`, or `None`
    width: int = 1  # Elements of the result: 1 for scalars, pointers and void
    line: int = 0  # Source line, 0 if unknown
    counted: bool = True  # Whether the program's author wrote it: rewriting adds uncounted ones
    branch: int | None = None  # Number of the static conditional branch, for one
    # (value, label) pairs of a phi, each label once, even where a switch goes there several times
    incoming: list[tuple[str, str]] = field(default_factory=list)
    # What it accesses outside private memory, filled in by the instrumentation
    accesses: list[Any] = field(default_factory=list)

    @property
    def where(self) -> str:
        """Start of a message about it: its line, if the program says which."""
        return f"line {self.line}: " if self.line else ""

    @property
    def successors(self) -> list[str]:
        """Labels a terminator can go to, without repetition, in order."""
        return list(dict.fromkeys(_TARGET.findall(self.text)))

    def uses(self) -> set[str]:
        """Local values it reads, those of a phi aside."""
        return set(LOCAL.findall(_TARGET.sub("", self.text)))

    def operands(self) -> list[Operand]:
        """What a load, store, atomic, ``getelementptr``, ``select``, cast or ``freeze`` is given, in order.

        A load and a ``getelementptr`` begin with a type alone.
        """
        text = self.text.split(" ", 1)[1]
        if self.opcode in ("addrspacecast", "bitcast"):
            text = text.rsplit(" to ", 1)[0]
        elif self.opcode == "atomicrmw":
            text = text.removeprefix("volatile ").split(" ", 1)[1]  # the operation
        elif self.opcode == "cmpxchg":
            text = text.removeprefix("weak ")
        elif self.opcode == "getelementptr":
            text = _FLAGS.sub("", text)
        parts = split_top_level(text)
        return [Operand.parse(part) for part in parts if not part.startswith(("align ", "!"))]

    def edges_to(self, label: str) -> int:
        """How many times a terminator names a label: a switch may go there in several cases."""
        return _TARGET.findall(self.text).count(label)

    def retarget(self, old: str, new: str) -> None:
        """Let a terminator go to `new` wherever it went to `old`."""
        self.text = _TARGET.sub(lambda m: f"label {new}" if m[1] == old else m[0], self.text)

    def render(self) -> str:
        """Text of the whole instruction, which is no phi."""
        return f"  {self.result} = {self.text}" if self.result else f"  {self.text}"


@dataclass
class Block:
    """A basic block; its last instruction is the terminator."""

    label: str
    instructions: list[Instruction]

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]

    def phis(self) -> Iterator[Instruction]:
        """Its phi instructions."""
        for instruction in self.instructions:
            if instruction.opcode != "phi":
                return
            yield instruction


def render_phi(phi: Instruction, label: str, blocks: Mapping[str, Block]) -> str:
    """Text of a phi in the block of that label, with a value for every edge that leads there."""
    edges = [
        f"[ {value}, {source} ]"
        for value, source in phi.incoming
        for _ in range(blocks[source].terminator.edges_to(label))
    ]
    return f"  {phi.result} = {phi.text} {', '.join(edges)}"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: its type, its attributes, its name with ``%``."""

    type: str
    attributes: str
    name: str


@dataclass
class Function:
    """A defined function."""

    name: str
    result_type: str
    parameters: list[Parameter]
    blocks: dict[str, Block]
    is_kernel: bool
    line: int
    metadata: dict[str, list[str]]

    @property
    def entry(self) -> Block:
        """The block where it starts."""
        return next(iter(self.blocks.values()))

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, block by block."""
        for block in self.blocks.values():
            yield from block.instructions


@dataclass(frozen=True)
class GlobalVariable:
    """A module-level variable: name with ``@``, address space, whole definition, size in bytes."""

    name: str
    address_space: int
    text: str
    nbytes: int


@dataclass
class Module:
    """A program's IR."""

    functions: dict[str, Function]  # Defined functions by name
    declared: dict[str, str]  # Declaration lines of undefined functions by name
    globals: dict[str, GlobalVariable]  # Module-level variables by name with `@`
    types: list[str]  # Definitions of named types
    # Size and alignment in bytes of each type that an instruction or parameter has
    sizes: dict[str, tuple[int, int]]
    branches: list[tuple[str, int]]  # (function, source line) of every static conditional branch, by number

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels."""
        return [f.name for f in self.functions.values() if f.is_kernel]


def added(text: str) -> Instruction:
    """Return an instruction that instrumentation adds; its text may begin with the name of a result."""
    return Instruction(text, "cc", counted=False)


def substitute(text: str, mapping: Callable[[str], str]) -> str:
    """Replace each local name in `text` by what `mapping` gives for it."""
    return LOCAL.sub(lambda match: mapping(match[0]), text)


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """Split at the separators that are outside all brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for position, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def split_typed(text: str) -> tuple[str, str]:
    """Split ``<type and attributes> <value>``, such as an operand or an argument of a call.

    A constant expression or ``splat`` is one value: its keyword and all that follows.
    """
    words = split_top_level(text, " ")
    last = len(words) - 1
    if words[last].startswith("("):
        while last > 1 and words[last] not in _CONSTANT_WORDS:
            last -= 1
    return " ".join(words[:last]), " ".join(words[last:])


_ORDERINGS = frozenset("unordered monotonic acquire release acq_rel seq_cst".split())
_QUALIFIERS = frozenset("atomic volatile".split())
_FLAGS = re.compile(r"^(?:(?:inbounds|nuw|nusw|inrange\([^)]*\)) )+")
_CONSTANT_WORDS = frozenset(
    "getelementptr bitcast inttoptr ptrtoint addrspacecast trunc splat add sub xor "
    "blockaddress extractelement insertelement shufflevector ptrtoaddr".split()
)

_ATTACHMENT = re.compile(r",? ![\w.]+ !\d+|,? ![\w.]+ !\{\}")
_DBG = re.compile(r"!dbg !(\d+)")
_FUNCTION_NAME = re.compile(r'@("[^"]*"|[-a-zA-Z$._0-9]+)\(')
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Location|Subprogram)\((.*)\)$", re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_NUMBERED = re.compile(r"%(\d+)\b")
_MARKERS = re.compile(r"@llvm\.(dbg\.|lifetime\.)")


def _named(text: str) -> str:
    """Give numbered values names, so that adding and dropping instructions never renumbers."""
    return _NUMBERED.sub(r"%..\1", text)


@dataclass(frozen=True)
class Parsed:
    """What LLVM says of a module that it parsed and verified."""

    text: str  # The module in LLVM's canonical form
    triple: str  # What target it is for
    # Types of the parameters, and (opcode, type) of the instructions of each block, by name of the function
    functions: dict[str, tuple[list[str], list[list[tuple[str, str]]]]]
    sizes: dict[str, tuple[int, int]]  # Size and alignment in bytes of those types and the named structures
    variables: dict[str, int]  # Sizes in bytes by name

    @classmethod
    def from_json(cls, text: str, found: dict[str, Any]) -> Parsed:
        """Read what `llvm_worker.py` wrote."""
        sizes = {name: (size, alignment) for name, (size, alignment) in found["sizes"].items()}
        for name, (size, alignment) in found["structures"].items():
            sizes[f"%{name}"] = sizes[f'%"{name}"'] = (size, alignment)
        return cls(text, found["triple"], found["functions"], sizes, found["variables"])


def symbol(name: str) -> str:
    """The symbol that a name in the text stands for: without its ``@``, quotes and hexadecimal numbers."""
    name = name.removeprefix("@").strip('"')
    if "\\" not in name:
        return name
    content = re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), name.encode())
    return content.decode(errors="replace")


class _Reader:
    def __init__(self, parsed: Parsed) -> None:
        self.parsed, self.text = parsed, parsed.text
        self.branches: list[tuple[str, int]] = []
        self.lines = {
            number: int(line[1])
            for number, body in _LOCATION.findall(self.text)
            if (line := re.search(r"\bline: (\d+)", body))
        }
        self.nodes = dict(_NODE.findall(self.text))

    def read(self) -> Module:
        functions: dict[str, Function] = {}
        declared: dict[str, str] = {}
        types: list[str] = []
        rows = self.text.splitlines()
        position = 0
        while position < len(rows):
            row = rows[position]
            if row.startswith("define "):
                end = rows.index("}", position)
                function = self._function(row, rows[position + 1 : end])
                functions[function.name] = function
                position = end
            elif row.startswith("declare ") and (match := _FUNCTION_NAME.search(row)):
                declared[match[1].strip('"')] = re.sub(r" #\d+$|!dbg !\d+ ", "", row)
            elif row.startswith("%") and " = type " in row:
                types.append(row)
            position += 1
        return Module(functions, declared, self._globals(rows), types, self.parsed.sizes, self.branches)

    def _globals(self, rows: list[str]) -> dict[str, GlobalVariable]:
        definitions = {r.split(" = ", 1)[0]: r for r in rows if r.startswith("@")}
        names = {symbol(name): name for name in definitions}
        found = {}
        for bare, size in self.parsed.variables.items():
            name = names[bare]
            text = _ATTACHMENT.sub("", definitions[name])
            space = re.search(r"addrspace\((\d+)\)", text.split(" global ")[0].split(" constant ")[0])
            found[name] = GlobalVariable(name, int(space[1]) if space else 0, text, size)
        return found

    def _function(self, header: str, rows: list[str]) -> Function:
        match = _FUNCTION_NAME.search(header)
        assert match is not None
        name = match[1].strip('"')
        types, blocks = self.parsed.functions[symbol(name)]
        arguments, rest = bracketed(header, match.end() - 1)
        unnamed = 0
        parameters = []
        for text, type_ in zip(split_top_level(arguments), types, strict=True):
            words = split_top_level(text, " ")
            is_named = words[-1].startswith("%") and text != type_
            local = _named(words.pop()) if is_named else f"%..{unnamed}"
            unnamed += local == f"%..{unnamed}"
            parameters.append(Parameter(type_, " ".join(words)[len(type_) :].strip(), local))
        metadata = {
            key: [v.strip() for v in split_top_level(self.nodes.get(node, ""))]
            for key, node in re.findall(r"!(\w+) !(\d+)", rest)
        }
        dbg = _DBG.search(rest)
        before = header[: match.start()].split()
        return Function(
            name,
            _result_type(header[: match.start()]),
            parameters,
            self._blocks(name, rows, blocks, f"..{unnamed}"),
            "spir_kernel" in before,
            self.lines.get(dbg[1], 0) if dbg else 0,
            metadata,
        )

    def _blocks(
        self, function: str, rows: list[str], parsed: list[list[tuple[str, str]]], entry: str
    ) -> dict[str, Block]:
        pending = _statements(rows)
        blocks: dict[str, Block] = {}
        for index, parsed_block in enumerate(parsed):
            statement = next(pending)
            if label := _LABEL.match(statement):
                name = label[1] if not label[1].isdigit() else f"..{label[1]}"
                statement = next(pending)
            else:
                assert index == 0
                name = entry
            block = Block(f"%{name}", [])
            for position, (opcode, type_) in enumerate(parsed_block):
                if position:
                    statement = next(pending)
                block.instructions.append(self._instruction(function, statement, opcode, type_))
            blocks[block.label] = block
        return blocks

    def _instruction(self, function: str, statement: str, opcode: str, type_: str) -> Instruction:
        dbg = _DBG.search(statement)
        line = self.lines.get(dbg[1], 0) if dbg else 0
        text = _named(_ATTACHMENT.sub("", statement).strip())
        result = None
        if text.startswith("%"):
            result, text = text.split(" = ", 1)
        width = re.match(r"<(?:vscale x )?(\d+) x ", type_)
        made = Instruction(text, opcode, type_, result, int(width[1]) if width else 1, line)
        if made.opcode == "call":
            made.text = re.sub(r" #\d+(?=$| \[)", "", made.text)
            made.counted = not _MARKERS.search(made.text)
        elif made.opcode == "phi":
            made.incoming = list(dict.fromkeys(_INCOMING.findall(made.text)))
            made.text = f"phi {type_}"
        elif made.opcode == "br" and made.text.startswith("br i1 "):
            made.branch = len(self.branches)
            self.branches.append((function, line))
        return made


def bracketed(text: str, opening: int) -> tuple[str, str]:
    """Text inside the bracket that opens at `opening`, and what follows it."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return text[opening + 1 : position], text[position + 1 :]
    raise AssertionError(text)


_LINKAGE = frozenset(
    "define dso_local internal private weak weak_odr linkonce linkonce_odr external hidden protected "
    "spir_kernel spir_func local_unnamed_addr unnamed_addr noundef zeroext signext noalias nonnull "
    "available_externally fastcc inreg".split()
)


def _result_type(before_name: str) -> str:
    words = [w for w in split_top_level(before_name.strip(), " ") if w not in _LINKAGE]
    words = [w for w in words if not re.match(r"(range|align|dereferenceable|nofpclass)\b|\d+$", w)]
    return " ".join(words)


def _statements(rows: list[str]) -> Iterator[str]:
    """Labels and instructions of a function's body, one a string."""
    position = 0
    while position < len(rows):
        row = rows[position]
        position += 1
        bare = row.strip()
        if not bare or bare.startswith((";", "#dbg_")):
            continue
        if bare.startswith("switch ") and bare.endswith("["):
            while not rows[position].strip().startswith("]"):
                bare += " " + rows[position].strip()
                position += 1
            bare += " " + rows[position].strip()
            position += 1
        if not row.startswith(" "):
            bare = bare.split(" ;")[0].strip()
        yield bare


def read_module(parsed: Parsed) -> Module:
    """Read a module that LLVM parsed and verified."""
    return _Reader(parsed).read()


def copy_instruction(instruction: Instruction) -> Instruction:
    """Return a copy that shares nothing mutable."""
    return replace(instruction, incoming=list(instruction.incoming))


def enclosing(text: str, position: int) -> int:
    """Position of the parenthesis that encloses `position`, or -1."""
    depth = 0
    for at in range(position - 1, -1, -1):
        if text[at] == ")":
            depth += 1
        elif text[at] == "(":
            if depth == 0:
                return at
            depth -= 1
    return -1


def branch_targets(instruction: Instruction) -> list[str]:
    """Labels of a conditional branch: where it goes if true, and if false."""
    return _TARGET.findall(instruction.text)


def byval_type(parameter: Parameter) -> str:
    """Type that a by-value structure parameter points to; empty for other parameters."""
    match = re.search(r"\bbyval\((.*?)\)(?: |$)", parameter.attributes)
    return match[1] if match else ""
