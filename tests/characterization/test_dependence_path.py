"""The dependence path is that of a plain run in Python, which follows every instruction."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Launch
from crosscast.characterization import ir
from crosscast.characterization.frontend import load_kernel
from crosscast.characterization.instrumentation import inline
from crosscast.characterization.instrumentation.accesses import PointerClasses, accesses_of, address_space
from crosscast.characterization.instrumentation.dependence_path import Dependences, Path
from crosscast.characterization.instrumentation.instruction_kinds import kind_of
from support.interpreter.machine import interpret
from support.launching import kernels


def flattened(kernel: Kernel) -> ir.Function:
    """The kernel, with the kinds of its instructions."""
    loaded = load_kernel(kernel)
    module = loaded.program.module
    function = inline.flatten(module, loaded.function)
    for i in function.instructions():
        found = accesses_of(i, module.sizes)
        i.accesses = [access for access in found if address_space(access.pointer_type)]
    classes = PointerClasses(function, module.globals.values(), [])
    for i in function.instructions():
        i.kind = kind_of(i, classes, module.sizes)
    return function


class Chains:
    """The longest chain that each value of a work-item ends, on its way through the blocks of a kernel."""

    def __init__(self, function: ir.Function, way: Sequence[str]) -> None:
        self.chains: dict[str, tuple[int, int]] = {}
        self.now = self.fence = (0, 0)
        # Of each block by itself: the longest chains of instructions, and of loads of each memory
        self.in_blocks = [0, 0, 0]
        for before, label in pairwise(["", *way]):
            block = function.blocks[label]
            chosen = {str(phi.result): {at: v for v, at in phi.incoming}[before] for phi in block.phis()}
            self.chains |= {name: self.chains.get(value, (0, 0)) for name, value in chosen.items()}
            self.in_block: dict[str, list[int]] = {}
            self.block_now = self.block_fence = [0, 0, 0]
            for i in block.instructions:
                if i.opcode != "phi":
                    self.step_in_block(i)
                    self.step(i)
            self.in_blocks = [total + n for total, n in zip(self.in_blocks, self.block_now, strict=True)]

    def step_in_block(self, i: ir.Instruction) -> None:
        kind = i.kind[0]
        if kind == "barriers":
            self.block_now = self.block_fence = [self.block_now[0] + 1, *self.block_now[1:]]
            return
        counts = kind not in ("free", "calls") and i.counted
        weights = [int(counts and kind.startswith(of)) for of in ("", "loads.global", "loads.local")]
        chains = [self.block_fence, *(self.in_block[name] for name in i.uses() if name in self.in_block)]
        chain = [
            weight + max(lengths) for weight, lengths in zip(weights, zip(*chains, strict=True), strict=True)
        ]
        self.block_now = [max(lengths) for lengths in zip(self.block_now, chain, strict=True)]
        if i.result:
            self.in_block[i.result] = chain

    def step(self, i: ir.Instruction) -> None:
        kind = i.kind[0]
        chain = max((self.chains.get(name, (0, 0)) for name in i.uses()), default=(0, 0))
        if kind == "barriers":
            self.now = self.fence = (self.now[0] + 1, self.now[1])
            return
        if kind not in ("free", "calls") and i.counted:
            instructions, loads = max(chain, self.fence)
            chain = (instructions + 1, loads + kind.startswith("loads"))
        self.now = max(self.now, chain)
        if i.result:
            self.chains[i.result] = chain


def both(kernel: Kernel, n: int) -> tuple[Path, tuple[int, int]]:
    """The path as it is computed, and as a run finds it; chains of blocks are compared here."""
    function, args = flattened(kernel), (X.copy(), Y.copy(), NEXT.copy(), np.int32(n))
    way = interpret(Launch(kernel, (1,), (1,), args)).path
    chains, path = Chains(function, way), Dependences(function).longest(Counter(way))
    loads = [path.block_loads.get(space, 0) for space in ("global", "local")]
    assert [path.block_instructions, *loads] == chains.in_blocks
    assert path.instructions <= path.block_instructions
    return path, chains.now


X = np.arange(4096, dtype=np.float32)
Y = np.ones(4096, np.float32)
NEXT = np.roll(np.arange(4096), -7).astype(np.int32)

SUM = "float s = 0; for (int i = 0; i < n; i++) s += x[i] * y[i]; x[0] = s;"
REGULAR = {
    "straight": ("x[0] = x[1] * 2 + y[2]; y[3] = x[4] * x[5] * x[6];", 1),
    "sum": (SUM, 37),
    "chase": ("int p = 0; for (int i = 0; i < n; i++) p = next[p]; x[p] = 1;", 50),
    "two chains": (
        "float s = 0; int p = 0; for (int i = 0; i < n; i++) { p = next[p]; s += x[p] * y[i]; } x[0] = s;",
        21,
    ),
    "nested": (
        "float s = 0; for (int i = 0; i < n; i++) { for (int j = 0; j < 5; j++) s = s * 2 + x[i * 5 + j];"
        " s += y[i]; } x[0] = s;",
        9,
    ),
    "independent": (
        "for (int i = 0; i < n; i++) { float s = 0;"
        " for (int j = 0; j < 12; j++) s += x[i + j] * 3; y[i] = s; }",
        8,
    ),
    "after a loop": (
        "float s = 1; for (int i = 0; i < n; i++) s = s * x[i]; for (int i = 0; i < n; i++) s += y[i] * s;"
        " x[0] = s;",
        14,
    ),
    "never entered": (SUM, 0),
    "a branch": ("if (n > 3) { x[0] = x[1] * 2 + x[2]; } else { y[0] = y[1]; } x[3] = y[n];", 5),
    "the other branch": ("if (n > 3) { x[0] = x[1] * 2 + x[2]; } else { y[0] = y[1]; }", 2),
    "barriers in a loop": (
        "local float t[4]; float s = 0; for (int i = 0; i < n; i++) { t[0] = x[i] * 2;"
        " barrier(CLK_LOCAL_MEM_FENCE); s += t[0] * y[i]; barrier(CLK_LOCAL_MEM_FENCE); } x[0] = s;",
        11,
    ),
    "barrier between": ("x[0] = x[1] * 2 + 1; barrier(CLK_GLOBAL_MEM_FENCE); y[0] = y[1] * 3;", 1),
    "data decide": ("int p = 0, c = 0; while (p < n) { p = next[p]; c++; } x[0] = c;", 4000),
}
UNEVEN = {
    "ways that alternate": (
        "float s = 1; for (int i = 0; i < n; i++) { if (next[i] & 1) { s = s * 3 + y[i]; s = s * s + 1; }"
        " else s = s - x[i]; } x[0] = s;",
        40,
    ),
    "a triangle": (
        "float s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s += x[i * n + j]; y[0] = s;",
        13,
    ),
    "early exits": (
        "float s = 1; for (int i = 0; i < n; i++) for (int j = 0; j < 9; j++) { s = s * y[i + j] + 1;"
        " if (next[i] > 4000 + j) break; } x[0] = s;",
        30,
    ),
}
"""Bodies and their `n`; of some, one recurrence takes whatever way the iterations take."""


CASES = {**REGULAR, **UNEVEN}
KERNELS = kernels(
    "kernel void k(global float *x, global float *y, global const int *next, int n) {",
    (body for body, _ in CASES.values()),
)


@pytest.mark.parametrize("name", CASES)
def test_it_is_that_of_a_run(name: str) -> None:
    body, n = CASES[name]
    kernel = KERNELS[body]
    found, (instructions, loads) = both(kernel, n)
    # Where the chain begins depends on which iteration comes first, if they are not alike.
    assert found.instructions == pytest.approx(instructions, abs=6 * (name in UNEVEN))
    assert sum(found.loads.values()) == pytest.approx(loads, abs=2 * (name in UNEVEN))
    args: list[Any] = [X.copy(), Y.copy(), NEXT.copy(), np.int32(n)]
    path = crosscast.characterize(kernel, 1, 1, args).launch["path"]
    assert (path["instructions"], path["loads"]) == (found.instructions, found.loads)


def test_long_loops_cost_no_time() -> None:
    function = flattened(KERNELS[SUM])
    once = dict.fromkeys(function.blocks, 1)
    (header,) = (label for label, block in function.blocks.items() if any(block.phis()))
    body = function.blocks[header].terminator.targets[0]

    def path(n: int) -> int:
        return Dependences(function).longest({**once, header: n + 1, body: n}).instructions

    assert path(10**9) - path(10**3) == 10**9 - 10**3


STEPS = {
    "int i = t; i < n; i += blockDim.x": (True, True),
    "int i = t; i < n && a[i] > 0; i++": (True, True),
    "int i = t; a[i] > 0; i++": (True, True),
    "int i = 0; i < n; i += 2": (False, True),
    "int i = n - 1; i >= 0; i--": (False, True),
    "int i = 0; i < t; i++": (False, True),
    "int i = 60; i >= 0; i -= 4": (False, False),
    "int i = t; i < t + 50; i++": (False, False),
}
"""Heads of loops, and whether nvcc and AMD's compiler keep their iterations apart."""
ALIASED = {
    ("float *a, float *b", "s += a[i * n + t]; a[i * n + t] = s"): True,
    ("const float *a, float *b", "b[i * n + t] = a[i * n + t]"): True,
    ("const float *__restrict__ a, float *__restrict__ b", "b[i * n + t] = a[i * n + t]"): False,
    ("float *a, float *b", "a[t * n + i] *= 2"): False,
    ("const float *a, float *b", "s += a[i * n + t]"): False,
}
"""Parameters and the body of a loop, and whether nvcc keeps loads behind stores of the iteration before."""
LOOPS: dict[str | tuple[str, str], tuple[str, str]] = {
    **{head: ("const float *a, float *b", f"for ({head}) s += a[i] * s") for head in STEPS},
    **{parts: (parts[0], f"for (int i = 0; i < n; i++) {{ {parts[1]}; }}") for parts in ALIASED},
}
"""Parameters and the loop of each."""
OF_LOOPS = "".join(
    f"""__global__ void k{number}({parameters}, int n) {{
      int t = threadIdx.x; float s = 0;
      {loop};
      b[t] = s;
    }}
    """
    for number, (parameters, loop) in enumerate(LOOPS.values())
)


def path_of(name: str | tuple[str, str], items: int, n: int) -> dict[str, Any]:
    """The path of a loop in CUDA over arrays `a` and `b`, of which `a` begins with ones."""
    options = ["-O1", "-fno-unroll-loops"]
    kernel = Kernel.from_source(OF_LOOPS, f"k{[*LOOPS].index(name)}", form="cuda", options=options)
    a = np.concatenate([np.ones(64, np.float32), np.zeros(64, np.float32)])
    args: list[Any] = [a, np.zeros(64, np.float32), np.int32(n)]
    return dict(crosscast.characterize(kernel, items, items, args).launch["path"])


@pytest.mark.parametrize("head", STEPS)
def test_loads_are_in_turn_in_loops_that_compilers_do_not_unroll(head: str) -> None:
    path = path_of(head, 8, 64)
    loads = path["block_loads"]["global"]
    for name, is_apart in zip(("loads_in_turn", "loads_rolled"), STEPS[head], strict=True):
        in_turn = path[name].get("global", 0)
        # Of a loop that tests what it loads, the first load is before it.
        assert loads - in_turn <= 1 if is_apart else in_turn == 0


@pytest.mark.parametrize("parts", ALIASED)
def test_loads_are_in_turn_in_loops_that_may_store_what_they_load(parts: tuple[str, str]) -> None:
    path = path_of(parts, 1, 8)
    assert path["block_loads"] == {"global": 8}
    assert path["loads_in_turn"] == ({"global": 8} if ALIASED[parts] else {})


APART = "b[t] = a[t]; b[t + n] = a[t + n]; b[t + 2 * n] = a[t + 2 * n]"
STRAIGHT = {
    ("const float *a, float *b", APART): (3, 2),
    ("const float *__restrict__ a, float *__restrict__ b", APART): (1, 0),
    ("float *a, float *b", "a[t] *= 2; a[t + 1] *= 2"): (1, 0),
    ("float *a, float *b", "b[t + n] = 1; s = a[t]"): (1, 0),
    ("const float *a, float *b", "b[t + n] = a[t]; s = b[(int)a[t + 1]]"): (3, 1),
    ("const float3 *a, float3 *b", "b[t + n] = a[t]"): (1, 0),
    ("const float3 *a, float3 *b", "b[t] = a[t]; b[t + n] = a[t + n]"): (2, 1),
    ("const float *a, float *b", "b[t + n] = a[(int)a[t]]; b[t + n + 1] = 1; s = a[t + 2 * n]"): (3, 1),
    ("float *a, float *b", "atomicAdd(&b[t + n], 1.0f); s = a[t]"): (1, 0),
    ("float *a, float *b", "b[(int)a[t]] = 1; s = atomicAdd(&b[t + n], 1.0f)"): (2, 1),
}
"""Parameters, straight code, and how many loads wait for others or for stores, and for stores alone."""


@pytest.mark.parametrize("parts", STRAIGHT)
def test_loads_wait_for_what_the_stores_before_them_wait_for(parts: tuple[str, str]) -> None:
    parameters, code = parts
    source = f"""__global__ void k({parameters}, float *c, int n) {{
      int t = threadIdx.x; float s = 0;
      {code};
      c[t] = s;
    }}"""
    arrays: list[Any] = [np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)]
    kernel = Kernel.from_source(source, "k", form="cuda")
    path = crosscast.characterize(kernel, 1, 1, [*arrays, np.int32(4)]).launch["path"]
    assert (path["block_loads"]["global"], path["loads_in_turn"].get("global", 0)) == STRAIGHT[parts]


MODULE = "__constant__ float table[8]; __device__ float one[8], other[8];"


@pytest.mark.parametrize(
    "code", ["b[t] = table[t]; b[t + n] = table[t + n]", "other[t] = one[t]; other[t + n] = one[t + n]"]
)
def test_no_store_changes_constants_or_another_variable(code: str) -> None:
    source = f"{MODULE} __global__ void k(float *b, int n) {{ int t = threadIdx.x; {code}; }}"
    kernel = Kernel.from_source(source, "k", form="cuda")
    path = crosscast.characterize(kernel, 1, 1, [np.zeros(8, np.float32), np.int32(4)]).launch["path"]
    assert sum(path["block_loads"].values()) == 1


def test_much_straight_code_is_read_in_no_time() -> None:
    """A look at each pair of a store and a load would take some seconds."""
    steps = "".join(f"o[x[t + {i} * n]] = a[y[t + {i} * n]] + 2;" for i in range(400))
    source = (
        f"__global__ void k(float *o, float *a, int *x, int *y, int n) {{ int t = threadIdx.x; {steps} }}"
    )
    kernel = Kernel.from_source(source, "k", form="cuda")
    arrays: list[Any] = [np.zeros(512, dtype) for dtype in (np.float32, np.float32, np.int32, np.int32)]
    path = crosscast.characterize(kernel, 1, 1, [*arrays, np.int32(1)]).launch["path"]
    assert path["block_loads"] == {"global": 2 * 400}


NARROW = """void k({space} const {kind} *a, {space} {kind} *b, int n) {{
  int threads = {size};
  for (int i = {item}; i < n; i += threads) b[i] = a[i];
}}"""
LANGUAGES: dict[Literal["cuda", "opencl-c"], dict[str, str]] = {
    "cuda": {"space": "", "size": "blockDim.x", "item": "threadIdx.x"},
    "opencl-c": {"space": "global", "size": "get_local_size(0)", "item": "get_local_id(0)"},
}


@pytest.mark.parametrize("kind", ["unsigned char", "short", "int"])
@pytest.mark.parametrize("form", LANGUAGES)
def test_loads_of_narrow_values_are_in_turn_as_others(form: Literal["cuda", "opencl-c"], kind: str) -> None:
    """LLVM would make vectors of iterations, which GPUs do not have."""
    head = "__global__ " if form == "cuda" else "kernel "
    source = head + NARROW.format(kind=kind, **LANGUAGES[form])
    dtype = {"unsigned char": np.uint8, "short": np.int16, "int": np.int32}[kind]
    args: list[Any] = [np.zeros(4096, dtype), np.zeros(4096, dtype), np.int32(4096)]
    kernel = Kernel.from_source(source, "k", form=form, options=["-O3"])
    path = crosscast.characterize(kernel, 32, 32, args).launch["path"]
    assert path["loads_in_turn"] == path["block_loads"] == {"global": 128}
