"""Random kernels, each as OpenCL C and as a Python function that traces what the kernel does.

The values of all expressions are small non-negative integers, so that one text means the same in
both languages. At ``-O0`` every branch and access of the C text is one of the compiled kernel. Kernels that
are made `wild` also have structures, ``switch``, inline functions, private arrays, vectors and atomics;
only what they leave in memory is traced in Python.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from support.reference import Trace

_INPUT, _OUTPUT_PER_ITEM, _PARAMETER = 64, 8, 2
_HELPER = """
uint helper(uint x, global const uint *a) {
  if (x % 3 == 0) return x + 1;
  if (x % 5 == 2) x = a[x % 64];
  for (uint h = 0; h < x % 4; h++) {
    if ((x + h) % 7 == 3) return x + h;
    x = (x * 3 + 1) & 1023;
  }
  return x;
}
"""
_WILD_HELPERS = """
typedef struct { uint a; uchar b; ushort c[3]; uint d; } T;
inline uint folded(uint x, uint n) {
  uint s = 1;
  for (uint h = 0; h < n; h++) { if (s > 900) return s - x % 7; s = s * 3 + x % (h + 2); }
  return s;
}
inline void exchange(uint *x, uint *y) { uint z = *x; *x = (*y + 1) & 1023; *y = z; }
T mixed(T t, T s, uint x) {
  t.a = (t.a + x) & 1023;
  s.c[x % 3] = t.b;
  t.d = (s.a ^ s.c[0] ^ s.c[2]) & 1023;
  t.c[1] = s.c[x % 2];
  return t;
}
uint total(T t) { t.b += 1; return (t.a + t.b + t.c[0] + t.c[1] * 3 + t.c[2] * 5 + t.d) & 1023; }
void meet(local uint *t, uint lid, uint x) {
  t[lid] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
}
"""
_WILD_PARAMETERS = ", T given, global T *p, global uint *counters"
STRUCTURE = np.dtype([("a", "u4"), ("b", "u1"), ("c", "u2", 3), ("d", "u4")], align=True)
_COUNTERS = 8


@dataclass
class RandomKernel:
    """One random kernel and its launch."""

    source: str
    python: str
    groups: int
    local_size: tuple[int, int]
    missing: int
    """Columns of work-items that the last work-group lacks."""
    wild: bool = False
    """It has three more arguments: a structure, a buffer of structures, and counters."""

    @property
    def items(self) -> int:
        """Work-items of a group."""
        return self.local_size[0] * self.local_size[1]

    @property
    def global_size(self) -> tuple[int, int]:
        """Work-items in both dimensions."""
        return self.local_size[0] * self.groups - self.missing, self.local_size[1]

    @property
    def standard(self) -> str:
        """Version of OpenCL C that allows its last work-group."""
        return "2.0" if self.missing else "1.2"

    def inputs(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], np.uint32]:
        """Input buffer, output buffer and a number."""
        generator = np.random.default_rng(len(self.source))
        data = generator.integers(0, 1024, _INPUT).astype(np.uint32)
        output = np.zeros(self.groups * self.items * _OUTPUT_PER_ITEM, np.uint32)
        return data, output, np.uint32(_PARAMETER)

    def arguments(self) -> list[Any]:
        """All arguments of the kernel."""
        if not self.wild:
            return [*self.inputs()]
        generator = np.random.default_rng(len(self.source) + 1)
        structures = np.zeros(self.groups * self.items + 1, STRUCTURE)
        for name in STRUCTURE.names or ():
            structures[name] = generator.integers(0, 256, structures[name].shape)
        counters = np.zeros(_COUNTERS, np.uint32)
        return [*self.inputs(), structures[-1].tobytes(), structures[:-1].copy(), counters]

    def outputs(self) -> list[npt.NDArray[Any]]:
        """What all arguments that are arrays hold afterwards."""
        arguments = self.arguments()
        self._trace(arguments)
        return [argument for argument in arguments if isinstance(argument, np.ndarray)]

    def run(self) -> tuple[Trace, npt.NDArray[Any], int]:
        """Trace of the launch, its output, and the number of barriers hit."""
        arguments = self.arguments()
        trace, barriers = self._trace(arguments)
        return trace, arguments[1], barriers

    def _trace(self, arguments: list[Any]) -> tuple[Trace, int]:
        trace = Trace()
        data, output, _, *more = arguments
        scope: dict[str, Any] = {}
        exec(compile(self.python, "kernel", "exec"), scope)
        barriers = 0
        for group in range(self.groups):
            local: dict[int, int] = {}
            machine = _Machine(trace, group, {"a": data, "b": output, "t": local}, _PARAMETER, more)
            width = self.local_size[0] - (self.missing if group == self.groups - 1 else 0)
            items = width * self.local_size[1]
            running = [scope["kernel"](machine, item, group, items) for item in range(items)]
            while running:
                running = [item for item in running if next(item, None) is not None]
                barriers += len(running)
        return trace, barriers


@dataclass
class _Machine:
    """What the traced program reads, writes and branches with."""

    trace: Trace
    group: int
    memories: dict[str, Any]
    parameter: int
    more: list[Any] = field(default_factory=list)

    def read(self, name: str, index: int) -> int:
        """Element of a memory."""
        self.trace.reads.append((name, 4 * index))
        return int(self.memories[name][index])

    def write(self, name: str, index: int, value: int) -> None:
        """Change an element of a memory."""
        self.trace.writes.append((name, 4 * index))
        self.memories[name][index] = value

    def branch(self, number: str, outcome: object) -> bool:
        """Go one way or the other."""
        return self.trace.branch(number, self.group, outcome)

    def helper(self, x: int) -> int:
        """Do what the helper function of all kernels does."""
        if self.branch("h0", x % 3 == 0):
            return x + 1
        if self.branch("h1", x % 5 == 2):
            x = self.read("a", x % 64)
        h = 0
        while self.branch("h2", h < x % 4):
            if self.branch("h3", (x + h) % 7 == 3):
                return x + h
            x = (x * 3 + 1) & 1023
            h += 1
        return x

    def structure(self, item: int) -> dict[str, Any]:
        """The element of a work-item, or of -1 the kernel's argument, as what can be changed freely."""
        element = np.frombuffer(self.more[0], STRUCTURE)[0] if item < 0 else self.more[1][item]
        numbers = {name: element[name].tolist() for name in STRUCTURE.names or ()}
        return {name: list(n) if isinstance(n, list) else n for name, n in numbers.items()}

    def keep(self, item: int, value: dict[str, Any]) -> None:
        """Assign the element of a work-item."""
        limits = {"a": 1 << 32, "b": 1 << 8, "d": 1 << 32}
        for name, limit in limits.items():
            self.more[1][item][name] = value[name] % limit
        self.more[1][item]["c"][:] = [n % (1 << 16) for n in value["c"]]

    @staticmethod
    def mixed(t: dict[str, Any], s: dict[str, Any], x: int) -> dict[str, Any]:
        """Do what the function of this name does."""
        t["a"] = (t["a"] + x) & 1023
        s["c"][x % 3] = t["b"]
        t["d"] = (s["a"] ^ s["c"][0] ^ s["c"][2]) & 1023
        t["c"][1] = s["c"][x % 2]
        return t

    @staticmethod
    def total(t: dict[str, Any]) -> int:
        """Do what the function of this name does."""
        b = (t["b"] + 1) % 256
        return int((t["a"] + b + t["c"][0] + t["c"][1] * 3 + t["c"][2] * 5 + t["d"]) & 1023)

    @staticmethod
    def folded(x: int, n: int) -> int:
        """Do what the function of this name does."""
        s = 1
        for h in range(n):
            if s > 900:
                return s - x % 7
            s = s * 3 + x % (h + 2)
        return s

    def count(self, index: int, value: int) -> None:
        """Add to a counter."""
        self.more[2][index] = (int(self.more[2][index]) + value) % (1 << 32)


@dataclass
class _Writer:
    random: random.Random
    c: list[str] = field(default_factory=list)
    py: list[str] = field(default_factory=list)
    branches: int = 0
    loops: int = 0
    barriers: bool = False
    depth: int = 1
    wild: bool = False
    switches: int = 0

    def line(self, c: str, py: str) -> None:
        self.c.append("  " * self.depth + c)
        self.py.append("  " * self.depth + py)

    def python(self, text: str, deeper: int = 0) -> None:
        """A line of Python alone."""
        self.py.append("  " * (self.depth + deeper) + text)

    def fresh(self) -> str:
        self.branches += 1
        return f"'b{self.branches}'"

    def value(self) -> str:
        pick = self.random.randrange
        names = ["x", "y", "lid", "(gid + x)", "(x ^ y)", "(x * 3 + y)"]
        names += ["u", *(f"i{n}" for n in self._open)]
        return f"({self.random.choice(names)} * {pick(1, 9)} + {pick(64)})"

    def condition(self) -> tuple[str, str]:
        """A condition in both languages."""

        def simple() -> str:
            modulus = self.random.choice([2, 3, 5, 8, 16, 31])
            return f"{self.value()} % {modulus} < {self.random.randrange(modulus + 1)}"

        first = simple()
        kind = self.random.randrange(6)
        if kind > 1:
            return first, f"m.branch({self.fresh()}, {first})"
        second, word, symbol = simple(), *(("and", "&&") if kind else ("or", "||"))
        return (
            f"{first} {symbol} {second}",
            f"(m.branch({self.fresh()}, {first}) {word} m.branch({self.fresh()}, {second}))",
        )

    _open: list[int] = field(default_factory=list)
    _uniform_loops: list[int] = field(default_factory=list)

    def statements(self, count: int, *, uniform: bool, loop: str = "") -> None:
        """A block of statements."""
        self.depth += 1
        for _ in range(count):
            self.statement(uniform=uniform, loop=loop)
        self.depth -= 1

    def statement(self, *, uniform: bool, loop: str) -> None:
        choices: list[Callable[[], None]] = [self.update, self.load, self.store, self.call]
        if self.depth < 5:
            choices += [
                lambda: self.choose(self.condition(), uniform=False, loop=loop),
                self.count,
                self.repeat,
            ] * 2
        if uniform:
            choices += [self.update_uniform]
            if self.barriers:
                choices += [self.exchange] * 3
            if self.depth < 4:
                choices += [self.uniform_loop, self.uniform_choice] * 2
            if self._uniform_loops:
                choices += [self.uniform_leave]
        if loop:
            choices += [lambda: self.leave(self.condition(), loop)]
        if self.wild:
            choices += [self.fold, self.swap, self.vector, self.in_array, self.structured, self.structured]
            choices += [self.narrow, self.add_atomically]
            if self.depth < 5:
                choices += [lambda: self.switch(uniform=False)] * 3
            if uniform and self.depth < 4:
                choices += [lambda: self.switch(uniform=True)] * 3
            if uniform and self.barriers:
                choices += [self.meet, *[self.part] * 6]
        self.random.choice(choices)()

    def fold(self) -> None:
        name, count = self.random.choice("xy"), self.value()
        call = f"folded({name}, {count} % 6) & 1023"
        self.line(f"{name} = {call};", f"{name} = m.{call}")

    def swap(self) -> None:
        a, b = self.random.choice(("xy", "yx"))
        self.line(f"exchange(&{a}, &{b});", f"{a}, {b} = ({b} + 1) & 1023, {a}")

    def vector(self) -> None:
        parts = [self.value() for _ in range(4)]
        order = [self.random.randrange(4) for _ in range(4)]
        name, picked = self.random.choice("xy"), self.random.randrange(4)
        other = order[picked]
        swizzle = "".join("xyzw"[n] for n in order)
        self.line(
            f"{{ uint4 v = (uint4)({', '.join(parts)}); "
            f"v = v.{swizzle} + v * 3u; {name} = v.s{picked} & 1023; }}",
            f"{name} = ({parts[other]} + {parts[picked]} * 3) & 1023",
        )

    def in_array(self) -> None:
        index, value, name = self.value(), self.value(), self.random.choice("xy")
        at = self.value()
        self.line(f"w[{index} % 5] = {value} & 1023;", f"w[{index} % 5] = {value} & 1023")
        self.line(f"{name} = w[{at} % 5];", f"{name} = w[{at} % 5]")

    def narrow(self) -> None:
        name = self.random.choice("xy")
        type_, mask = self.random.choice([("uchar", 255), ("ushort", 65535)])
        value = self.value()
        self.line(f"{name} = ({type_})({value} * 37u) & 1023;", f"{name} = ({value} * 37 & {mask}) & 1023")

    def add_atomically(self) -> None:
        index, value = f"{self.value()} % {_COUNTERS}", self.value()
        self.line(f"atomic_add(&counters[{index}], {value});", f"m.count({index}, {value})")

    def structured(self) -> None:
        name, value = self.random.choice("xy"), self.value()
        kind = self.random.randrange(5)
        if kind == 0:
            self.line(f"s.a = {value}; {name} = total(s);", f"s['a'] = {value}; {name} = m.total(s)")
        elif kind == 1:
            self.line(f"p[gid] = mixed(p[gid], s, {value});", "t = m.structure(gid)")
            self.python("q = {**s, 'c': [*s['c']]}")
            self.python(f"m.keep(gid, m.mixed(t, q, {value}))")
        elif kind == 2:
            self.line(f"p[gid].c[{value} % 3] = {name};", "t = m.structure(gid)")
            self.python(f"t['c'][{value} % 3] = {name}; m.keep(gid, t)")
        elif kind == 3:
            self.line(f"{name} = total(p[gid]);", f"{name} = m.total(m.structure(gid))")
        else:
            self.line(
                f"{{ T o = p[gid]; o.b = {value}; s = o; }}", f"s = m.structure(gid); s['b'] = {value} & 255"
            )

    def meet(self) -> None:
        self.line("meet(t, lid, x);", "m.write('t', lid, x)")
        self.python("yield 1")
        self.line("y = t[(lid + y) % items];", "y = m.read('t', (lid + y) % items)")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);", "yield 1")

    def switch(self, *, uniform: bool) -> None:
        """Cases that fall through or not, a default somewhere or nowhere, barriers in them if `uniform`."""
        value = self.uniform_value() if uniform else self.value()
        pick = self.random.randrange
        numbers = self.random.sample([0, 1, 2, 3, 4, 5, 6, 7, 11, 40], pick(2, 8))
        groups = [numbers[:1]]
        for number in numbers[1:]:
            if pick(2):
                groups[-1].append(number)
            else:
                groups.append([number])
        default = pick(len(groups) + 2)
        name = f"c{self.switches}"
        self.switches += 1
        modulus = self.random.choice([4, 8, 9, 50])
        self.line(f"switch ({value} % {modulus}) {{", f"{name} = {value} % {modulus}")
        self.python(f"hit{name} = False")
        self.python("while True:")
        loops, self._uniform_loops = self._uniform_loops, []  # a continue would be the wrong loop's
        for position, group in enumerate(groups):
            labels = " ".join(f"case {n}:" for n in group)
            test = f"hit{name} or {name} in {group}"
            if position == default:
                labels += " default:"
                test += f" or {name} not in {numbers}"
            self.line(f"{labels} {{", f"  if {test}:")
            self.python(f"hit{name} = True", 2)
            self.depth += 1
            self.statements(pick(3), uniform=uniform)
            if pick(2):
                self.c.append("  " * self.depth + "break;")
                self.python("break", 1)
            self.depth -= 1
            self.c.append("  " * self.depth + "}")
        self._uniform_loops = loops
        self.line("}", "  break")

    def update(self) -> None:
        name = self.random.choice("xy")
        text = f"{name} = ({self.value()} ^ {self.value()}) & 1023"
        self.line(f"{text};", text)

    def load(self) -> None:
        name, index = self.random.choice("xy"), self.value()
        self.line(f"{name} = a[{index} % {_INPUT}];", f"{name} = m.read('a', {index} % {_INPUT})")

    def store(self) -> None:
        index, value = f"gid * {_OUTPUT_PER_ITEM} + x % {_OUTPUT_PER_ITEM}", self.value()
        self.line(f"b[{index}] = {value};", f"m.write('b', {index}, {value})")

    def call(self) -> None:
        name = self.random.choice("xy")
        self.line(f"{name} = helper({name}, a);", f"{name} = m.helper({name})")

    def exchange(self) -> None:
        self.line("t[lid] = x;", "m.write('t', lid, x)")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);", "yield 1")
        self.line("y = t[(lid + x) % items];", "y = m.read('t', (lid + x) % items)")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);", "yield 1")

    def part(self) -> None:
        """Something that work-items between barriers do as their local ids tell."""
        bound = self.random.choice(["0", "1", "5", "n % 7", "u % 40", "items % 9"])
        c = f"lid {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {bound}"
        self.line("barrier(CLK_LOCAL_MEM_FENCE);", "yield 1")
        self.line(f"if ({c}) {{", f"if m.branch({self.fresh()}, {c}):")
        self.statements(1, uniform=False)
        self.line("} else {", "else:")
        self.statements(1, uniform=False)
        self.line("}", "pass")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);", "yield 1")

    def choose(self, condition: tuple[str, str], *, uniform: bool, loop: str = "") -> None:
        c, py = condition
        self.line(f"if ({c}) {{", f"if {py}:")
        self.statements(self.random.randint(1, 2), uniform=uniform, loop=loop)
        if self.random.random() < 0.5:
            self.line("} else {", "else:")
            self.statements(self.random.randint(1, 2), uniform=uniform, loop=loop)
        self.line("}", "pass")

    def leave(self, condition: tuple[str, str], loop: str) -> None:
        """Break or continue; `loop` is the Python text that a continue needs first."""
        c, py = condition
        word = self.random.choice(["break", "continue"])
        self.line(f"if ({c}) {word};", f"if {py}:")
        if word == "continue":
            self.python(loop, 1)
        self.python(word, 1)

    def _counted(self, limit: str, *, uniform: bool) -> None:
        number = self.loops
        self.loops += 1
        name = f"i{number}"
        self.line(f"for (uint {name} = 0; {name} < {limit}; {name}++) {{", f"{name} = 0")
        self.python(f"while m.branch({self.fresh()}, {name} < {limit}):")
        self._open.append(number)
        if uniform:
            self._uniform_loops.append(number)
        loop = "" if uniform else f"{name} += 1"
        self.statements(self.random.randint(1, 3), uniform=uniform, loop=loop)
        if uniform:
            self._uniform_loops.pop()
        self._open.remove(number)
        self.python(f"{name} += 1", 1)
        self.c.append("  " * self.depth + "}")

    def count(self) -> None:
        limit = self.random.choice(["3", "x % 5", "(lid & 3)", "y % 20", "(gid % 2 + 1)"])
        self._counted(limit, uniform=False)

    def update_uniform(self) -> None:
        text = f"u = {self.uniform_value()} & 255"
        self.line(f"{text};", text)

    def uniform_value(self) -> str:
        pick = self.random.randrange
        names = ["u", "n", "group", *(f"i{n}" for n in self._uniform_loops)]
        return f"({self.random.choice(names)} * {pick(1, 9)} + u + {pick(64)})"

    def uniform_condition(self) -> tuple[str, str]:
        modulus = self.random.choice([2, 3, 5])
        text = f"{self.uniform_value()} % {modulus} < {self.random.randrange(1, modulus)}"
        return text, f"m.branch({self.fresh()}, {text})"

    def uniform_choice(self) -> None:
        """A condition that is the same for all work-items of a group, with barriers behind it."""
        self.choose(self.uniform_condition(), uniform=True)

    def uniform_leave(self) -> None:
        self.leave(self.uniform_condition(), f"i{self._uniform_loops[-1]} += 1")

    def uniform_loop(self) -> None:
        self._counted(self.random.choice(["2", "3", "(u % 4)", "(n + group % 2)"]), uniform=True)

    def repeat(self) -> None:
        number = self.loops
        self.loops += 1
        name = f"i{number}"
        self.line(f"uint {name} = 0;", f"{name} = 0")
        self.line("do {", "while True:")
        self._open.append(number)
        self.statements(self.random.randint(1, 2), uniform=False)
        self._open.remove(number)
        self.c.append("  " * self.depth + f"}} while (++{name} < x % 4 + 1);")
        self.python(f"{name} += 1", 1)
        self.python(f"if not m.branch({self.fresh()}, {name} < x % 4 + 1): break", 1)


def make(seed: int, *, wild: bool = False) -> RandomKernel:
    """Return the random kernel of a seed."""
    generator = random.Random(seed)
    writer = _Writer(generator, barriers=generator.random() < 0.6, wild=wild)
    writer.line("uint x = a[gid % 64], y = lid;", "x, y = m.read('a', gid % 64), lid")
    writer.depth = 0
    writer.statements(generator.randint(3, 7), uniform=True)
    writer.depth = 1
    writer.line(f"b[gid * {_OUTPUT_PER_ITEM}] = x + y;", f"m.write('b', gid * {_OUTPUT_PER_ITEM}, x + y)")
    local_size = generator.choice([(8, 1), (5, 3), (4, 4), (1, 1), (33, 1), (16, 2)])
    items = local_size[0] * local_size[1]
    more = _WILD_PARAMETERS if wild else ""
    source = "\n".join(
        [
            _HELPER,
            *([_WILD_HELPERS] if wild else []),
            f"kernel void k(global const uint *a, global uint *b, uint n{more}) {{",
            f"  local uint t[{items}];" if writer.barriers else "",
            "  uint lid = get_local_id(0)"
            + (";" if wild and local_size[1] == 1 else " + get_local_id(1) * get_local_size(0);"),
            "  uint items = get_local_size(0) * get_local_size(1);",
            f"  uint group = get_group_id(0), gid = group * {items} + lid;",
            "  uint u = group + n;",
            *(["  uint w[5] = {1, 2, 3, 4, 5};", "  T s = given;"] if wild else []),
            *writer.c,
            "}",
        ]
    )
    python = "\n".join(
        [
            "def kernel(m, lid, group, items):",
            f"  gid, n = group * {items} + lid, m.parameter",
            "  u = group + n",
            "  if items < 0: yield 1",
            *(["  s, w = m.structure(-1), [1, 2, 3, 4, 5]"] if wild else []),
            *writer.py,
        ]
    )
    groups = generator.randint(1, 5)
    # PoCL takes whole work-groups only.
    missing = generator.randrange(local_size[0]) if generator.random() < 0.3 and not wild else 0
    return RandomKernel(source, python, groups, local_size, missing, wild)
