"""What a launch asks of compute units, in cases that are small enough to count by hand.

Registers on AMD GPUs are as LLVM's backend for them allocates them.
"""

import re
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Local
from crosscast.characterization.frontend import load_kernel
from crosscast.characterization.launch_facts import AmdRegisters, amd_registers, for_amd
from crosscast.characterization.run import Options, characterize_launch
from crosscast.kernel import Launch, Program
from support.launching import kernels


def geometry(source: str, global_size: Any, local_size: Any, *args: Any, **more: Any) -> dict[str, Any]:
    kernel = Kernel.from_source(source, "k", **more)
    found = crosscast.characterize(kernel, global_size=global_size, local_size=local_size, args=list(args))
    counted: dict[str, Any] = found.launch["geometry"]
    return counted


PLAIN = "kernel void k(global float *a) { a[get_global_linear_id()] += 1; }"


@pytest.mark.parametrize(
    ("global_size", "local_size", "groups", "of_32", "of_64"),
    [
        ((30, 5), (3, 5), 10, 10, 10),
        ((48,), (48,), 1, 2, 1),
        ((100,), (64,), 2, 2 + 2, 1 + 1),
        ((20, 10), (16, 8), 4, 4 + 1 + 1 + 1, 2 + 1 + 1 + 1),
        ((4,), (8,), 1, 1, 1),
        ((40, 2), (32, 4), 2, 2 + 1, 1 + 1),
    ],
)
def test_sub_groups_are_of_whole_work_groups(
    global_size: tuple[int, ...], local_size: tuple[int, ...], groups: int, of_32: int, of_64: int
) -> None:
    found = geometry(PLAIN, global_size, local_size, np.zeros(1024, np.float32), standard="2.0")
    assert found["groups"] == groups
    assert found["group_items"] == np.prod(np.minimum(global_size, local_size))
    assert (found["sub_groups_32"], found["sub_groups_64"]) == (of_32, of_64)


def test_local_memory_is_as_declared() -> None:
    source = """kernel void k(global float *a, local float *l, local int *m) {
      local float s[3]; local double t[5];
      int i = get_local_id(0);
      s[i % 3] = a[i]; t[i % 5] = i; l[i] = 1; m[i] = 2;
      barrier(CLK_LOCAL_MEM_FENCE);
      a[i] = s[0] + t[0] + l[0] + m[0];
    }"""
    found = geometry(source, 8, 8, np.zeros(8, np.float32), Local(100), Local(32))
    assert found["local_bytes"] == {"static": 12 + 40, "arguments": 132}
    none = geometry(PLAIN, 8, 8, np.zeros(8, np.float32), standard="2.0")
    assert none["local_bytes"] == {"static": 0, "arguments": 0}
    source = """extern __shared__ float t[];
      __global__ void k(float *a) { __shared__ float s[4];
        s[threadIdx.x % 4] = a[threadIdx.x]; t[threadIdx.x] = 1; __syncthreads();
        a[threadIdx.x] = t[0] + s[1]; }"""
    kernel = Kernel.from_source(source, "k", form="cuda")
    launch = crosscast.Launch.on_grid(kernel, 1, 8, (np.zeros(8, np.float32),), shared=64)
    shared = crosscast.characterize(launch).launch["geometry"]["local_bytes"]
    assert shared == {"static": 16, "arguments": 64}


@pytest.mark.parametrize(
    ("body", "registers"),
    [
        # An id and an address are 64 bits; a value is there at the same time as the address.
        ("a[get_global_id(0)] = 1;", 2),
        ("a[get_global_id(0)] += 1;", 2 + 1),
        ("float4 x = vload4(0, a); vstore4(x, 1, a);", 4),
        # Four values live across the barrier, and behind it the address to which the first one goes.
        ("float p = a[0], q = a[1], r = a[2], s = a[3]; barrier(1); a[8] = p; a[9] = q * r; a[10] = s;", 6),
    ],
)
def test_registers_are_the_most_values_that_live_at_once(body: str, registers: int) -> None:
    source = f"kernel void k(global float *a) {{ {body} }}"
    found = geometry(source, 1, 1, np.zeros(16, np.float32), options=["-O3"])
    assert found["registers"] == registers
    assert found["private_bytes"] == 0


def test_private_arrays_are_counted_apart() -> None:
    body = "int t[10]; for (int i = 0; i < 10; i++) t[(i * a[i]) % 10] = i; a[0] = t[a[3]];"
    source = f"kernel void k(global int *a) {{ {body} }}"
    assert geometry(source, 1, 1, np.ones(16, np.int32))["private_bytes"] == 40


SUMS = """kernel void k(global float *a) {
  local float s[9 * 32]; int i = get_local_id(0);
  for (int j = i; j < 9 * 32; j += 8) s[j] = a[j];
  barrier(CLK_LOCAL_MEM_FENCE);
  float p = 0, q = 0;
  #pragma unroll
  for (int y = 0; y < 7; y++)
    #pragma unroll
    for (int x = 0; x < 7; x++) {
      p += s[32 * y + x + i] * a[7 * y + x];
      BETWEEN;
      q += s[32 * (y + 2) + x + i];
    }
  a[i] = p; a[i + 8] = q;
}"""


def loads_of(source: str) -> tuple[int, int]:
    """Loads of local memory of a work-item, and those of them that repeat another."""
    kernel = Kernel.from_source(source, "k", options=["-O2"])
    found = crosscast.characterize(kernel, global_size=8, local_size=8, args=[np.ones(1024, np.float32)])
    classes = found.launch["instructions"]
    once, again = (sum(classes.get(name, {}).get("local", {}).values()) // 8 for name in ("loads", "reloads"))
    return once + again, again


def test_loads_of_local_memory_again_are_known() -> None:
    assert loads_of(SUMS.replace("BETWEEN", "")) == (98, 5 * 7)  # All rows but two are of both sums


@pytest.mark.parametrize("between", ["s[(int)a[x + 900]] = p", "barrier(CLK_LOCAL_MEM_FENCE)"])
def test_what_may_have_changed_is_not_loaded_again(between: str) -> None:
    assert loads_of(SUMS.replace("BETWEEN", between))[1] == 0


READS = [
    # Parts of a load of sixteen bytes
    ("for (int k = 0; k < n; k++) p += s[16 * i + k];", 4, 100),
    ("for (int k = 4; k < n; k++) p += s[(i & 12) + k];", 4, 96),
    ("for (int k = 0; k < n; k++) p += ((double *)s)[2 * i + k];", 8, 100),
    ("p = s[4 * i] + s[4 * i + 3] * s[4 * i + 1] - s[4 * i + 2];", 4, 4),
    # No such parts
    *((f"for (int k = {first}; k < n; k++) {what}", 4, 0) for first, what in (
        (0, "p += s[16 * k + i];"), (0, "p += s[17 * i + k];"), (1, "p += s[16 * i + k];"),
        (0, "p += s[a[k] < 2 ? k : i];"), (0, "{ p += s[16 * i + k]; s[300] = p; }"),
        (0, "p += ((volatile float *)s)[16 * i + k];"),
    )),
    ("p = s[4 * i] + s[4 * i + 1] + s[4 * i + 2];", 4, 0),
    ("p = s[4 * i] + s[4 * i + 3]; s[1] = p; p += s[4 * i + 1] + s[4 * i + 2];", 4, 0),
]  # fmt: skip
"""What is read of local memory, of elements of so many bytes, and how many loads are parts of another."""
READERS = kernels(
    """__global__ void k(float *a, int n) {
      __shared__ float s[2048]; int i = threadIdx.x; float p = 0;
      for (int j = i; j < 2048; j += 8) s[j] = a[j % 1024];
      __syncthreads();""",
    (f"{body} a[i] = p;" for body, *_ in READS),
    form="cuda",
    options=["-O1", "-fno-unroll-loops"],
)


@pytest.mark.parametrize(("body", "nbytes", "parts"), READS)
def test_loads_of_local_memory_that_are_parts_of_sixteen_bytes_are_known(
    body: str, nbytes: int, parts: int
) -> None:
    args = (np.ones(1024, np.float32), np.int32(100))
    classes = crosscast.characterize(READERS[f"{body} a[i] = p;"], 8, 8, args).launch["instructions"]
    assert classes.get("consecutive", {}).get("local", {}) == ({str(nbytes): 8 * parts} if parts else {})


def test_what_a_compiler_keeps_is_loaded_once_and_lives_until_it_is_used_again() -> None:
    kept = geometry(SUMS.replace("BETWEEN", ""), 8, 8, np.ones(1024, np.float32), options=["-O2"])
    # Two rows of seven are loaded before the first is used again, beside two sums and what is added.
    assert 14 <= kept["kept_values"] <= 20
    assert kept["code"] > 200


# -- registers on AMD GPUs

# So many values are alive across a barrier, as each is used after it.
KEEPS = """
__global__ void keeps(float *out, const float *in) {
  float values[VALUES];
  #pragma unroll
  for (int i = 0; i < VALUES; i++) values[i] = in[i * 4096 + threadIdx.x];
  __syncthreads();
  float sum = 0;
  #pragma unroll
  for (int i = 0; i < VALUES; i++) sum = sum * in[threadIdx.x + i] + values[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
IN_A_LOOP = KEEPS.replace("float sum = 0;", "float sum = 0;\n  for (int n = 0; n < 100; n++)")


# Of code that is unrolled, values of an array are in registers.
ROUNDS = """
__global__ void rounds(unsigned *out) {
  unsigned v[8];
  for (int i = 0; i < 8; i++) v[i] = out[i];
  #pragma unroll
  for (int k = 0; k < VALUES; k++) v[k % 8] += v[(k + 1) % 8] ^ (v[(k + 3) % 8] << 7);
  for (int i = 0; i < 8; i++) out[i] = v[i];
}
"""


def cuda(text: str, values: int) -> Program:
    return Program(text.encode(), form="cuda", options=("-O3", f"-DVALUES={values}"))


def registers_of(program: Program, kernel: str) -> AmdRegisters:
    registers = amd_registers(load_kernel(Kernel(program, kernel)))
    assert registers is not None
    return registers


@pytest.mark.parametrize("values", [8, 90])
def test_values_that_fit_are_in_registers(values: int) -> None:
    registers = registers_of(cuda(KEEPS, values), "keeps")
    assert values <= registers.registers <= 128
    assert (registers.spilled, registers.moves) == (0, 0)


def test_spilled_values_are_written_once_and_read_once() -> None:
    registers = registers_of(cuda(KEEPS, 150), "keeps")
    # In CUDA and HIP there are 128, as the compiler allows for work-groups of 1,024.
    assert registers.registers == pytest.approx(128, abs=2)
    assert registers.spilled == pytest.approx(150 - 128, abs=16)
    assert registers.moves == pytest.approx(2 * registers.spilled, rel=0.2)
    assert registers.moves_in_loops == 0


def test_moves_in_loops_are_counted_apart() -> None:
    registers = registers_of(cuda(IN_A_LOOP, 200), "keeps")
    assert 0 < registers.moves_in_loops < registers.moves
    assert 0 < registers.floating_in_loops <= registers.floating


def test_other_kernels_of_a_file_do_not_count() -> None:
    other = "__global__ void other(float *x) { x[0] = x[1] * x[2] + x[3]; }"
    alone, with_other = (registers_of(cuda(ROUNDS + more, 500), "rounds") for more in ("", other))
    assert with_other == alone


@pytest.mark.parametrize(("attribute", "has_all"), [("", True), ("32, 16, 2", False)])
def test_opencl_has_twice_the_registers_but_in_larger_groups(attribute: str, has_all: bool) -> None:
    if attribute:
        attribute = f"__attribute__((reqd_work_group_size({attribute}))) "
    text = KEEPS.replace("__global__ void", f"{attribute}kernel void").replace("float *", "global float *")
    text = text.replace("threadIdx.x", "(int)get_local_id(0)").replace("__syncthreads()", "barrier(1)")
    text = text.replace("blockIdx.x * blockDim.x + (int)get_local_id(0)", "get_global_id(0)")
    registers = registers_of(Program(text.encode(), options=("-DVALUES=180",)), "keeps")
    assert (180 <= registers.registers <= 256) == has_all
    assert (registers.spilled == 0) == has_all


@pytest.mark.parametrize(
    ("bound", "has_all"), [("BLOCK / 2, 1", True), ("2 * BLOCK", False), ("OF_A_MISSING_HEADER", False)]
)
def test_launch_bounds_of_small_groups_leave_more_registers(bound: str, has_all: bool) -> None:
    text = KEEPS.replace("void keeps", f"void __launch_bounds__({bound}) keeps")
    text = text.replace("__global__", "template <int BLOCK> __global__")
    registers = registers_of(cuda(text, 180), "keeps<512>")
    assert (180 <= registers.registers <= 256) == has_all
    assert (registers.spilled == 0) == has_all


FEATURES = """
struct pair { float x, y; };
constant float table[4] = {1, 2, 3, 4};
kernel void other(global int *o) { o[get_global_id(0)] = 1; }
kernel void k(global float *o, struct pair s) {
  int i = get_global_id(0), e;
  o[i] = sin(o[i]) + pow(o[i], 3.0f) + fmax(o[i], 1.0f) + frexp(o[i], &e) + e;
  o[i] = dot((float4)(o[i]), vload4(0, o)); vstore4((float4)(i), 1, o);
  float a[9]; for (int n = 0; n < 9; n++) a[n] = o[n]; o[i] = a[i % 9];
  atomic_add((volatile global int *)o + i, 1);
  local float t[64]; t[i % 64] = o[i]; barrier(1); o[i] = t[63 - i % 64];
  global const void *p = o; o[i] += ((global const float *)p)[i + 1] + table[i % 4] + s.x * s.y;
  o[i] = work_group_reduce_add(o[i]);
  printf("%d of %f", i, o[i]); printf("the ptr is %d", i);
}
"""


def test_features_of_opencl_compile() -> None:
    assert 1 <= registers_of(Program(FEATURES.encode(), standard="2.0"), "k").registers <= 64


def test_programs_without_source_have_none() -> None:
    ir = 'target triple = "spir64-unknown-unknown"\ndefine spir_kernel void @k() {\n  ret void\n}\n'
    assert amd_registers(load_kernel(Kernel.from_ir(ir, "k"))) is None


def test_pointers_have_the_address_spaces_of_amd() -> None:
    text = """
define spir_kernel void @k(ptr addrspace(1) %ptr, ptr addrspace(2) %c) #0 {
  %a = alloca [4 x i32], align 4
  %g = addrspacecast ptr %a to ptr addrspace(4)
  call void @llvm.memcpy.p0.p4.i64(ptr %a, ptr addrspace(4) %g, i64 4, i1 false)
  ret void
}
define spir_kernel void @k2() { ret void }
attributes #0 = { nounwind }
"""
    amd = for_amd(text, "k", 256)
    assert "define amdgpu_kernel void @k(ptr addrspace(1) %ptr, ptr addrspace(4) %c)" in amd
    assert "= alloca [4 x i32], align 4, addrspace(5)" in amd
    assert "addrspacecast ptr addrspace(5) %a to ptr addrspace(0)" in amd
    assert "@llvm.memcpy.p5.p0.i64(ptr addrspace(5) %a, ptr addrspace(0) %g" in amd
    assert "define void @k2()" in amd
    assert re.search(r'#0 = \{ "amdgpu-flat-work-group-size"="1,256" nounwind', amd)


@pytest.mark.parametrize(("values", "is_compiled"), [(8, False), (150, True)])
def test_profiles_have_them_if_a_kernel_needs_many_registers(values: int, is_compiled: bool) -> None:
    arrays = (np.zeros(64, np.float32), np.ones(4096 * values, np.float32))
    kernel = Kernel(cuda(KEEPS, values), "keeps")
    geometry = characterize_launch(Launch(kernel, (64,), (64,), arrays), options=Options()).launch["geometry"]
    assert ("amd" in geometry) == is_compiled
    if is_compiled:
        assert geometry["amd"]["spilled"] > 0
