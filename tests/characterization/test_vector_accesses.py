"""Neighbouring accesses are merged to vectors, which does not change what a kernel computes.

Nor does it change what a kernel costs where it spells out that it reads an id.
"""

import itertools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.characterization import characterize, ir
from crosscast.characterization.instrumentation.vector_accesses import merge_accesses
from crosscast.characterization.run import Options, characterize_launch
from crosscast.kernel import Kernel, Launch
from support.launching import kernels

ITEMS = 64
STRUCTURES = """
struct __align__(16) Mixed { float x; int n; short a, b; unsigned char c[4]; };
struct __align__(16) Padded { float x, y, z; };
struct Plain { float x, y, z, w; };
union __align__(16) Either { float4 v; int n[4]; };
"""
# Type of the arrays `a` and `b`, and the body of a kernel; loads and stores of a thread by memory and bytes
KERNELS: dict[str, tuple[str, ...]] = {
    "copied whole": ("float4", "b[i] = a[i];", "global.16", "global.16"),
    "changed": ("float4", "float4 v = a[i]; v.x *= 2; v.w += v.y; b[i] = v;", "global.16", "global.16"),
    "half of it": ("float4", "float s = a[i].z * a[i].w; b[i].x = s; b[i].y = s;", "global.8", "global.8"),
    "in place": ("int4", "a[i].x += 1; a[i].y += 2; a[i].z += 3; a[i].w += 4;", "global.16", "global.16"),
    "made": ("int2", "b[i] = make_int2(i, a[i].y);", "global.4", "global.8"),
    "double2": ("double2", "double2 v = a[i]; v.y += v.x; b[i] = v;", "global.16", "global.16"),
    "double4": ("double4", "double4 v = a[i]; v.x += v.w; b[i] = v;", "2 global.16", "2 global.16"),
    "uchar4": ("uchar4", "uchar4 v = a[i]; v.y += v.x; b[i] = v;", "global.4", "global.4"),
    "half2": ("half2", "b[i] = __hmul2(a[i], a[i]);", "global.4", "global.4"),
    "cast": (
        "float",
        "float4 v = ((float4 *)a)[i]; v.x++; reinterpret_cast<float4 *>(b)[i] = v;",
        *["global.16"] * 2,
    ),
    "shared": (
        "float4",
        "__shared__ float4 s[64]; s[i] = a[i]; __syncthreads(); float4 v = s[63 - i]; v.x++; b[i] = v;",
        *["global.16 local.16"] * 2,
    ),
    "rows of a shared tile": (
        "float4",
        "__shared__ float4 s[8][8]; s[i / 8][i % 8] = a[i]; __syncthreads();"
        " float4 v = s[i % 8][i / 8]; v.x++; b[i] = v;",
        *["global.16 local.16"] * 2,
    ),
    "asynchronous": (
        "float4",
        "__shared__ float4 s[64]; __pipeline_memcpy_async(&s[i], &a[i], 16); __pipeline_commit();"
        " __pipeline_wait_prior(0); float4 v = s[i]; v.x++; b[i] = v;",
        *["global.16 local.16"] * 2,
    ),
    "__ldg": ("float4", "float4 v = __ldg(&a[i]); v.x++; b[i] = v;", "global.16", "global.16"),
    "another structure": (
        "Mixed",
        "Mixed m = a[i]; m.n += m.x; m.a += m.b; m.c[1] += m.c[0] + m.c[2] + m.c[3]; b[i] = m;",
        *["global.16"] * 2,
    ),
    "padded": ("Padded", "Padded v = a[i]; v.x += v.y * v.z; b[i] = v;", "global.16", "global.16"),
    "without the first": ("float4", "float4 v = a[i]; v.x = 1; b[i] = v;", "global.4 global.8", "global.16"),
    "union": ("Either", "float4 v = a[i].v; v.x += v.y; b[i].v = v;", "global.16", "global.16"),
    "may be the same": (
        "float4",
        "b[i].x = a[i].x; b[i].y = a[i].y; b[i].z = a[i].z; b[i].w = a[i].w;",
        *["4 global.4"] * 2,
    ),
    "aligned as its members": (
        "Plain",
        "Plain v = a[i]; v.x += v.y * v.w; b[i] = v;",
        *["4 global.4"] * 2,
    ),
    "three": ("float3", "float3 v = a[i]; v.x += v.y * v.z; b[i] = v;", "3 global.4", "3 global.4"),
    "volatile": ("volatile int2", "b[i].x = a[i].x; b[i].y = a[i].y;", "2 global.4", "2 global.4"),
}


def typed(type_: str, body: str) -> str:
    return f"{type_} *a = ({type_} *)p, *b = ({type_} *)q; {body}"


OF_COMPONENTS = [
    typed(type_, f"{type_} v = a[i]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2; b[i] = v;")
    for type_ in ("Plain", "float4")
]
OF_TYPES = kernels(
    "__global__ void k(void *p, void *q) { int i = threadIdx.x;",
    [*(typed(*row[:2]) for row in KERNELS.values()), *OF_COMPONENTS],
    STRUCTURES,
    form="cuda",
)


def profile_of(body: str) -> Mapping[str, Any]:
    """Profile a kernel that has arrays `a` and `b` of its type."""
    buffers = np.arange(32 * ITEMS, dtype=np.uint8), np.zeros(32 * ITEMS, np.uint8)
    return characterize(Launch.on_grid(OF_TYPES[body], 1, ITEMS, buffers)).launch


@pytest.mark.parametrize("name", KERNELS)
def test_accesses_of_a_kernel(name: str) -> None:
    type_, body, loads, stores = KERNELS[name]
    instructions = profile_of(typed(type_, body))["instructions"]
    assert (of_an_item(instructions["loads"]), of_an_item(instructions["stores"])) == (loads, stores)
    assert not {"copies", "vectors"} & instructions.keys()


def of_an_item(counts: dict[str, dict[str, int]]) -> str:
    numbers = {f"{memory}.{n}": times for memory, widths in counts.items() for n, times in widths.items()}
    return " ".join(kind if n == ITEMS else f"{n // ITEMS} {kind}" for kind, n in numbers.items())


AS_DRIVERS_DO = [
    ("-O3", "float4 v = a[i]; b[i] = (float4)(v.x * 2, v.y + 1, v.z - v.w, v.w);", "global.16", 32),
    ("-O2", "float4 v = a[i]; b[i] = v.x * v.y + v.z * v.w;", "global.16", 32),
    ("-Oz", "float4 v = a[i]; b[i] = v.x * v.y + v.z * v.w;", "4 global.4", 128),
    ("-O3", "b[i].x = a[i].x + a[i].y;", "global.8", 32),
]
PRODUCTS = [
    ("float4 v = a[i]; b[i] = (float4)(v.x * 2, v.y + 1, v.z * v.w, v.w);", 2),  # The second of all four
    ("float4 v = a[i] + b[i]; b[i].x = v.x * v.w;", 1),
    ("float4 v = a[i] * b[i]; b[i].x = v.x + v.y;", 2),
    ("float4 v = a[i] * b[i]; for (int k = 0; k < 5; k++) v *= a[k]; b[i].z = v.w;", 6),
    ("b[i] = a[i] * a[i];", 4),
    ("float4 v = a[i] * b[i]; b[i] = v + v[(int)a[0].x & 3];", 4),
]
OPENCL = {
    level: kernels(
        "kernel void k(global const float4 *a, global float4 *b) { int i = get_global_id(0);",
        [*(row[1] for row in AS_DRIVERS_DO if row[0] == level), *(body for body, _ in PRODUCTS)],
        options=[level],
    )
    for level in ("-O3", "-O2", "-Oz")
}


def profile_of_vectors(level: str, body: str) -> Mapping[str, Any]:
    a, b = np.arange(4 * ITEMS, dtype=np.float32), np.zeros(4 * ITEMS, np.float32)
    return characterize(OPENCL[level][body], ITEMS, ITEMS, [a, b]).launch


@pytest.mark.parametrize(("level", "body", "loads", "sectors"), AS_DRIVERS_DO)
def test_opencl_c_has_vectors_as_drivers_do(level: str, body: str, loads: str, sectors: int) -> None:
    launch = profile_of_vectors(level, body)
    assert of_an_item(launch["instructions"]["loads"]) == loads
    assert launch["sub_groups"]["32"]["sectors_32_read"] == sectors


@pytest.mark.parametrize(("body", "products"), PRODUCTS)
@pytest.mark.parametrize("level", ["-O3", "-Oz"])
def test_operations_are_those_of_used_elements(level: str, body: str, products: int) -> None:
    assert profile_of_vectors(level, body)["instructions"]["fp32"]["mul"] == products * ITEMS


def test_a_vector_needs_no_more_registers_than_its_components() -> None:
    single, vector = (profile_of(body)["geometry"] for body in OF_COMPONENTS)
    assert vector["kept_values"] == single["kept_values"] == 4
    assert vector["registers"] <= single["registers"]


# A kernel that loads and stores vectors by their elements, some of them at a distance that depends on %i
BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4}
SIZE = 64
POINTERS = {"%p": 1, "%q": 1, "%s": 3, "%pi": 1}


@st.composite
def functions(draw: st.DrawFn) -> ir.Function:
    is_unaliased = draw(st.booleans())
    attributes = "noalias" if is_unaliased else ""
    parameters = [
        ir.FunctionParameter("ptr addrspace(1)", "%p", attributes),
        ir.FunctionParameter("ptr addrspace(1)", "%q", attributes),
        ir.FunctionParameter("ptr addrspace(3)", "%s"),
        ir.FunctionParameter("i64", "%i"),
        *(ir.FunctionParameter(type_, f"%x.{type_}") for type_ in BYTES),
    ]
    row = "getelementptr [16 x i8], ptr addrspace(1) %p, i64 %i"
    body = [ir.Instruction(row, "getelementptr", "ptr addrspace(1)", "%pi")]
    values = {type_: [f"%x.{type_}"] for type_ in BYTES}
    for number, (stores, pointer, type_, offset) in enumerate(draw(interleaved())):
        if pointer == "barrier":
            body.append(ir.Instruction("call spir_func void @_Z7barrierj(i32 1)", "call"))
            continue
        space, address = f"ptr addrspace({POINTERS[pointer]})", f"%a{number}"
        step = f"getelementptr inbounds i8, {space} {pointer}, i64 {offset}"
        body.append(ir.Instruction(step, "getelementptr", space, address))
        known = offset & -offset or 16
        at = f"{space} {address}, align {draw(st.sampled_from((known, min(known, BYTES[type_]))))}"
        if stores:
            value = draw(st.sampled_from(values[type_]))
            body.append(ir.Instruction(f"store {type_} {value}, {at}", "store"))
        else:
            body.append(ir.Instruction(f"load {type_}, {at}", "load", type_, f"%v{number}"))
            values[type_].append(f"%v{number}")
    body.append(ir.Instruction("ret void", "ret"))
    return ir.Function("k", parameters, {"%entry": ir.Block("%entry", body)}, True, 0, {})


Step = tuple[bool, str, str, int]
"""Whether it stores, its pointer or ``barrier``, type and offset."""


@st.composite
def interleaved(draw: st.DrawFn) -> list[Step]:
    """The elements of a few vectors, in any order."""
    type_ = draw(st.sampled_from(sorted(BYTES)))
    rows: list[list[Step]] = []
    for _ in range(draw(st.integers(1, 4))):
        stores, pointer = draw(st.booleans()), draw(st.sampled_from(("barrier", *sorted(POINTERS))))
        offsets = draw(st.permutations(range(0, 16, BYTES[type_])))
        rows.append(
            [(stores, pointer, type_, offset) for offset in offsets][: 1 if pointer == "barrier" else 16]
        )
        if draw(st.booleans()):
            type_ = draw(st.sampled_from(sorted(BYTES)))
    if draw(st.booleans()):
        return [step for row in rows for step in row]
    steps = []
    while rows := [row for row in rows if row]:
        steps.append(draw(st.sampled_from(rows)).pop(0))
    return steps


def run(function: ir.Function, distance: int, index: int) -> tuple[dict[str, Any], list[bytes]]:
    """Interpret a function; return its values and the memory at each barrier and at the end.

    `distance` is that of `q` from `p`. A barrier changes all memory, as other work-items may.
    """
    memory = {space: bytearray(range(k, k + 3 * SIZE)) for k, space in ((0, 1), (50, 3))}
    values: dict[str, Any] = {"%p": (1, 0), "%q": (1, distance), "%s": (3, 0), "%i": index}
    values |= {f"%x.{type_}": bytes(range(200, 200 + n)) for type_, n in BYTES.items()}
    seen = []
    for i in function.instructions():
        operands = [values.get(o.value, o.value) for o in i.operands]
        match i.opcode:
            case "getelementptr":
                (space, start), step = operands[1], int(operands[2])
                values[str(i.result)] = space, start + step * (16 if "[16 x i8]" in i.text else 1)
            case "load" | "store":
                type_ = i.operands[0].type
                space, start = operands[1]
                assert start % int(i.text.rpartition(" ")[2]) == 0
                if i.opcode == "load":
                    values[str(i.result)] = bytes(memory[space][start : start + nbytes(type_)])
                else:
                    memory[space][start : start + nbytes(type_)] = operands[0]
            case "extractelement":
                size = nbytes(i.type)
                values[str(i.result)] = operands[0][size * int(operands[1]) :][:size]
            case "insertelement":
                whole = bytearray(nbytes(i.type) if operands[0] == "zeroinitializer" else operands[0])
                size = len(operands[1])
                whole[size * int(operands[2]) : size * (int(operands[2]) + 1)] = operands[1]
                values[str(i.result)] = bytes(whole)
            case "bitcast":
                values[str(i.result)] = operands[0]
            case "call" | "ret":
                seen += [bytes(part) for part in memory.values()]
                for part in memory.values():
                    part[:] = bytes(byte ^ 0x55 for byte in part)
    return {name: value for name, value in values.items() if name.startswith("%v")}, seen


def nbytes(type_: str) -> int:
    vector = re.fullmatch(r"<(\d+) x (.*)>", type_)
    return int(vector[1]) * BYTES[vector[2]] if vector else BYTES[type_]


@settings(max_examples=60)
@given(functions())
def test_merging_changes_neither_values_nor_memory(function: ir.Function) -> None:
    is_unaliased = "noalias" in function.parameters[0].attributes
    cases = list(itertools.product([SIZE] if is_unaliased else [0, 16, SIZE], (0, 1)))
    before = [run(function, *case) for case in cases]
    merge_accesses(function, {})
    assert [run(function, *case) for case in cases] == before


IDS = """kernel void k(global float *a, global const float *b, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += b[i * 32 + get_local_id(0)] * get_group_id(0);
  a[get_global_id(0)] = s;
}"""
IDS_CUDA = """__global__ void k(float *a, const float *b, int n) {
  float s = 0;
  BEFORE
  for (int i = 0; i < n; i++) s += b[i * 32 + TX] * BX;
  a[blockIdx.x * blockDim.x + threadIdx.x] = s;
}"""


def with_ids(source: str, form: Any, *, published: bool = False) -> int:
    """How many instructions a kernel of 64 work-items in groups of 16 executes, with 20 iterations."""
    args = (np.zeros(64, np.float32), np.zeros(1024, np.float32), np.int32(20))
    launch = Launch(Kernel.from_source(source, "k", form=form), (64,), (16,), args)
    found = characterize_launch(launch, options=Options(published=published))
    return int(found.metrics["total_instruction_count"] or 0)


@pytest.mark.parametrize("form", ["cuda", "hip"])
def test_an_id_in_a_loop_costs_what_it_costs_before_it(form: str) -> None:
    inside = IDS_CUDA.replace("BEFORE", "").replace("TX", "threadIdx.x").replace("BX", "blockIdx.x")
    outside = IDS_CUDA.replace("BEFORE", "int TX = threadIdx.x, BX = blockIdx.x;")
    # At -O3 code may differ by an instruction of a work-item; an id in the loop would be 20 of them.
    assert abs(with_ids(inside, form) - with_ids(outside, form)) <= 64


def test_the_published_conventions_count_the_program_as_it_is() -> None:
    # Two ids, an address and a conversion in each of 20 iterations, of which one is left.
    published, own = (with_ids(IDS, "opencl-c", published=each) for each in (True, False))
    assert published - own == 64 * 4 * 19
