"""Warp operations, tiles and OpenCL's sub-groups, each against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.errors import KernelFault
from crosscast.kernel import Kernel, Launch
from support.launching import kernels
from support.refusals import refusals

LANES = 32
X = np.random.default_rng(0).integers(0, 50, 96).astype(np.int32)
ALL = "0xffffffffu"
Expected = Callable[[np.ndarray, np.ndarray], Any]  # of the values and numbers of one warp's lanes


def bits(chosen: np.ndarray) -> int:
    return sum(1 << int(lane) for lane in np.flatnonzero(chosen))


def alike(x: np.ndarray) -> list[int]:
    return [bits(x == value) for value in x]


def taken(x: np.ndarray, lanes: np.ndarray, inside: np.ndarray) -> np.ndarray:
    return np.where(inside, x[np.clip(lanes, 0, LANES - 1)], x)


def by_tile(f: Callable[[np.ndarray], Any], width: int) -> Expected:
    def whole(x: np.ndarray, lane: np.ndarray) -> np.ndarray:
        return np.concatenate([np.broadcast_to(f(part), width) for part in x.reshape(-1, width)])

    return whole


CUDA: dict[str, Expected] = {
    f"__shfl_sync({ALL}, x, 5)": lambda x, i: x[5],
    f"__shfl_sync({ALL}, x, i + 3)": lambda x, i: x[(i + 3) % 32],
    f"__shfl_sync({ALL}, x, 2, 8)": lambda x, i: x[i // 8 * 8 + 2],
    f"__shfl_up_sync({ALL}, x, 3)": lambda x, i: taken(x, i - 3, i >= 3),
    f"__shfl_up_sync({ALL}, x, 3, 8)": lambda x, i: taken(x, i - 3, i % 8 >= 3),
    f"__shfl_down_sync({ALL}, x, 3)": lambda x, i: taken(x, i + 3, i + 3 < 32),
    f"__shfl_down_sync({ALL}, x, 3, 16)": lambda x, i: taken(x, i + 3, i % 16 + 3 < 16),
    f"__shfl_xor_sync({ALL}, x, 9)": lambda x, i: x[i ^ 9],
    f"(int)__shfl_xor_sync({ALL}, (double)x, 1)": lambda x, i: x[i ^ 1],
    f"(int)__shfl_down_sync({ALL}, (long long)x, 1)": lambda x, i: taken(x, i + 1, i < 31),
    f"(int)__half2float(__shfl_xor_sync({ALL}, __int2half_rn(x), 1))": lambda x, i: x[i ^ 1],
    f"(int)__high2float(__shfl_xor_sync({ALL}, __floats2half2_rn(1, x), 1))": lambda x, i: x[i ^ 1],
    f"(int)__bfloat162float(__shfl_sync({ALL}, __float2bfloat16(x), 3))": lambda x, i: x[3],
    "(int)__low2float(__shfl_xor(__floats2bfloat162_rn(x, 1), 2))": lambda x, i: x[i ^ 2],
    f"__all_sync({ALL}, x < 50)": lambda x, i: 1,
    f"__all_sync({ALL}, x < 25)": lambda x, i: int((x < 25).all()),
    f"__any_sync({ALL}, x == 7)": lambda x, i: int((x == 7).any()),
    f"__ballot_sync({ALL}, x > 20)": lambda x, i: bits(x > 20),
    "__activemask()": lambda x, i: 0xFFFFFFFF,
    "lane_id()": lambda x, i: i,
    "__popc(lanes_before()) + 100 * __popc(lanes_behind())": lambda x, i: i + 100 * (31 - i),
    f"__match_any_sync({ALL}, x / 8)": lambda x, i: alike(x // 8),
    f"__reduce_add_sync({ALL}, x)": lambda x, i: x.sum(),
    f"__reduce_min_sync({ALL}, x - 30)": lambda x, i: x.min() - 30,
    f"__reduce_max_sync({ALL}, (unsigned)x)": lambda x, i: x.max(),
    f"__reduce_and_sync({ALL}, (unsigned)x | 4)": lambda x, i: np.bitwise_and.reduce(x | 4),
    f"__reduce_or_sync({ALL}, (unsigned)x)": lambda x, i: np.bitwise_or.reduce(x),
    f"__reduce_xor_sync({ALL}, (unsigned)x)": lambda x, i: np.bitwise_xor.reduce(x),
    "__shfl(x, 4)": lambda x, i: x[4],
    "__shfl_down(x, 1)": lambda x, i: taken(x, i + 1, i < 31),
    "__ballot(x > 20)": lambda x, i: bits(x > 20),
    "tile.shfl(x, 1)": lambda x, i: x[i // 8 * 8 + 1],
    "tile.shfl_down(x, 2)": lambda x, i: taken(x, i + 2, i % 8 < 6),
    "tile.shfl_xor(x, 1)": lambda x, i: x[i ^ 1],
    "tile.ballot(x > 20)": by_tile(lambda x: bits(x > 20), 8),
    "tile.any(x > 45)": by_tile(lambda x: int((x > 45).any()), 8),
    "tile.all(x > 5)": by_tile(lambda x: int((x > 5).all()), 8),
    "tile.match_any(x / 8)": by_tile(lambda x: alike(x // 8), 8),
    "tile.thread_rank() + 100 * (tile.meta_group_rank() % 4)": lambda x, i: i % 8 + 100 * (i // 8),
    "cg::reduce(tile, x, cg::plus<int>())": by_tile(np.sum, 8),
    "cg::reduce(tile, x, cg::greater<int>())": by_tile(np.max, 8),
    "(int)cg::reduce(tile, (half)x, cg::less<half>())": by_tile(np.min, 8),
    "cg::reduce(tile, Last{x, i}, [](Last a, Last b) { return a.i > b.i ? a : b; }).x": lambda x, i: x[i | 7],
    "cg::reduce(cg::coalesced_threads(), x, cg::plus<int>())": lambda x, i: x.sum(),
    "i % 3 ? 0 : cg::reduce(cg::coalesced_threads(), x, cg::plus<int>())": lambda x, i: (
        (i % 3 == 0) * x[::3].sum()
    ),
    "i % 3 ? 0 : cg::coalesced_threads().shfl_up(x, 1)": lambda x, i: (i % 3 == 0) * x[np.maximum(i - 3, 0)],
    "cg::labeled_partition(tile, x % 3).thread_rank()": by_tile(
        lambda x: [np.sum(x[:k] % 3 == v % 3) for k, v in enumerate(x)], 8
    ),
    "cg::binary_partition(cg::coalesced_threads(), x > 20).size()": lambda x, i: np.where(
        x > 20, np.sum(x > 20), np.sum(x <= 20)
    ),
    "cg::inclusive_scan(tile, x, cg::greater<int>())": by_tile(np.maximum.accumulate, 8),
    "cg::exclusive_scan(tile, x, cg::greater<int>())": by_tile(
        lambda x: np.maximum.accumulate([0, *x[:7]]), 8
    ),
    "sum(cg::tiled_partition(cg::this_thread_block(), 8), s + threadIdx.x / 8 * 8, x)": by_tile(np.sum, 8),
    "(sum(cg::this_thread_block(), s, x), 1)": lambda x, i: 1,
    "(int)(cg::this_grid().num_blocks() + cg::this_grid().block_rank())": lambda x, i: 1,
    "cg::inclusive_scan(tile, x)": by_tile(np.cumsum, 8),
    "cg::exclusive_scan(tile, x)": by_tile(lambda x: np.cumsum(x) - x, 8),
}
"""Expressions on a lane's value `x` and number `i`, and what a warp's lanes get."""

SUB_GROUPS: dict[str, Expected] = {
    "sub_group_broadcast(x, 3)": lambda x, i: x[3],
    "sub_group_shuffle(x, 31 - get_sub_group_local_id())": lambda x, i: x[::-1],
    "sub_group_shuffle_xor((float)x, 5)": lambda x, i: x[i ^ 5],
    "sub_group_shuffle_down(x, 2)": lambda x, i: taken(x, i + 2, i < 30),
    "sub_group_shuffle_up((long)x, 1)": lambda x, i: taken(x, i - 1, i > 0),
    "sub_group_all(x < 50)": lambda x, i: 1,
    "sub_group_any(x == 7)": lambda x, i: int((x == 7).any()),
    "sub_group_reduce_add(x)": lambda x, i: x.sum(),
    "sub_group_reduce_max((float)x)": lambda x, i: x.max(),
    "sub_group_scan_inclusive_add(x)": lambda x, i: np.cumsum(x),
    "(int)(sub_group_reduce_add((ulong)x << 40) >> 40)": lambda x, i: x.sum(),
    "(int)(sub_group_reduce_max(((long)x - 60) << 40) >> 40)": lambda x, i: x.max() - 60,
    "(int)sub_group_scan_exclusive_min((long)x)": lambda x, i: [-1, *np.minimum.accumulate(x)[:-1]],
    "sub_group_ballot(x > 50).x": lambda x, i: sum(1 << int(k) for k in i[x > 50]),
    "sub_group_inverse_ballot((uint4)(5, 0, 0, 0))": lambda x, i: 5 >> i & 1,
    "sub_group_elect()": lambda x, i: i == 0,
    "sub_group_broadcast_first(x)": lambda x, i: x[0],
    "sub_group_clustered_reduce_add(x, 8)": by_tile(np.sum, 8),
    "sub_group_clustered_reduce_max((float)x, 4)": by_tile(np.max, 4),
    "get_sub_group_local_id()": lambda x, i: i,
    "get_sub_group_size()": lambda x, i: 32,
    "get_max_sub_group_size()": lambda x, i: 32,
    "get_num_sub_groups()": lambda x, i: 3,
    "(sub_group_barrier(CLK_LOCAL_MEM_FENCE), x)": lambda x, i: x,
}


def check(kernel: Kernel, rows: dict[str, Expected]) -> None:
    out = np.zeros((len(rows), X.size // LANES, LANES), np.int32)
    characterize(Launch(kernel, (X.size,), (X.size,), (X, out)))
    for (text, expected), found in zip(rows.items(), out, strict=True):
        for x, of_warp in zip(X.reshape(-1, LANES), found, strict=True):
            wanted = np.broadcast_to(np.asarray(expected(x, np.arange(LANES)), np.int64), LANES)
            np.testing.assert_array_equal(of_warp, wanted.astype(np.uint32).view(np.int32), err_msg=text)


REGISTERS = {"lane_id": "laneid", "lanes_before": "lanemask_lt", "lanes_behind": "lanemask_gt"}


def test_warp_operations_of_cuda() -> None:
    rows = "\n".join(f"out[96 * {k} + threadIdx.x] = {text};" for k, text in enumerate(CUDA))
    registers = "\n".join(
        f"__device__ unsigned {name}() {{ unsigned r;\n"
        f'asm volatile("mov.u32 %0, %%{register};" : "=r"(r)); return r; }}'
        for name, register in REGISTERS.items()
    )
    source = f"""
        #include <cooperative_groups.h>
        #include <cuda_bf16.h>
        namespace cg = cooperative_groups;
        struct Last {{ int x, i; }};
        {registers}
        __device__ int sum(cg::thread_group group, int *s, int x) {{
          s[group.thread_rank()] = x;
          group.sync();
          int all = 0;
          for (unsigned k = 0; k < group.size(); k++) all += s[k];
          group.sync();
          return all;
        }}
        __global__ void k(const int *in, int *out) {{
          int x = in[threadIdx.x], i = threadIdx.x % 32;
          __shared__ int s[96];
          auto tile = cg::tiled_partition<8>(cg::this_thread_block());
          {rows}
        }}"""
    check(Kernel.from_source(source, "k", form="cuda"), CUDA)


def test_functions_of_sub_groups() -> None:
    rows = "\n".join(f"out[96 * {k} + get_local_id(0)] = {text};" for k, text in enumerate(SUB_GROUPS))
    source = f"""
        #pragma OPENCL EXTENSION cl_khr_subgroups : enable
        kernel void k(global const int *in, global int *out) {{ int x = in[get_local_id(0)]; {rows} }}"""
    check(Kernel.from_source(source, "k", standard="3.0"), SUB_GROUPS)


def run(body: str, *, threads: int = 64, **of_kernel: Any) -> np.ndarray:
    kernel = RUN_KERNELS.get(body) or kernels(HEAD, [body], **{"form": "cuda", **of_kernel})[body]
    out = np.zeros(threads, np.uint64)
    characterize(Launch.on_grid(kernel, 1, threads, (out, np.int32(40))))
    return out


RUNS: dict[str, list[int]] = {
    # Lanes take part that are there, those that have ended are not waited for, and a warp may lack some.
    "if (i % 2) o[i] = __activemask(); else o[i] = __ballot_sync(0x55555555, i > 40);": [
        *[0, 0xAAAAAAAA] * 16,
        *[0x55555400, 0xAAAAAAAA] * 16,
    ],
    "if (i >= n) return; o[i] = __reduce_add_sync(0xffffffff, 1u);": [32] * 32 + [8] * 8 + [0] * 24,
    # Warps loop as often as each has to.
    "for (int k = 0; k <= i / 32; k++) { o[i] += __reduce_max_sync(~0u, (unsigned)i); __syncwarp(); }": [
        *[31] * 32,
        *[126] * 32,
    ],
    # A thread may end before a barrier, and barriers of the block stand between operations of warps.
    "__shared__ int t[64]; if (i >= n) return; t[i] = i; __syncthreads(); o[i] = t[n - 1 - i];": [
        *range(39, -1, -1),
        *[0] * 24,
    ],
    "__shared__ unsigned part[2]; unsigned s = __reduce_add_sync(~0u, (unsigned)i);"
    " if (i % 32 == 0) part[i / 32] = s; __syncthreads();"
    " if (i < 32) { s = i < 2 ? part[i] : 0; s = __reduce_add_sync(~0u, s); if (i == 0) part[0] = s; }"
    " o[i] = __syncthreads_count(i < n); o[i] += part[0];": [40 + 64 * 63 // 2] * 64,
}
HEAD = "__global__ void k(unsigned long long *o, int n) { int i = threadIdx.x;"
RUN_KERNELS = kernels(HEAD, RUNS, form="cuda")


@pytest.mark.parametrize("body", RUNS)
def test_lanes_that_are_there_take_part(body: str) -> None:
    assert run(body).tolist() == RUNS[body]


def test_a_warp_may_have_fewer_lanes() -> None:
    assert run("o[i] = __ballot_sync(~0u, 1);", threads=40)[[0, 39]].tolist() == [0xFFFFFFFF, 0xFF]


def test_lanes_meet_again_behind_a_loop() -> None:
    out = run(
        "for (int k = 0; k < i % 4; k++) o[i] |= __activemask(); o[i] += (long long)__activemask() << 32;"
    )
    inside = [0, 0xEEEEEEEE, 0xEEEEEEEE, 0xEEEEEEEE]
    assert [int(v) & 0xFFFFFFFF for v in out[:4]] == inside
    assert {int(v) >> 32 for v in out} == {0xFFFFFFFF}


AGGREGATED = {
    "shuffle": ("", "x = __shfl_sync(m, x, 2); o[i] = x;"),
    "coalesced group": ("", "o[i] = cooperative_groups::coalesced_threads().shfl(x, 0);"),
    "tile": (
        "",
        "o[i] = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()).shfl(x, 2);",
    ),
    "function": (
        "__device__ int first(int v) { return __shfl_sync(0xfffffffcu, v, 2); }",
        "o[i] = first(x);",
    ),
    "template": (
        "template <class T> __device__ T lane(unsigned m, T v, int l) { return __shfl_sync(m, v, l); }"
        "template <class T> __device__ T first(unsigned m, T v) { return lane(m, v, 2); }",
        "o[i] = first(m, x);",
    ),
}


@pytest.mark.parametrize(("functions", "end"), AGGREGATED.values(), ids=AGGREGATED)
def test_lanes_that_give_no_value_need_not_have_one(functions: str, end: str) -> None:
    def profiled(first: str) -> tuple[list[int], Any]:
        source = (
            f"#include <cooperative_groups.h>\n{functions} __global__ void k(int *o, int *n) {{"
            "int i = threadIdx.x; if (i < 2) return;"
            f"unsigned m = __activemask(); int x{first};"
            f"if (i == 2) x = atomicAdd(n, __popc(m)) + 7; {end} }}"
        )
        out, count = np.zeros(LANES, np.int32), np.zeros(1, np.int32)
        kernel = Kernel.from_source(source, "k", form="cuda")
        profile = characterize(Launch.on_grid(kernel, 1, LANES, (out, count)))
        return [*count.tolist(), *out.tolist()], profile.metrics

    found, with_zero = profiled(""), profiled(" = 0")
    assert found[0] == [30, 0, 0, *[7] * 30]
    assert found == with_zero


def test_wavefronts_of_64_lanes() -> None:
    out = run("o[i] = __ballot(i >= 4) + warpSize;", form="hip", options=("-mwavefrontsize64",))
    assert set(out.tolist()) == {(0xFFFFFFFFFFFFFFF0 + 64) % 2**64}


@refusals("body message")
def test_lanes_that_wait_for_ever_are_a_fault(body: str, message: str) -> None:
    with pytest.raises(KernelFault, match=message):
        run(body)


def test_a_warp_operation_counts_as_one_instruction() -> None:
    def profile(body: str) -> Any:
        source = f"__global__ void k(int *o) {{ int x = o[threadIdx.x]; {body}; o[threadIdx.x] = x; }}"
        arguments = (np.zeros(64, np.int32),)
        return characterize(Launch.on_grid(Kernel.from_source(source, "k", form="cuda"), 1, 64, arguments))

    plain, shuffled = profile("x += 3"), profile("x = __shfl_xor_sync(~0u, x, 1)")
    del plain.metrics["opcode"], shuffled.metrics["opcode"]  # one is an addition, the other one a call
    assert plain.metrics == shuffled.metrics
    assert shuffled.metrics["total_barriers_hit"] == 0


def test_the_profile_does_not_depend_on_threads() -> None:
    source = """
        __global__ void k(int *o) {
          int i = blockIdx.x * blockDim.x + threadIdx.x, s = i * 7919 % 101 % 7;
          for (int k = 0; k < s; k++) o[i] += __popc(__activemask()) + __shfl_xor_sync(__activemask(), s, 1);
        }"""
    launch = Launch.on_grid(Kernel.from_source(source, "k", form="cuda"), 8, 128, (np.zeros(1024, np.int32),))
    found = [characterize(launch, threads=n).metrics for n in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
