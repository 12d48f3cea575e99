"""Accesses, and counts by sub-groups: the engine's against an interpreter's and another simulator's."""

import functools
import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from crosscast.characterization import run
from crosscast.characterization.toolchain import compile_opencl
from crosscast.forecasting import read_profiles
from crosscast.kernel import Image, Kernel, Launch, Local
from crosscast.profile import Profile
from support import random_kernels
from support.examples import examples, one_in
from support.interpreter.machine import Trace, interpret
from support.launching import LEVELS, launch, zeros
from support.oracle import CASES as ORACLE_CASES
from support.oracle import ORACLE, needs_oracle, oracle_launch
from support.reference import branch_metrics, least_covering, memory_metrics, same_metrics
from support.sub_group_kernels import CASES, LANGUAGE
from support.sub_groups import (
    access_patterns,
    channel_share,
    distinct_bytes,
    line_uses,
    lines_moved,
    sub_group_counts,
    walks,
)

# To make a failing kernel smaller takes minutes, and another seed is no smaller kernel.
_few = settings(examples(6, fast=3), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
_WIDTHS = (32, 64)
# Every fourth of them also as quite different IR.
_COMPILED = [(name, "-Oz") for name in CASES]
_COMPILED += [(name, ("-O0", "-O3")[number % 2]) for number, name in enumerate([*CASES][::4])]
_CASES = CASES | LANGUAGE
# IR (see `_both`) has no groups of several sizes.
_OF_LANGUAGE = [each for each in product(LANGUAGE, LEVELS) if each != ("any dimension", "-O3")]
_TRIED = [*one_in(8, _COMPILED), *one_in(3, _OF_LANGUAGE)]


@dataclass(frozen=True)
class _Both:
    """A launch, run by the engine and interpreted."""

    profile: Profile
    outputs: list[npt.NDArray[Any]]
    expected_outputs: list[npt.NDArray[Any]]
    metrics: dict[str, float | None]
    expected: dict[str, dict[str, int]]
    walks: dict[str, float]
    distinct: dict[str, dict[str, int]] | None
    channel_share: float | None


def _both(launch: Launch, same: Launch) -> _Both:
    program = launch.kernel.program
    if program.is_optimized:  # The interpreter does not merge accesses, nor the engine those of IR.
        launch = replace(launch, kernel=Kernel.from_ir(compile_opencl(program), launch.kernel.name))
    profile = run.characterize_launch(launch, options=run.Options(threads=1))
    trace = interpret(same)
    outputs, expected = (
        [argument for argument in each.args if isinstance(argument, np.ndarray)] for each in (launch, same)
    )
    counts = {str(width): sub_group_counts(trace, width) for width in _WIDTHS}
    counted = _metrics(trace), counts, walks(trace), distinct_bytes(trace), channel_share(trace)
    return _Both(profile, outputs, expected, *counted)


@functools.cache
def _case(name: str, level: str) -> _Both:
    return _both(_CASES[name].launch(level), _CASES[name].launch(level))


def _metrics(trace: Trace) -> dict[str, float | None]:
    """What the trace says of metrics."""
    reads = [(each.memory, each.offset) for each in trace.accesses if each.kind != "write"]
    writes = [
        (each.memory, each.offset) for each in trace.accesses if each.kind != "read" and not each.failed
    ]
    counts = [sum(each) for each in zip(*trace.executions.values(), strict=True)]
    plain = [
        access.space for access in trace.accesses if trace.sites[access.site].opcode in ("load", "store")
    ]
    barriers = sum(n for site, n in zip(trace.sites, counts, strict=True) if "barrier" in site.callee)
    opcodes: Counter[str] = Counter()
    for site, n in zip(trace.sites, counts, strict=True):
        opcodes[site.opcode] += n
    widths = np.repeat([site.width for site in trace.sites], counts)
    lengths = {"itb": trace.pieces, "ipt": list(map(sum, trace.executions.values()))}
    return {
        **memory_metrics(reads, writes),
        **branch_metrics(trace.outcomes),
        "opcode": least_covering(opcodes.values()),
        "total_instruction_count": len(widths),
        "total_barriers_hit": barriers,
        "work_items": len(trace.executions),
        "work_groups": len({group for group, _ in trace.executions}),
        **{f"{space}_accesses": plain.count(space) for space in ("global", "constant", "local")},
        **{f"min_{name}": min(each) for name, each in lengths.items()},
        **{f"max_{name}": max(each) for name, each in lengths.items()},
        **{f"median_{name}": float(np.median(each)) for name, each in lengths.items()},
        "max_simd_width": int(widths.max()),
        "mean_simd_width": float(widths.mean()),
        "sd_simd_width": float(widths.std()),
        "instructions_per_operand": len(widths) / int(widths.sum()),
        "barriers_per_instruction": (barriers + len(trace.executions)) / len(widths),
    }


def check_sub_groups(profile: Profile, expected: dict[str, dict[str, int]]) -> None:
    """Counts are the trace's, but for two of which the code tells: those are at most the trace's."""
    assert sum(profile.instructions.values()) == profile.metrics["total_instruction_count"]
    for width, counts in expected.items():
        found = dict(profile.launch["sub_groups"][width])
        assert found.pop("sectors_32_read_only") <= counts["sectors_32_read"]
        kinds = profile.launch["instructions"]
        for bits, groups in (("32", ("fp16", "fp32")), ("64", ("fp64",))):
            executed = found.pop(f"sub_group_fp{bits}")
            operations = sum(sum(kinds.get(group, {}).values()) for group in groups)
            operations += kinds.get("conversions", {}).get(f"fp{bits}", 0) * (bits == "64")
            assert executed <= operations <= int(width) * executed
        assert found["same_address_read"] <= counts["same_address_read"]
        assert found | {"same_address_read": counts["same_address_read"]} == counts


# -- the engine


@pytest.mark.parametrize(("name", "level"), _TRIED)
def test_the_engine_does_and_counts_what_the_interpreter_does(name: str, level: str) -> None:
    ran = _case(name, level)
    assert same_metrics(ran.profile.metrics, ran.metrics) == {}
    if not _CASES[name].padded:
        assert all(map(np.array_equal, ran.expected_outputs, ran.outputs))
        # Without optimization an access may be to any of the buffers.
        if name in CASES and ran.distinct is not None and level != "-O0":
            assert ran.profile.launch["distinct_bytes"] == ran.distinct
    assert ran.profile.launch["reuse"]["channel_share"] == pytest.approx(ran.channel_share)
    check_sub_groups(ran.profile, ran.expected)


def _random_launch(made: random_kernels.RandomKernel, level: str) -> Launch:
    kernel = Kernel.from_source(made.source, "k", standard=made.standard, options=(level,))
    return Launch(kernel, made.global_size, made.local_size, tuple(made.arguments()))


@needs_oracle
@pytest.mark.parametrize("case", ORACLE_CASES)
def test_the_engine_counts_what_another_simulator_counted(case: str) -> None:
    ran = _both(oracle_launch(case)[0], oracle_launch(case)[0])
    check_sub_groups(ran.profile, ran.expected)
    for width, counts in json.loads((ORACLE / case / "hardware.json").read_text()).items():
        found = ran.profile.launch["sub_groups"][width]
        assert {key: found[key] for key in counts} == counts


@pytest.mark.parametrize("name", ["gather", "bitonic sort", "histogram", "last groups of 5x3", "tiles"])
def test_threads_do_not_change_the_counts(name: str) -> None:
    launch = CASES[name].launch()
    profile = run.characterize_launch(launch, options=run.Options(threads=3))
    check_sub_groups(profile, _case(name, "-Oz").expected)
    assert profile.metrics == _case(name, "-Oz").profile.metrics
    assert profile.launch["distinct_bytes"] == _case(name, "-Oz").distinct


@_few
@given(st.integers(0, 1 << 20), st.booleans(), st.sampled_from(["-Oz", "-O0", "-O3"]))
def test_the_engine_counts_as_the_reference_does_of_random_kernels(seed: int, wild: bool, level: str) -> None:
    made = random_kernels.make(seed, wild=wild)
    ran = _both(_random_launch(made, level), _random_launch(made, level))
    assert all(map(np.array_equal, ran.expected_outputs, made.outputs()))
    assert all(map(np.array_equal, ran.outputs, made.outputs()))
    assert same_metrics(ran.profile.metrics, ran.metrics) == {}
    if not wild:
        assert ran.profile.launch["distinct_bytes"] == ran.distinct
    check_sub_groups(ran.profile, ran.expected)
    # What barriers separate does not count, and a copy of a structure is several accesses.
    if not wild and not ran.profile.metrics["total_barriers_hit"]:
        assert ran.profile.launch["work_item"] == ran.walks


# -- access patterns and reuse

_STREAMING = """
kernel void add(global const float *a, global const float *b, global float *c) {
  size_t i = get_global_id(0); c[i] = a[i] + b[i];
}
kernel void columns(global const float *a, global float *c) {
  size_t x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);
  c[y * n + x] = a[x * n + y];
}
kernel void gather(global const float *a, global const int *at, global float *c) {
  size_t i = get_global_id(0); c[i] = a[at[i]];
}
kernel void sum(global const float *a, global float *c) {
  size_t i = get_global_id(0), n = get_global_size(0); float s = 0;
  for (int k = 0; k < 6; k++) s += a[(i + k * 40) % n];
  c[i] = s;
}
kernel void product(global const float *a, global const float *b, global float *c) {
  size_t x = get_global_id(0), y = get_global_id(1); float s = 0;
  for (int k = 0; k < 16; k++) s += a[y * 16 + k] * b[k * 16 + x];
  c[y * 16 + x] = s;
}
kernel void wide(global const float4 *a, global double8 *c) {
  size_t i = get_global_id(0); float4 v = a[i]; c[i] = (double8)(v.x, v.y, v.z, v.w, v.x, v.y, v.z, v.w);
}
kernel void fields(global const float *a, global float *c) {
  size_t i = get_global_id(0); global const float *f = a + 16 * i;
  c[i] = f[0] * f[1] + f[2] * f[5] + f[7] * f[11] + f[15];
}
kernel void walk(global const float *a, global float *c, int n) {
  size_t i = get_global_id(0); float s = 0;
  for (int k = 0; k < n; k++) s += a[k * n + i] * a[i * n + n - 1 - k] * a[3 * k];
  c[i] = s;
}
kernel void nested(global const float *a, global float *c, int n) {
  size_t i = get_global_id(0); float s = 0;
  for (int j = 0; j < n; j += 8) for (int k = j; k < j + (int)(i % 8); k++) s += a[k * 2 + i];
  c[i] = s;
}
kernel void ragged(global const float *a, global const int *at, global float *c) {
  size_t i = get_global_id(0); float s = 0;
  for (int k = at[i] % 60; k < 60; k++) { s += a[at[k * 5]]; c[i * 60 + k] = s; }
}
"""


_LAUNCHES: dict[str, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "add": ((4096,), (64,), "abc"),
    "columns": ((32, 32), (16, 8), "ac"),
    "gather": ((1024,), (128,), "axc"),
    "sum": ((1536,), (96,), "ac"),
    "fields": ((256,), (64,), "ac"),
    "product": ((16, 16), (8, 8), "abc"),
    "wide": ((512,), (32,), "aw"),
    "walk": ((64,), (32,), "acn"),
    "nested": ((64,), (32,), "acn"),
    "ragged": ((64,), (16,), "axc"),
}
"""Sizes, and arguments: `x` is an index, `n` a number and `w` wide."""


def _reuse_launch(name: str) -> Launch:
    random = np.random.default_rng(5)
    known: dict[str, Any] = {each: random.random(4096).astype(np.float32) for each in "abc"}
    known |= {"x": random.integers(0, 4096, 4096, dtype=np.int32), "n": np.int32(64), "w": np.zeros((512, 8))}
    size, group, args = _LAUNCHES[name]
    return Launch(Kernel.from_source(_STREAMING, name), size, group, tuple(known[each] for each in args))


@functools.cache
def _streamed(name: str) -> tuple[dict[str, Any], Trace]:
    """What the profile says of a launch, and its trace."""
    profile = run.characterize_launch(_reuse_launch(name), options=run.Options())
    return dict(profile.launch), interpret(_reuse_launch(name))


@pytest.mark.parametrize("name", ["add", "columns", "gather", "sum", "product", "wide", "fields"])
def test_bytes_behind_caches_are_those_of_an_exact_stack(name: str) -> None:
    launch, trace = _streamed(name)
    reuse = launch["reuse"]
    assert (reuse["rate"], reuse["error"]) == (1, 0)
    assert reuse["channel_share"] == pytest.approx(channel_share(trace))
    for line_bytes in (64, 128):
        for together, found in reuse["bytes"][str(line_bytes)].items():
            uses = line_uses(trace, line_bytes, int(together))
            kept = {size: len(uses) if size == "first" else int(size) // line_bytes for size in found}
            expected = {size: line_bytes * lines_moved(uses, n) for size, n in kept.items()}
            assert found == expected, (line_bytes, together)


@pytest.mark.parametrize("name", ["add", "columns", "gather", "sum", "product", "wide"])
def test_neighbours_are_told_apart_by_how_their_addresses_change(name: str) -> None:
    launch, trace = _streamed(name)
    found, expected = launch["access_patterns"], access_patterns(trace)
    assert {key: found[key] for key in expected} == dict(expected)
    assert found["vectorized"]
    assert sum(found[key] for key in ("uniform", "contiguous", "strided", "irregular")) == sum(
        n for key, n in expected.items() if key != "stride_bytes"
    )


@pytest.mark.parametrize("name", ["add", "columns", "gather", "product", "wide", "walk", "nested", "ragged"])
def test_a_work_item_moves_as_far_as_its_own_accesses_are_apart(name: str) -> None:
    launch, trace = _streamed(name)
    assert launch["work_item"] == walks(trace)


def test_sampled_lines_tell_what_all_lines_would() -> None:
    """A naive product of matrices too large to keep all: within the error that the profile states."""
    n = 256
    kernel = Kernel.from_source(_STREAMING.replace("16", str(n)), "product")
    launch = Launch(kernel, (n, n), (16, 16), tuple(np.ones(n * n, np.float32) for _ in range(3)))
    reuse, again = (
        run.characterize_launch(launch, options=run.Options(threads=threads)).launch["reuse"]
        for threads in (1, 2)
    )
    assert reuse == again
    assert 0 < reuse["rate"] < 1
    assert 0 < reuse["error"] < 0.5
    found = reuse["bytes"]["128"]["1"]
    assert found["67108864"] == found["first"] == pytest.approx(3 * 4 * n * n, rel=0.1)
    # A group brings 16 rows of one matrix, and of the other a line of each row: too much to keep.
    expected = (n // 16) ** 2 * (16 * 4 * n + 128 * n)
    assert found["16384"] == pytest.approx(expected, rel=2 * reuse["error"])


@pytest.mark.parametrize(
    ("log", "before"),
    [(10, 0), (10, 10), (10, 16), (10, 300), pytest.param(22, 0, marks=pytest.mark.system)],
)
def test_fields_of_a_structure_that_straight_code_reads_are_fetched_once(log: int, before: int) -> None:
    """Whatever it reads before; and by a sample of lines, which has either both halves or none."""
    others = "".join(f"a[i + {k} * get_global_size(0) / 128] * " for k in range(before))
    source = _STREAMING.replace("c[i] = f[0]", f"c[i] = {others}f[0]")
    a, c = np.zeros(16 << log, np.float32), np.zeros(1 << log, np.float32)
    launch = Launch(Kernel.from_source(source, "fields"), (1 << log,), (256,), (a, c))
    reuse = run.characterize_launch(launch, options=run.Options()).launch["reuse"]
    assert reuse["rate"] < (1 if log < 20 else 1 / 256)
    for together in reuse["bytes"]["64"].values():
        for bits in range(15 if before else 14, 27):
            assert together[str(1 << bits)] == pytest.approx(together["first"], rel=0.05 if before else 0)


def test_a_cache_that_holds_all_lines_misses_each_once_however_few_are_sampled() -> None:
    """A short list that is walked often: more touches of a line than are kept of all of them."""
    source = """kernel void walk(global const int *next, global const float *v, global float *sum, int n) {
        int at = get_global_id(0); float s = 0;
        for (int k = 0; k < n; k++) { s += v[at]; at = next[at]; }
        sum[get_global_id(0)] = s; }"""
    order = np.random.default_rng(4).permutation(4096).astype(np.int32)
    following = np.empty_like(order)
    following[order] = np.roll(order, -1)
    args = (following, np.ones(4096, np.float32), np.zeros(64, np.float32), np.int32(10_000))
    reuse = run.characterize_launch(
        Launch(Kernel.from_source(source, "walk"), (64,), (16,), args), options=run.Options()
    ).launch["reuse"]
    assert reuse["rate"] < 0.01
    for sizes in reuse["bytes"]["64"].values():
        assert sizes["first"] == 2 * 4 * 4096 + 4 * 64  # Lines that are written only are not fetched
        assert {sizes[str(1 << bits)] for bits in range(16, 27)} == {sizes["first"]}


# -- what the reference does not interpret

_OTHERS = """
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void texels(read_only image2d_t a, global float *c) {
  int x = get_global_id(0), y = get_global_id(1);
  c[y * 64 + x] = read_imagef(a, nearest, (int2)(x, y)).x;
}
kernel void copies(global const float *a, global float *c, local float *t) {
  event_t done = async_work_group_copy(t, a + get_group_id(0) * 64, 64, 0);
  wait_group_events(1, &done);
  c[get_global_id(0)] = t[63 - get_local_id(0)];
}
kernel void warps(global const float *a, global float *c) {
  size_t i = get_global_id(0);
  float mine = a[2 * i];
  for (int k = 0; k < 3; k++) {
    mine += sub_group_reduce_add(mine);
    if (get_local_id(0) < 40) mine += a[i + k * 64];
  }
  c[i] = mine;
}
"""


_COUNTED: dict[str, tuple[tuple[tuple[int, ...], tuple[int, ...]], list[int], list[int], int]] = {
    # Sizes; accesses, sectors of 32 bytes and lines of 64 and 128 that are read, and written; wavefronts
    "texels": (((64, 64), (16, 16)), [128, 128 * 16, 128 * 8, 128 * 4], [128, 128 * 4, 128 * 2, 128 * 2], 0),
    # As if neighbours copied neighbours
    "copies": (((256,), (64,)), [8, 32, 16, 8], [8, 32, 16, 8], 8 + 8),
    # They go together: of the second warp only 8 lanes read on.
    "warps": (((64,), (64,)), [2 + 3 * 2, 2 * 8 + 3 * 5, 2 * 4 + 3 * 3, 2 * 2 + 3 * 2], [2, 8, 4, 2], 0),
}


@pytest.mark.parametrize("name", _COUNTED)
def test_texels_copies_and_warps_count_as_counted_by_hand(name: str) -> None:
    sizes, read, written, wavefronts = _COUNTED[name]
    source = Image(np.ones((64, 64, 4), np.float32)) if name == "texels" else np.ones(256, np.float32)
    args = (source, np.zeros(64 * 64, np.float32), *[Local(256)] * (name == "copies"))
    kernel = Kernel.from_source(_OTHERS, name, options=("-cl-std=CL3.0",))
    found = run.characterize_launch(Launch(kernel, *sizes, args), options=run.Options()).launch
    counts, units = found["sub_groups"]["32"], ("accesses", "sectors_32", "lines_64", "lines_128")
    assert [counts[f"{unit}_read"] for unit in units] == read
    assert [counts[f"{unit}_write"] for unit in units] == written
    assert counts["local_wavefronts_32_banks"] == wavefronts


@pytest.mark.parametrize(("dtype", "order", "texel"), [("f4", "RGBA", 16), ("u1", "R", 1), ("f2", "RG", 4)])
def test_texels_are_as_wide_as_the_image_says(dtype: str, order: str, texel: int) -> None:
    kernel = Kernel.from_source(_OTHERS, "texels", options=("-cl-std=CL3.0",))
    shape = (64, 64) if order == "R" else (64, 64, len(order))
    image = Image(np.ones(shape, dtype), order, normalized=dtype == "u1")
    args = (image, np.zeros(64 * 64, np.float32))
    found = run.characterize_launch(Launch(kernel, (64, 64), (64, 1), args), options=run.Options()).launch
    assert found["work"]["global_bytes"] == 64 * 64 * (texel + 4)
    assert found["distinct_bytes"] == {"global": {"read": 64 * 64 * texel, "written": 64 * 64 * 4}}
    pairs = found["access_patterns"]
    assert pairs["contiguous"] == 2 * 64 * 2 * 31, pairs


@pytest.mark.parametrize("repeats", [1_000, 20_000], ids=["few touches", "more than are kept"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_only_line_of_a_kernel_is_read_and_written_back_once(repeats: int, threads: int) -> None:
    source = """kernel void k(volatile global uchar *b, int n) {
      for (int i = 0; i < n; i++) b[i % 3] = b[5];
    }"""
    profile = launch(source, 10, 2, zeros(8, np.uint8), np.int32(repeats), threads=threads)
    for line, together in profile.launch["reuse"]["bytes"].items():
        for sizes in together.values():
            assert set(sizes.values()) == {2 * int(line)}


_LONG_LOOPS = """kernel void k(global const int *table, global const int *ends, global int *out) {
  int g = get_global_id(0), sum = 0;
  for (int i = 0; i < ends[g] && sum <= 1000000; i++) sum += table[(i * 7 + g) % 1000] == g % 3;
  out[g] = sum;
}"""


def test_a_group_that_leaves_more_addresses_than_there_is_room_for_is_counted_exactly() -> None:
    ends = np.arange(200_000, 136_000, -1_000).astype(np.int32)
    profile = launch(_LONG_LOOPS, 64, 64, np.ones(1000, np.int32), ends, zeros(64))
    assert "sub_groups_estimated" not in profile.launch
    # The longest loop of each sub-group reads the table so often; its end is read once.
    longest = {"32": 200_000 + 168_000, "64": 200_000}
    for width, counts in profile.launch["sub_groups"].items():
        sub_groups = 64 // int(width)
        assert counts["accesses_read"] == longest[width] + sub_groups
        assert counts["accesses_write"] == sub_groups


_MANY_PHASES = """kernel void k(global int *out, int n) {
  local int t[256];
  int l = get_local_id(0), sum = 0;
  t[l] = l;
  for (int i = 0; i < n; i++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((l + i) % 3 == 0) t[(l * 7 + i) % 256] += i;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += t[l];
  }
  out[get_global_id(0)] = sum;
}"""


# Of 200 turns the pieces of a group are more than are kept to compare groups by.
@pytest.mark.parametrize("turns", [5, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_groups_that_do_the_same_count_as_many_times_one(turns: int, threads: int) -> None:
    one, many = (
        launch(_MANY_PHASES, 256 * n, 256, zeros(256 * n), np.int32(turns), threads=threads) for n in (1, 6)
    )
    for name in ("itb", "ipt"):
        for of in ("min", "max", "median"):
            assert many.metrics[f"{of}_{name}"] == one.metrics[f"{of}_{name}"]
    assert many.metrics["yokota_branch_entropy"] == pytest.approx(one.metrics["yokota_branch_entropy"])
    for name in ("local_wavefronts_32_banks", "sub_group_instructions_without_phi"):
        for width in ("32", "64"):
            found, each = (profile.launch["sub_groups"][width][name] for profile in (many, one))
            assert found == 6 * each > 0


def test_blocks_of_work_items_that_do_not_fit_count_as_those_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_MOST_STREAM_BYTES", 1 << 25)
    table, ends = np.ones(1000, np.int32), np.full(256, 20_000, np.int32)
    found = launch(_LONG_LOOPS, 256, 256, table, ends, zeros(256)).launch
    assert found["sub_groups_estimated"] is True
    # The end is read with the table, until another access is made in its place.
    assert found["sub_groups"]["32"]["accesses_read"] == pytest.approx(8 * 20_001, rel=1e-4)


def test_the_same_launch_is_sampled_alike_wherever_its_buffers_begin() -> None:
    # Buffers begin at four places in their pages in turn, and these fill whole pieces of 2 MiB.
    file = Path(__file__).parents[2] / "examples" / "saxpy.toml"
    found = [read_profiles(file)[0][0].launch["reuse"] for _ in range(4)]
    assert found[0]["rate"] < 1
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("name", ["5x3x7", "break and continue"])
def test_sampled_lines_do_not_depend_on_launches_before(name: str) -> None:
    # Without optimization, an access may be to any of the buffers.
    first, *others = (
        run.characterize_launch(CASES[name].launch("-O0"), options=run.Options(threads=1)) for _ in range(4)
    )
    assert all(other.launch["reuse"] == first.launch["reuse"] for other in others)


_LOOPS = {
    "for (int j = 0; j < n; j++) sum += x[j] * g;": 10,
    "if (g > 0) for (int k = 0; k < n; k++) for (int j = 0; j < length[k]; j++) sum += x[4 * k + j];": 30,
    # Where the end of a loop differs, or what is written is an address, the code does not tell.
    "for (int k = 0; k < n; k++) sum += x[n * get_group_id(0) + k];": 0,
    "for (int k = 0; k < n; k++) for (int j = 0; j < get_local_id(0); j++) sum += x[j];": 0,
    "for (int k = 0; k < n; k++) if ((g >> k) & 1) for (int j = 0; j < n; j++) sum += x[n * k + j] * sum;": 0,
    "for (int k = 0; k < n; k++) sum += x[(int)x[k]]; x[g] = sum;": 10,
}
"""Bodies, and how often each sub-group reads an address for all of its work-items of one buffer."""


@pytest.mark.parametrize("body", _LOOPS)
def test_reads_of_one_address_by_all_work_items_are_those_that_the_code_tells(body: str) -> None:
    source = f"""kernel void k(global float *x, global const int *length, global float *out, int n) {{
      int g = get_global_id(0); float sum = 0; {body} out[g] = sum;
    }}"""
    arrays = [np.zeros(1024, np.float32), np.full(256, 3, np.int32), np.zeros(1024, np.float32)]
    counts = launch(source, 256, 64, *arrays, np.int32(10)).launch["sub_groups"]
    reads = _LOOPS[body]
    assert [counts[str(width)]["same_address_read"] for width in _WIDTHS] == [reads * 8, reads * 4]


_READS = """
__kernel void reads(%s) {
    int i = get_global_id(0);
    out[i] = x[i] + x[0] + *same;
    %s
}
"""


@pytest.mark.parametrize(
    ("parameters", "statement", "sectors", "shared"),
    [
        ("__global const float *x, __global float *same, __global float *out", "", 0, 8),
        ("__global const float *restrict x, __global float *same, __global float *restrict out", "", 40, 8),
        ("__global float *restrict x, __global float *restrict same, __global float *out", "", 6 * 8, 0),
        ("__global float *restrict x, __global float *same, __global float *out", "x[i] = 1;", 0, 8),
    ],
)
def test_read_only_is_what_restrict_pointers_read_that_the_kernel_does_not_write(
    parameters: str, statement: str, sectors: int, shared: int
) -> None:
    arrays = [np.zeros(256, np.float32) for _ in range(3)]
    kernel = Kernel.from_source(_READS % (parameters, statement), "reads")
    counts = run.characterize_launch(Launch(kernel, (256,), (64,), tuple(arrays)), options=run.Options())
    found = counts.launch["sub_groups"]["32"]
    assert (found["sectors_32_read_only"], found["same_address_read"]) == (sectors, shared)
