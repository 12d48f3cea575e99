"""Registers on AMD GPUs, as LLVM's backend for them allocates them."""

import re

import numpy as np
import pytest

from crosscast.characterization.launch_facts import AmdRegisters, amd_registers, for_amd
from crosscast.characterization.run import Options, characterize_launch
from crosscast.kernel import Kernel, Launch, Program

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
    registers = amd_registers(program, kernel)
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
    assert amd_registers(Program(ir.encode(), form="llvm-ir"), "k") is None


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
