"""Inline PTX as C++: each ``asm`` statement of a preprocessed source becomes expressions of the same meaning.

Instructions that are not known here stay, alone in an ``asm`` that the engine refuses by line and name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from crosscast.characterization.cuda.declarations import tokens_of

_ASM = re.compile(
    r"^#.*|\b(?:__asm__|__asm|asm)\b(?:\s*(?:volatile|__volatile__|__volatile)\b)?\s*\(", re.MULTILINE
)
_LITERAL = r'"(?:[^"\\]|\\.)*"'
_OPERAND = re.compile(r'\s*(?:\[\s*(\w+)\s*\]\s*)?"([=+]?)&?([hrlfdn])"\s*\((.*)\)\s*', re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@(!?)(\w+) )?([a-z]\w*(?:[.:]+\w+)*) ?(.*)")
_PARTS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_ADDRESS = re.compile(r"^\[ ?(\w+) ?(?:\+ ?(-?\w+) ?)?\]$")
_NUMBER = re.compile(r"^-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?)U?$")

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


# What instructions give, without the suffix of their types: {0} is a source, of the type {T}, {U0} one of its
# unsigned type {U}, {W0} one of twice the width, {u0} a count or mask and {p0} a condition.
_VALUES = _table(
    "mov: {0}; cvta: {0}; cvta.to: {0}; not: ({T})~{0}; neg: ({T})-{U0}; abs: ::abs({0}); "
    "selp: {p2} ? {0} : {1}; add: {U0} + {U1}; sub: {U0} - {U1}; mul.lo: {U0} * {U1}; "
    "mul.hi: ::mul_hi({0}, {1}); mul.wide: {W0} * {W1}; mad.lo: {U0} * {U1} + {U2}; "
    "mad.hi: ({U})::mul_hi({0}, {1}) + {U2}; mad.wide: {W0} * {W1} + {W2}; div: {0} / {1}; rem: {0} % {1}; "
    "min: ::min({0}, {1}); max: ::max({0}, {1}); and: {0} & {1}; or: {0} | {1}; xor: {0} ^ {1}; "
    "shl: cc_shifted_left({0}, {u1}); shr: cc_shifted_right({0}, {u1}); bfe: cc_field({0}, {u1}, {u2}); "
    "bfi: cc_with_field({0}, {1}, {u2}, {u3}); lop3: cc_logic({0}, {1}, {2}, {3}); "
    "prmt: __byte_perm({0}, {1}, {2}); shf.l.wrap: __funnelshift_l({0}, {1}, {u2}); "
    "shf.r.wrap: __funnelshift_r({0}, {1}, {u2}); shf.l.clamp: __funnelshift_lc({0}, {1}, {u2}); "
    "shf.r.clamp: __funnelshift_rc({0}, {1}, {u2}); popc: ::popcount({0}); clz: cc_zeros({0}); "
    "bfind: 8 * sizeof({T}) - 1 - cc_zeros({0}); vote.sync.ballot: __ballot_sync({u1}, {p0}); "
    "shfl.sync.idx: __shfl_sync({u3}, {0}, {u1}); shfl.sync.up: __shfl_up_sync({u3}, {0}, {u1}); "
    "shfl.sync.down: __shfl_down_sync({u3}, {0}, {u1}); shfl.sync.bfly: __shfl_xor_sync({u3}, {0}, {u1}); "
    "add.cc: cc_more<0, 1>({U0}, {U1}); addc.cc: cc_more<1, 1>({U0}, {U1}); "
    "addc: cc_more<1, 0>({U0}, {U1}); sub.cc: cc_less<0, 1>({U0}, {U1}); "
    "subc.cc: cc_less<1, 1>({U0}, {U1}); subc: cc_less<1, 0>({U0}, {U1}); "
    "mad.lo.cc: cc_more<0, 1>({U0} * {U1}, {U2}); mad.hi.cc: cc_more<0, 1>(::mul_hi({U0}, {U1}), {U2}); "
    "madc.lo.cc: cc_more<1, 1>({U0} * {U1}, {U2}); madc.hi.cc: cc_more<1, 1>(::mul_hi({U0}, {U1}), {U2}); "
    "madc.lo: cc_more<1, 0>({U0} * {U1}, {U2}); madc.hi: cc_more<1, 0>(::mul_hi({U0}, {U1}), {U2}); "
    "setp.eq: {0} == {1}; setp.ne: {0} != {1}; setp.lt: {0} < {1}; setp.le: {0} <= {1}; setp.gt: {0} > {1}; "
    "setp.ge: {0} >= {1}; setp.lo: {0} < {1}; setp.ls: {0} <= {1}; setp.hi: {0} > {1}; setp.hs: {0} >= {1}"
)
_OF_WORDS = _VALUES | _table(
    "vabsdiff4: __vabsdiffu4({0}, {1}); vabsdiff4.add: cc_vsadu4({0}, {1}, {2}); vadd4: __vadd4({0}, {1}); "
    "vsub4: __vsub4({0}, {1}); vmax4: __vmaxu4({0}, {1}); vmin4: __vminu4({0}, {1}); "
    "vavrg4: __vavgu4({0}, {1})"
)
_OF_REALS = _table(
    "mov: {0}; neg: -{0}; abs: ::fabs({0}); add: {0} + {1}; sub: {0} - {1}; mul: {0} * {1}; "
    "fma: ::fma({0}, {1}, {2}); div: {0} / {1}; rcp: ({T})1 / {0}; min: ::fmin({0}, {1}); "
    "max: ::fmax({0}, {1}); selp: {p2} ? {0} : {1}; div.approx: ::native_divide({0}, {1}); "
    "rcp.approx: ::native_divide(1, {0}); sqrt: ::sqrt({0}); rsqrt: ::rsqrt({0}); sin: __sinf({0}); "
    "cos: __cosf({0}); ex2: ::native_exp2({0}); lg2: __log2f({0}); tanh: ::tanh({0}); setp.eq: {0} == {1}; "
    "setp.lt: {0} < {1}; setp.le: {0} <= {1}; setp.gt: {0} > {1}; setp.ge: {0} >= {1}; setp.neu: {0} != {1}"
)
_OF_PAIRS = _table("mov: {0}; add: {0} + {1}; sub: {0} - {1}; mul: {0} * {1}; fma: __hfma2({0}, {1}, {2})")
_OF_FLAGS = {name: _VALUES[name] for name in ("mov", "and", "or", "xor")} | {"not": "!{0}"}
_ROUNDED = _table("rzi: rz; rni: rn; rmi: rd; rpi: ru")
_EFFECTS = _table(
    "membar: __threadfence(); fence: __threadfence(); trap: __trap(); bar.warp.sync: __syncwarp({0}); "
    "prefetch:; bar.sync: __syncthreads(); barrier.sync: __syncthreads(); "
    "cp.async.commit_group: __pipeline_commit(); cp.async.wait_group: __pipeline_wait_prior({0}); "
    "cp.async.wait_all: __pipeline_wait_prior(0); prefetchu:"
)
_ATOMICS = {name: f"atomic{name.capitalize()}" for name in "add min max inc dec and or xor exch".split()}
_ATOMICS["cas"] = "atomicCAS"


def translate(text: str) -> str:
    """Return a preprocessed source with its inline PTX as C++, line by line."""
    parts, last = [], 0
    for match in _ASM.finditer(text):
        if match.start() < last or match[0].startswith("#"):
            continue
        sections, end = _sections(text, match.end())
        if len(sections) == 1 and sections[0][0].strip('" ') and ";" not in sections[0][0]:
            continue  # the name of a symbol
        rest = text[match.start() : end].split("\n")[1:]
        lines = [_statement(sections), *(line if line.startswith("# ") else "" for line in rest)]
        parts += [text[last : match.start()], "\n".join(lines)]
        last = end
    return "".join([*parts, text[last:]])


def _sections(text: str, start: int) -> tuple[list[list[str]], int]:
    """Return the parts of an ``asm`` between colons, each split at its commas, and where it ends."""
    sections: list[list[str]] = [[]]
    depth, last = 1, start
    for token in tokens_of(text, start):
        depth += (token.text in "([{") - (token.text in ")]}")
        if not depth or (depth == 1 and token.text in (",", ":", "::")):
            sections[-1].append(re.sub(r"\n(?:# .*)?", " ", text[last : token.start]))
            last = token.end
            sections += [[""], []] if token.text == "::" else [[]] * (token.text == ":")
        if not depth:
            break
    return sections, last


def _statement(sections: list[list[str]]) -> str:
    body = "".join(literal[1:-1] for literal in re.findall(_LITERAL, ",".join(sections[0])))
    body = re.sub(r"\\[trv]", " ", body.replace("\\n", "\n")).replace("%%", "%")
    operands = [operand for section in sections[1:3] for operand in section if operand.strip()]
    try:
        return _Statement().of(re.sub(r"//.*|/\*.*?\*/", "", body), operands)
    except NotImplementedError as unknown:
        return f'asm volatile("{unknown}")'


@dataclass
class _Statement:
    """A block of C++ for an ``asm``, with a variable for each register and operand."""

    types: dict[str, str] = field(default_factory=dict)  # C++ type of each register
    lines: list[str] = field(default_factory=list)

    def of(self, body: str, operands: Sequence[str]) -> str:
        stores = []
        for number, operand in enumerate(operands):
            if not (given := _OPERAND.fullmatch(operand)):
                raise NotImplementedError(operand.strip().split("(")[0].replace('"', ""))
            name, mode, constraint, value = given.groups()
            register = f"cc_{number}"
            body = re.sub(rf"%{number}(?!\d)|%\[{name}\]", register, body)
            type_ = self.types[register] = _CONSTRAINTS[constraint]
            if mode:
                stores.append(f"({value}) = (__typeof__({value})){register};")
            declared = "auto" if constraint in "ln" and not mode else type_  # a pointer stays one
            start = "" if mode == "=" else f" = ({type_})({value})" if mode else f" = ({value})"
            self.lines.append(f"{declared} {register}{start};")
        for text in body.split(";"):
            if text := " ".join(text.split()).lstrip("{} "):
                self._add(text)
        return f"({{ {' '.join([*self.lines, *stores])} }})"

    def _add(self, text: str) -> None:
        if registers := re.fullmatch(r"\.reg \.(\w+) (.*)", text):
            for name, count in re.findall(r"(\w+)(?:<(\d+)>)?", registers[2]):
                for one in [f"{name}{k}" for k in range(int(count))] if count else [name]:
                    self.types[one] = _TYPES.get(registers[1], "?")
                    self.lines.append(f"{self.types[one]} {one};")
            return
        match = _INSTRUCTION.fullmatch(text)
        negated, predicate, opcode, rest = match.groups() if match else ("", "", text.split(" ")[0], "")
        try:
            done = self._meaning(opcode, [part.strip() for part in _PARTS.findall(rest)])
            condition = f"if ({negated}{self._value(predicate, 'bool')}) " if predicate else ""
        except (LookupError, ValueError) as error:
            raise NotImplementedError(opcode) from error
        self.lines.append(f"{condition}{{ {done} }}")

    def _meaning(self, opcode: str, operands: list[str]) -> str:
        """Return the statements of an instruction; a `LookupError` or `ValueError` if it is not known."""
        base, *given = opcode.split(".")
        types = [_TYPES[word] for word in given if word in _TYPES]
        rest = [word for word in given if word not in _TYPES and not _IGNORED.fullmatch(word)]
        key, type_ = ".".join([base, *rest]), types[-1] if types else ""
        if key in _EFFECTS:
            if key in ("bar.sync", "barrier.sync") and operands != ["0"]:
                raise ValueError  # a barrier of some threads
            return _EFFECTS[key].format(*(self._value(o, _U) for o in operands if o[0] != "[")) + ";"
        if key == "cp.async":
            to, of, size, kept = (*operands, operands[2])[:4]
            addresses = f"{self._pointer(to, 'void')}, {self._pointer(of, 'void')}, {self._value(size, _U)}"
            return f"__pipeline_memcpy_async({addresses}, {self._value(size, _U)} - {self._value(kept, _U)});"
        if base in ("ld", "st") or (key == "mov" and "{" in str(operands)):
            return self._move(base, given, rest, type_, operands)
        target, *sources = operands
        if base in ("red", "atom"):
            to, *values = operands if base == "red" else sources
            arguments = [self._pointer(to, type_), *(self._value(value, type_) for value in values)]
            call = f"{_ATOMICS['.'.join(rest)]}({', '.join(arguments)})"
            return f"{call};" if base == "red" else self._set(target, call, type_)
        if base == "cvt":
            to, of = types
            value = f"({to}){self._value(sources[0], of)}"
            if of in _REALS and to not in _REALS:
                name = {"int": "int", _U: "uint", "long": "ll", _L: "ull"}[to]
                value = f"__{of.strip('_')}2{name}_{_ROUNDED[rest.pop()]}({self._value(sources[0], of)})"
            if rest:
                raise ValueError
            return self._set(target, value, to, wider=True)
        if base == "shfl" and int(sources[2], 0) != (0 if "up" in rest else 31):
            raise ValueError  # parts of a warp
        table = _OF_REALS if type_ in _REALS else _VALUES
        table = {"bool": _OF_FLAGS, "__half2": _OF_PAIRS}.get(type_, table)
        if set(types) == {_U}:
            table = _OF_WORDS
        is_fast = f"{key}.approx" in table and not {"approx", "full"}.isdisjoint(given)
        kinds = {"": type_, "T": type_, "U": _UNSIGNED.get(type_, type_), "u": _U, "p": "bool"}
        result = {"popc": _U, "clz": _U, "bfind": _U, "vote": _U, "setp": "bool"}.get(base, type_)
        if "wide" in rest:
            kinds["W"] = result = _INTEGERS[2 * _BITS[type_]][type_ in _UNSIGNED]

        def fill(name: re.Match[str]) -> str:
            return self._value(sources[int(name[2])], kinds[name[1]]) if name[2] else kinds[name[1]]

        value = re.sub(r"\{([TUWup]?)(\d?)\}", fill, table[f"{key}.approx" if is_fast else key])
        return self._set(target, value, result)

    def _value(self, text: str, type_: str) -> str:
        """Return a register, a special one or a number as a value of a type, by its bits."""
        if text not in self.types:
            [text] = [_SPECIAL[text]] if text in _SPECIAL else _NUMBER.findall(re.sub("^0f", "0x", text))
        elif (self.types[text] == "bool") != (type_ == "bool"):
            raise ValueError
        return f"cc_bits<{type_}>({text})"

    def _set(self, register: str, value: str, type_: str, *, wider: bool = False) -> str:
        """Return the assignment of a value of a type to a register, of as many bits or of more."""
        held = self.types[register]
        fits = wider and _BITS[held] > _BITS[type_] and not {held, type_} & {*_REALS, "bool"}
        if _BITS[held] != _BITS[type_] and not fits:
            raise ValueError
        return f"{register} = cc_bits<{held}>(({type_})({value}));"

    def _pointer(self, address: str, type_: str) -> str:
        """Return an address as a pointer; one of 32 bits is of shared memory."""
        [(register, offset)] = _ADDRESS.findall(address)
        base = f"cc_shared({register})" if _BITS[self.types[register]] == 32 else f"(char *){register}"
        return f"({type_} *)({base} + {self._value(offset or '0', 'long')})"

    def _move(self, base: str, given: list[str], rest: list[str], type_: str, operands: list[str]) -> str:
        """Return a load, a store, or a move of a word's halves."""
        target, source = operands
        names = re.findall(r"\w+", target if base == "ld" or target[0] == "{" else source)
        part, held = (_INTEGERS[_BITS[type_] // 2][0] if base == "mov" else type_), type_
        if len(names) > 1:
            kind = part.split()[-1].replace(_U, "int")
            held = f"{'u' * part.startswith(_U)}{kind}{len(names)}"
        elif not {"volatile", "relaxed", "acquire", "release"}.isdisjoint(given):
            held = f"volatile {held}"
        if rest != [f"v{len(names)}"] * (len(names) > 1 and base != "mov"):
            raise ValueError
        values = ", ".join(self._value(name, part) for name in names if base == "st" or target[0] != "{")
        if base == "st":
            return f"*{self._pointer(target, held)} = {f'{held}{{{values}}}' if len(names) > 1 else values};"
        if base == "mov" and source[0] == "{":
            return f"{target} = cc_bits<{self.types[target]}>({held}{{{values}}});"
        value = f"cc_bits<{held}>({source})" if base == "mov" else f"*{self._pointer(source, held)}"
        parts = [f"cc_all.{axis}" for axis in "xyzw"] if len(names) > 1 else ["cc_all"]
        wider = base == "ld"
        sets = (self._set(n, one, part, wider=wider) for n, one in zip(names, parts, strict=False))
        return f"auto cc_all = {value}; {' '.join(sets)}"
