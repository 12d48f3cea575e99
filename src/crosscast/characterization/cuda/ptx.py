"""Inline PTX as C++: each ``asm`` statement of a preprocessed source becomes expressions of the same meaning.

Instructions that are not known here stay, alone in an ``asm`` that the engine refuses by line and name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_ASM = re.compile(
    r"^#.*|\b(?:__asm__|__asm|asm)\b(?:\s*(?:volatile|__volatile__|__volatile)\b)?\s*\(", re.MULTILINE
)
_LITERAL = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"{_LITERAL}|'(?:[^'\\]|\\.)*'|[()\[\]{{}}:,]|[^\"'()\[\]{{}}:,]+")
_OPERAND = re.compile(r'\s*(?:\[\s*(\w+)\s*\]\s*)?"([=+]?)&?([hrlfdn])"\s*\((.*)\)\s*', re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@(!?)(\w+) )?([a-z]\w*(?:[.:]+\w+)*) ?(.*)")
_PARTS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_ADDRESS = re.compile(r"\[ ?(\w+) ?(?:\+ ?(-?\w+) ?)?\]")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?)U?")

_U, _L = "unsigned", "unsigned long"
_INTEGERS = {8: ("unsigned char", "signed char"), 16: ("unsigned short", "short")}
_INTEGERS |= {32: (_U, "int"), 64: (_L, "long")}
_TYPES = {f"{kind}{bits}": pair[kind == "s"] for bits, pair in _INTEGERS.items() for kind in "ubs"}
_TYPES |= {"pred": "bool", "f16": "__half", "f16x2": "__half2", "f32": "float", "f64": "double"}
_REALS = {"__half": 16, "__half2": 32, "float": 32, "double": 64}
_BITS = {"bool": 1, **_REALS, **{type_: bits for bits, pair in _INTEGERS.items() for type_ in pair}}
_UNSIGNED = {signed: unsigned for unsigned, signed in _INTEGERS.values()}
_CONSTRAINTS = {"h": "unsigned short", "r": _U, "l": _L, "f": "float", "d": "double", "n": "auto"}
# What says nothing of the result here: order and scope of memory, hints of caches, roundings that are ours.
_IGNORED = re.compile(
    r"volatile|relaxed|acquire|release|acq_rel|weak|sc|cta|gpu|gl|sys|global|generic|nc|c[agsv]|lu|w[bt]|rn|ftz"
    r"|approx|full|noftz|aligned|shared|shared::cta|L[12](?:::(?!cache_hint)\w+)?"
)
_SIZES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_SPECIAL = {f"%{name}.{d}": f"{ours}.{d}" for name, ours in _SIZES.items() for d in "xyz"}
_SPECIAL |= dict.fromkeys(("%clock", "%clock64", "%globaltimer"), "cc_refused_clock()")
_SPECIAL |= {"%laneid": "__lane_id()", "%warpid": "cc_thread_rank() / warpSize"}
_SPECIAL |= {"%lanemask_eq": "1u << __lane_id()", "%lanemask_lt": "(1u << __lane_id()) - 1"}
_SPECIAL |= {"%lanemask_le": "(2u << __lane_id()) - 1", "%lanemask_gt": "-2u << __lane_id()"}
_SPECIAL |= {"%lanemask_ge": "-1u << __lane_id()"}


def _table(text: str) -> dict[str, str]:
    rows = (row.partition(":") for row in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in rows}


# What instructions without the suffix of their types give: {0}, {1}, ... are sources, {T} their type, {U} its
# unsigned one.
_VALUES = _table(
    "mov: {0}; cvta: {0}; cvta.to: {0}; not: ({T})~{0}; neg: ({T})-({U}){0}; abs: abs({0}); "
    "selp: {2} ? {0} : {1}; add: ({U}){0} + ({U}){1}; sub: ({U}){0} - ({U}){1}; "
    "mul.lo: ({U}){0} * ({U}){1}; mul.hi: mul_hi({0}, {1}); mad.lo: ({U}){0} * ({U}){1} + ({U}){2}; "
    "mad.hi: ({U})mul_hi({0}, {1}) + ({U}){2}; div: {0} / {1}; rem: {0} % {1}; min: min({0}, {1}); "
    "max: max({0}, {1}); and: {0} & {1}; or: {0} | {1}; xor: {0} ^ {1}; shl: cc_shifted_left({0}, {1}); "
    "shr: cc_shifted_right({0}, {1}); bfe: cc_field({0}, {1}, {2}); bfi: cc_with_field({0}, {1}, {2}, {3}); "
    "lop3: cc_logic({0}, {1}, {2}, {3}); prmt: __byte_perm({0}, {1}, {2}); "
    "shf.l.wrap: __funnelshift_l({0}, {1}, {2}); shf.r.wrap: __funnelshift_r({0}, {1}, {2}); "
    "popc: popcount({0}); shf.l.clamp: __funnelshift_lc({0}, {1}, {2}); "
    "shf.r.clamp: __funnelshift_rc({0}, {1}, {2}); clz: cc_zeros({0}); "
    "bfind: 8 * sizeof({T}) - 1 - cc_zeros({0}); vote.sync.ballot: __ballot_sync({1}, {0}); "
    "shfl.sync.idx: __shfl_sync({3}, {0}, {1}); shfl.sync.up: __shfl_up_sync({3}, {0}, {1}); "
    "shfl.sync.down: __shfl_down_sync({3}, {0}, {1}); shfl.sync.bfly: __shfl_xor_sync({3}, {0}, {1})"
)
_OF_REALS = _table(
    "mov: {0}; neg: -{0}; abs: fabs({0}); add: {0} + {1}; sub: {0} - {1}; mul: {0} * {1}; "
    "fma: fma({0}, {1}, {2}); div: {0} / {1}; rcp: ({T})1 / {0}; min: fmin({0}, {1}); max: fmax({0}, {1}); "
    "div.approx: native_divide({0}, {1}); rcp.approx: native_divide(1, {0}); sqrt: sqrt({0}); "
    "rsqrt: rsqrt({0}); sin: __sinf({0}); cos: __cosf({0}); ex2: native_exp2({0}); lg2: __log2f({0}); "
    "tanh: tanh({0}); selp: {2} ? {0} : {1}"
)
_OF_PAIRS = _table("mov: {0}; add: {0} + {1}; sub: {0} - {1}; mul: {0} * {1}; fma: __hfma2({0}, {1}, {2})")
_OF_FLAGS = {name: _VALUES[name] for name in ("mov", "and", "or", "xor")} | {"not": "!{0}"}
_COMPARED = _table("eq: ==; ne: !=; lt: <; le: <=; gt: >; ge: >=; lo: <; ls: <=; hi: >; hs: >=")
_ROUNDED = _table("rzi: rz; rni: rn; rmi: rd; rpi: ru")
# Sources of another type than the others, by their position: counts, masks, conditions.
_OTHER = {"shl": {1: _U}, "shr": {1: _U}, "bfe": {1: _U, 2: _U}, "bfi": {2: _U, 3: _U}, "selp": {2: "bool"}}
_OTHER |= {"vote": {0: "bool", 1: _U}, "shfl": {1: _U, 2: _U, 3: _U}}
_EFFECTS = _table(
    "membar: __threadfence(); fence: __threadfence(); trap: __trap(); bar.warp.sync: __syncwarp({0}); "
    "prefetch:; bar.sync: __syncthreads(); barrier.sync: __syncthreads(); "
    "cp.async.commit_group: __pipeline_commit(); cp.async.wait_group: __pipeline_wait_prior({0}); "
    "cp.async.wait_all: __pipeline_wait_prior(0); prefetchu:"
)
_ATOMICS = {name: f"atomic{name.capitalize()}" for name in "add min max inc dec and or xor exch".split()}
_ATOMICS["cas"] = "atomicCAS"


class _UnknownError(Exception):
    """An instruction has no translation; says which."""


def translate(text: str) -> str:
    """Return a preprocessed source with its inline PTX as C++, line by line."""
    parts, last = [], 0
    for found in _ASM.finditer(text):
        if found.start() < last or found[0].startswith("#"):
            continue
        sections, end = _sections(text, found.end())
        if len(sections) == 1 and sections[0][0].strip('" ') and ";" not in sections[0][0]:
            continue  # the name of a symbol
        rest = text[found.start() : end].split("\n")[1:]
        lines = [_statement(sections), *(line if line.startswith("# ") else "" for line in rest)]
        parts += [text[last : found.start()], "\n".join(lines)]
        last = end
    return "".join([*parts, text[last:]])


def _sections(text: str, start: int) -> tuple[list[list[str]], int]:
    """Return the parts of an ``asm`` between colons, each split at its commas, and where it ends."""
    sections, depth, position = [[""]], 1, start
    while depth and (token := _TOKEN.match(text, position)):
        position = token.end()
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if depth == 1 and token[0] == ":":
            sections.append([""])
        elif depth == 1 and token[0] == ",":
            sections[-1].append("")
        elif depth:
            sections[-1][-1] += re.sub(r"\n(?:# .*)?", " ", token[0])
    return sections, position


def _statement(sections: list[list[str]]) -> str:
    body = "".join(literal[1:-1] for literal in re.findall(_LITERAL, ",".join(sections[0])))
    body = re.sub(r"\\[trv]", " ", body.replace("\\n", "\n")).replace("%%", "%")
    operands = [operand for section in sections[1:3] for operand in section if operand.strip()]
    try:
        return _Block().of(re.sub(r"//.*|/\*.*?\*/", "", body), operands)
    except _UnknownError as error:
        return f'asm volatile("{error}")'


@dataclass
class _Block:
    """What becomes of one ``asm``: a block of C++ with a variable for each register and operand."""

    types: dict[str, str] = field(default_factory=dict)  # C++ type of each register; "auto" is a constant
    lines: list[str] = field(default_factory=list)
    carries: bool = False  # Whether an instruction has left its carry

    def of(self, body: str, operands: Sequence[str]) -> str:
        stores = []
        for number, operand in enumerate(operands):
            if not (given := _OPERAND.fullmatch(operand)):
                raise _UnknownError(operand.strip().split("(")[0].replace('"', ""))
            name, mode, constraint, value = given.groups()
            register = f"cc_{number}"
            body = re.sub(rf"%{number}(?!\d)|%\[{name}\]", register, body)
            type_ = self.types[register] = _CONSTRAINTS[constraint]
            if not mode:
                is_any = constraint in "ln"  # a pointer stays one
                self.lines.append(
                    f"{'auto' if is_any else type_} {register} = {'' if is_any else f'({type_})'}({value});"
                )
                continue
            self.lines.append(f"{type_} {register}{f' = ({type_})({value})' if mode == '+' else ''};")
            stores.append(f"({value}) = (__typeof__({value})){register};")
        for text in body.split(";"):
            if text := " ".join(text.split()).lstrip("{} "):
                self._add(text)
        first = "bool cc_carry; " if self.carries else ""
        return f"({{ {first}{' '.join([*self.lines, *stores])} }})"

    def _add(self, text: str) -> None:
        if register := re.fullmatch(r"\.reg \.(\w+) (.*)", text):
            for name, count in re.findall(r"(\w+)(?:<(\d+)>)?", register[2]):
                for one in [f"{name}{k}" for k in range(int(count))] if count else [name]:
                    self.types[one] = _TYPES.get(register[1], "")
                    self.lines.append(f"{self.types[one]} {one};")
            return
        if not (found := _INSTRUCTION.fullmatch(text)):
            raise _UnknownError(text.split(" ")[0].replace('"', ""))
        negated, predicate, opcode, rest = found.groups()
        try:
            done = self._meaning(opcode, [part.strip() for part in _PARTS.findall(rest)])
            if predicate:
                done = f"if ({negated}{self._value(predicate, 'bool')}) {{ {done} }}"
        except (_UnknownError, KeyError, ValueError, IndexError) as error:
            raise _UnknownError(opcode) from error
        self.lines.append(done)

    def _meaning(self, opcode: str, operands: list[str]) -> str:
        """Return the statements of an instruction."""
        base, *given = opcode.split(".")
        types = [_TYPES[word] for word in given if word in _TYPES]
        rest = [w for w in given if w not in _TYPES and not _IGNORED.fullmatch(w)]
        key, type_ = ".".join([base, *rest]), types[-1] if types else ""
        if key in _EFFECTS:
            if key in ("bar.sync", "barrier.sync") and operands != ["0"]:
                raise _UnknownError  # a barrier of some threads
            return _EFFECTS[key].format(*(self._value(o, _U) for o in operands if o[0] != "[")) + ";"
        if key == "cp.async":
            to, of, size, kept = (*operands, operands[2])[:4]
            size, kept = self._value(size, _U), self._value(kept, _U)
            places = f"{self._pointer(to, 'void')}, {self._pointer(of, 'void')}"
            return f"__pipeline_memcpy_async({places}, {size}, {size} - {kept});"
        if base in ("ld", "st"):
            return self._access(base, given, rest, type_, operands)
        if base in ("red", "atom"):
            to, *values = operands if base == "red" else operands[1:]
            values = [self._value(value, type_) for value in values]
            call = f"{_ATOMICS['.'.join(rest)]}({', '.join([self._pointer(to, type_), *values])})"
            return f"{call};" if base == "red" else self._set(operands[0], call, type_)
        if "cc" in rest or base in ("addc", "subc", "madc"):
            return self._with_carry(base, rest, type_, operands)
        target, *sources = operands
        if key == "mov" and "{" in f"{target}{sources[0]}":
            return self._repack(target, sources[0], type_)
        if base == "cvt":
            to, of = types
            return self._set(target, self._converted(rest, to, of, sources[0]), to, wider=True)
        if base == "setp":
            first, second = (self._value(source, type_) for source in sources)
            return self._set(target, f"{first} {_COMPARED['.'.join(rest)]} {second}", "bool")
        if base == "shfl" and int(sources[2], 0) != (0 if "up" in rest else 31):
            raise _UnknownError  # parts of a warp
        other, result = _OTHER.get(base, {}), type_
        if key in ("mul.wide", "mad.wide"):
            bits = 2 * _BITS[type_]
            result = _INTEGERS[bits][type_ in _UNSIGNED]
            text, other = f"({result}){{0}} * ({result}){{1}}" + " + {2}" * (base == "mad"), {2: result}
        else:
            others = _OF_REALS if type_ in _REALS else _VALUES
            table = {"bool": _OF_FLAGS, "__half2": _OF_PAIRS}.get(type_, others)
            is_fast = f"{key}.approx" in table and not {"approx", "full"}.isdisjoint(given)
            text = table[f"{key}.approx" if is_fast else key]
        if base in ("popc", "clz", "bfind", "vote"):
            result = _U
        values = [self._value(source, other.get(n, type_)) for n, source in enumerate(sources)]
        return self._set(target, text.format(*values, T=type_, U=_UNSIGNED.get(type_, type_)), result)

    def _value(self, text: str, type_: str) -> str:
        """Return a source as a value of a type: a register's bits, if it is an integer or real unlike it."""
        if real := re.fullmatch(r"0[fFdD]([0-9a-fA-F]+)", text):
            return f"__builtin_bit_cast({type_}, ({_INTEGERS[_BITS[type_]][0]})0x{real[1]}u)"
        if text in _SPECIAL or _NUMBER.fullmatch(text):
            return f"({type_})({_SPECIAL.get(text, text)})"
        register = self.types[text]
        if (register == "bool") != (type_ == "bool"):
            raise _UnknownError
        if register in ("auto", type_) or {register, type_}.isdisjoint(_REALS):
            return f"({type_}){text}"
        if _BITS[register] != _BITS[type_]:
            raise _UnknownError
        word = _INTEGERS[_BITS[type_]][0]
        return f"({type_})__builtin_bit_cast({word if type_ not in _REALS else type_}, {text})"

    def _set(self, register: str, value: str, type_: str, *, wider: bool = False) -> str:
        """Return the assignment of a value of a type to a register."""
        held = self.types[register]
        fits = _BITS[held] > _BITS[type_] if wider and {held, type_}.isdisjoint(_REALS) else False
        if not fits and _BITS[held] != _BITS[type_]:
            raise _UnknownError
        if held == type_ or {held, type_}.isdisjoint(_REALS):
            return f"{register} = ({type_})({value});"
        return f"{register} = __builtin_bit_cast({held}, ({type_})({value}));"

    def _pointer(self, address: str, type_: str) -> str:
        """Return an address as a pointer; one of 32 bits is of shared memory."""
        if not (found := _ADDRESS.fullmatch(address)):
            raise _UnknownError
        offset = f" + {self._value(found[2], 'long')}" if found[2] else ""
        is_short = _BITS[self.types[found[1]]] == 32
        return f"({type_} *)({f'cc_shared({found[1]})' if is_short else f'(char *){found[1]}'}{offset})"

    def _access(self, base: str, given: list[str], rest: list[str], type_: str, operands: list[str]) -> str:
        address, registers = operands if base == "st" else reversed(operands)
        names = [name.strip() for name in registers.strip("{}").split(",")]
        vectors = [word for word in rest if word in ("v2", "v4")]
        if rest != vectors or (len(names) > 1) != bool(vectors):
            raise _UnknownError
        held = type_.replace("unsigned ", "u").replace("unsigned", "uint").removeprefix("signed ")
        held = f"{held}{vectors[0][1]}" if vectors else type_
        if not vectors and not {"volatile", "relaxed", "acquire", "release"}.isdisjoint(given):
            held = f"volatile {held}"
        if base == "st":
            values = ", ".join(self._value(name, type_) for name in names)
            return f"*{self._pointer(address, held)} = {f'{held}{{{values}}}' if vectors else values};"
        parts = [f"cc_loaded.{part}" for part in "xyzw"] if vectors else ["cc_loaded"]
        sets = " ".join(self._set(n, p, type_, wider=True) for n, p in zip(names, parts, strict=False))
        return f"{{ auto cc_loaded = *{self._pointer(address, held)}; {sets} }}"

    def _with_carry(self, base: str, rest: list[str], type_: str, operands: list[str]) -> str:
        target, first, second, *third = operands
        takes = base.endswith("c")
        if (takes and not self.carries) or type_ in _REALS:
            raise _UnknownError  # a carry of another asm
        word = _UNSIGNED.get(type_, type_)
        x, y = self._value(first, word), self._value(second, word)
        if third:
            x, y = f"{x} * {y}" if "lo" in rest else f"mul_hi({x}, {y})", self._value(third[0], word)
        self.carries |= "cc" in rest
        to = "&cc_carry" if "cc" in rest else "nullptr"
        name = "cc_less" if base.startswith("sub") else "cc_more"
        return self._set(target, f"{name}({x}, {y}, {'cc_carry' if takes else 'false'}, {to})", word)

    def _repack(self, target: str, source: str, type_: str) -> str:
        """Return the move of a word's two halves from, or to, registers."""
        half = _INTEGERS[_BITS[type_] // 2][0]
        low, high = (part.strip() for part in (source + target).split("{")[1].split("}")[0].split(","))
        if source.startswith("{"):
            parts = f"{self._value(low, half)} | ({type_}){self._value(high, half)} << {_BITS[half]}"
            return self._set(target, parts, type_)
        value = self._value(source, type_)
        return self._set(low, value, half) + " " + self._set(high, f"{value} >> {_BITS[half]}", half)

    def _converted(self, rest: list[str], to: str, of: str, source: str) -> str:
        value = self._value(source, of)
        if of in _REALS and to not in _REALS:
            name = {"int": "int", _U: "uint", "long": "ll", _L: "ull"}[to]
            return f"__{of}2{name}_{_ROUNDED['.'.join(rest)]}({value})"
        if rest:
            raise _UnknownError
        return f"({to}){value}"
