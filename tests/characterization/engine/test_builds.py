"""Whatever a kernel is built for, it computes and counts the same: quickly, in full, for its time alone."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crosscast
from crosscast.characterization import run
from crosscast.characterization.engine import child, llvm
from crosscast.characterization.engine.arguments import copy_back, lay_out
from crosscast.characterization.engine.child import Run
from crosscast.characterization.engine.llvm import build_library, kernel_ir
from crosscast.characterization.frontend import load_kernel
from crosscast.characterization.instrumentation.driver import emit
from crosscast.characterization.instrumentation.strided_code import SLICE_TYPE
from crosscast.errors import KernelFault
from crosscast.kernel import Argument, Kernel, Launch, Local
from crosscast.profile import Profile
from support import random_kernels
from support.examples import examples, one_in
from support.launching import in_shared_memory, kernels, launch, zeros

ITEMS, GROUP = 256, 64
KERNELS = {
    "copies": "b[i] = a[i];",
    "updates": "b[i] = b[i] * 2 + a[i];",
    "branches": "if (a[i] > 100) b[i] = 1; else for (int k = 0; k < a[i]; k++) b[i] += k * a[(i + k) % 256];",
    "waits": "t[l] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); b[i] = t[63 - l];",
    "waits in a loop": """
        t[l] = a[i];
        for (int n = 32; n; n /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (l < n) t[l] += t[l + n];
        }
        if (!l) b[get_group_id(0)] = t[0];""",
    "keeps private arrays": """
        int own[4]; for (int k = 0; k < 4; k++) own[k] = a[i] * k;
        t[l] = own[1]; barrier(CLK_LOCAL_MEM_FENCE); b[i] = own[a[i] & 3] + t[(l + 1) % 64];""",
    "combines": "b[i] = work_group_reduce_add(a[i]) + work_group_scan_inclusive_max(a[i]);",
    "adds atomically": "atomic_add(&b[a[i] % 7], a[i]);",
    "uses what an atomic returns": "b[atomic_inc(&b[0]) % 200 + 1] = i;",
    "prints": 'if (i == 3) printf("%d", a[i]); b[i] = a[i];',
    "reads constants": "b[i] = table[a[i] % 4];",
    "copies a group at a time": """
        event_t e = async_work_group_copy(t, a + get_group_id(0) * 64, 64, 0);
        wait_group_events(1, &e); b[i] = t[63 - l];""",
    "calls the library": """
        b[i] = (int)(100 * sin((float)a[i])) + popcount(a[i]);
        b[i] += (int)(1000 * vload_half(i, (global half *)a));""",
}


BY_TURNS = "b[i] = sub_group_reduce_add(a[i]);"
FAULTS = ("b[i + (1 << 28)] = 1;", "b[i] = a[i] / (a[i] % 3);")


OF_BODIES = kernels(
    "kernel void k(global int *a, global int *b, local int *t) {"
    " size_t i = get_global_id(0), l = get_local_id(0);",
    [*KERNELS.values(), BY_TURNS, *FAULTS],
    "constant int table[] = {3, 1, 4, 1};\n",
    standard="2.0",
)


def arguments() -> list[Argument]:
    values = np.random.default_rng(7).integers(0, 200, ITEMS).astype(np.int32)
    return [values, np.arange(ITEMS, dtype=np.int32), Local(4 * GROUP)]


def run_uncounted(launch: Launch) -> None:
    """Run a launch with the code that counts nothing in place of the other, so that its output shows."""
    options = replace(run._instrumentation_options(launch, run.Options()), counts=False)
    loaded = load_kernel(launch.kernel)
    module, plan, _ = run._plan(loaded, options)
    emitted = emit(plan)
    slices = f"@cc_launch_slices = hidden constant [1 x {SLICE_TYPE}] zeroinitializer"
    functions = f"{emitted.text.replace('@cc_native(', '@cc_group(')}\n{slices}"
    library = build_library(kernel_ir(module, functions, counts=False), emitted.library_symbols)
    layout = emitted.layout
    memory = lay_out(launch, loaded.parameters, layout.local_bytes, layout.is_accessed)
    Run(launch, memory, layout, run.Options(), 1).run(library)
    copy_back(memory)


def bits(args: Sequence[Argument]) -> list[bytes]:
    return [a.tobytes() for a in args if isinstance(a, np.ndarray)]


def without_host(profile: Profile) -> dict[str, Any]:
    known: dict[str, Any] = copy.deepcopy(profile.to_dict())
    del known["timing_s"]
    known["launch"].pop("host", None)
    return known


@pytest.mark.parametrize("body", one_in(2, KERNELS.values()))
def test_a_kernel_computes_the_same_where_nothing_is_counted_and_has_the_same_profile(body: str) -> None:
    timed, plain, uncounted = (arguments() for _ in range(3))
    with_time, without = (
        crosscast.characterize(OF_BODIES[body], ITEMS, GROUP, args, host_time=args is timed)
        for args in (timed, plain)
    )
    run_uncounted(Launch(OF_BODIES[body], (ITEMS,), (GROUP,), tuple(uncounted), ()))
    assert bits(uncounted) == bits(timed) == bits(plain) != bits(arguments())
    host = with_time.launch["host"]
    assert host.keys() == {"time_s", "repeats", "threads", "cpu", "compiler"}
    assert 0 < host["time_s"] < 1
    assert (host["repeats"], host["threads"]) == (3, 1)
    assert "host" not in without.launch
    assert without_host(with_time) == without_host(without)


@pytest.mark.parametrize("sizes", [((100,), (64,)), ((20, 18), (8, 4)), ((6, 5, 7), (4, 2, 3))])
def test_groups_that_are_not_full_compute_the_same(sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    source = """kernel void k(global int *a) {
        size_t w = get_global_size(0), h = get_global_size(1);
        size_t at = get_global_id(0) + w * (get_global_id(1) + h * get_global_id(2));
        a[at] = at * 1000 + get_local_size(0) * 100 + get_local_size(1) * 10 + get_group_id(0); }"""
    program = Kernel.from_source(source, "k", standard="2.0")
    counted, uncounted = (np.zeros(int(np.prod(sizes[0])), np.int32) for _ in range(2))
    launch = Launch(program, *sizes, (counted,), ())
    assert crosscast.characterize(launch, host_time=True).launch["host"]["repeats"] == 3
    run_uncounted(replace(launch, args=(uncounted,)))
    assert counted.all()
    assert counted.tobytes() == uncounted.tobytes()


def test_runs_for_the_time_leave_no_trace_in_buffers_that_are_not_copied() -> None:
    args = [in_shared_memory(a) if isinstance(a, np.ndarray) else a for a in arguments()]
    profile = crosscast.characterize(OF_BODIES[KERNELS["updates"]], ITEMS, GROUP, args, host_time=True)
    once = arguments()
    crosscast.characterize(OF_BODIES[KERNELS["updates"]], ITEMS, GROUP, once, host_time=False)
    assert bits(args) == bits(once)
    assert profile.launch["host"]["repeats"] == 3


def test_a_kernel_that_writes_a_variable_is_run_once() -> None:
    source = "global int n; kernel void k(global int *a) { if (!get_global_id(0)) a[0] = ++n; }"
    array = np.zeros(1, np.int32)
    program = Kernel.from_source(source, "k", standard="2.0")
    profile = crosscast.characterize(program, 64, 64, [array], host_time=True)
    assert (array[0], profile.launch["host"]["repeats"]) == (1, 1)


def test_a_cuda_kernel_has_a_time_but_not_what_runs_by_turns_or_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "__global__ void k(int *a) { int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] += i; }"
    array = np.zeros(ITEMS, np.int32)
    program = Kernel.from_source(source, "k", form="cuda")
    profile = crosscast.characterize(program, ITEMS, GROUP, [array], host_time=True)
    np.testing.assert_array_equal(array, np.arange(ITEMS))
    assert profile.launch["host"]["time_s"] > 0
    by_turns = crosscast.characterize(OF_BODIES[BY_TURNS], ITEMS, GROUP, arguments(), host_time=True)
    assert "host" not in by_turns.launch
    monkeypatch.setattr("crosscast.characterization.engine.child._MOST_NATIVE_S", 1e-9)
    assert "host" not in crosscast.characterize(program, ITEMS, GROUP, [array], host_time=True).launch


@pytest.mark.parametrize("body", FAULTS)
def test_faults_of_the_kernel_are_told_as_they_are_without_the_time(body: str) -> None:
    told = []
    for host_time in (True, False):
        with pytest.raises(KernelFault) as fault:
            crosscast.characterize(OF_BODIES[body], ITEMS, GROUP, arguments(), threads=1, host_time=host_time)
        told.append(str(fault.value))
    assert told[0] == told[1]


def test_what_llvm_refuses_of_the_kernel_that_counts_nothing_costs_only_the_time() -> None:
    content, undefined, native = llvm.build("define void @cc_group() { ret void }", "", ["cc_group"], "no")
    assert (bool(content), undefined, native) == (True, [], b"")


# -- quick builds

CALLS = (
    "pow(a, 2.0f)", "pow(a, 0.5f)", "pow(2.0f, b)", "powr(a, b)", "pown(a, 3)", "exp2(a) * exp2(b)",
    "log2(exp2(a))", "sqrt(a) / b", "rsqrt(a)", "native_sin(a) / native_cos(a)", "a * b + c", "fma(a, b, c)",
    "mad(a, b, c)", "a / 3.0f", "a / b / c", "(a + b) - a", "fmin(a, b) - fmax(b, c)", "hypot(a, b)",
    "ldexp(a, 3)", "round(b * 9) + rint(c * 9)", "fmod(b, a)", "dot((float4)(a, b, c, a), (float4)(c))",
    "(float)((double)a * b) + (float)pow((double)b, 3.0)", "(float)(half)(a * b)",
)  # fmt: skip
LOOP = """kernel void k(global uint *x, uint n) {
    uint i = get_global_id(0), s = x[i];
    for (uint q = 0; q < n; q++) s = s * 1664525 + (s >> 3);
    x[i] = s;
}"""


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each build was a quick one."""
    builds: list[bool] = []
    build = llvm.build_library

    def noted(*given_: Any, quick: bool, alone: bool) -> bytes:
        builds.append(quick)
        return build(*given_, quick=quick, alone=alone)

    monkeypatch.setattr(run, "build_library", noted)
    monkeypatch.setattr(run, "_long_kernels", set())
    monkeypatch.setattr(run, "_QUICK_S", 60.0)
    run._build.cache_clear()
    return builds


@settings(examples(12, fast=3), derandomize=True, database=None)
@given(st.integers(0, 40))
def test_quick_builds_full_ones_and_trials_count_the_same_and_trials_change_no_buffer(seed: int) -> None:
    made = random_kernels.make(seed, wild=True)
    kernel, metrics = Kernel.from_source(made.source, "k", standard=made.standard), []
    most = run._MOST_QUICK_ITEMS
    for most_quick_items, trial in ((most, False), (0, False), (most, True)):
        plain = made.arguments()
        given_ = [in_shared_memory(each) if isinstance(each, np.ndarray) else each for each in plain]
        launched = Launch(kernel, made.global_size, made.local_size, tuple(given_))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "_MOST_QUICK_ITEMS", most_quick_items)
            options = run.Options(threads=1, trial=trial)
            metrics.append(run.characterize_launch(launched, options=options).metrics)
        found, unchanged = (
            [each for each in some if isinstance(each, np.ndarray)] for some in (given_, plain)
        )
        assert all(map(np.array_equal, found, unchanged if trial else made.outputs()))
    assert metrics[0] == metrics[1] == metrics[2]


@pytest.mark.parametrize("options", [["-O0"], ["-O3", "-ffp-contract=on"]])
def test_real_numbers_have_the_same_bytes(
    options: list[str], builds: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = " ".join(f"x[{k} * 64 + i] = {call};" for k, call in enumerate(CALLS))
    source = (
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
        "kernel void k(global const float *v, global float *x) {"
        f" int i = get_global_id(0); float a = v[i], b = v[i + 64], c = v[i + 128]; {statements}"
        " float s = 0; for (int q = 0; q < 64; q++) s += v[q] * v[i + q]; x[i] += s; }"
    )
    values = np.random.default_rng(3).uniform(0.1, 4, 192).astype(np.float32)
    found = []
    for most_quick_items in (run._MOST_QUICK_ITEMS, 0):
        monkeypatch.setattr(run, "_MOST_QUICK_ITEMS", most_quick_items)
        out = zeros(64 * len(CALLS), np.float32)
        launch(source, 64, 16, values, out, options=options)
        assert np.isfinite(out).all()
        found.append(out.tobytes())
    assert builds == [True, False]
    assert found[0] == found[1]


def test_a_launch_that_runs_long_is_built_again(builds: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_REPORT_S", 0.01)
    monkeypatch.setattr(run, "_QUICK_S", 0.01)
    steps = np.uint32(1 << 22)
    once, again, direct = (np.arange(64, dtype=np.uint32) for _ in range(3))
    profile = launch(LOOP, 64, 64, once, steps)
    assert builds == [True, False]
    # From then on it is built in full, as another of the kernel is, but not another kernel.
    monkeypatch.setattr(run, "_QUICK_S", 60.0)
    assert launch(LOOP, 64, 64, again, steps).metrics == profile.metrics
    launch(LOOP, 32, 32, zeros(32, np.uint32), np.uint32(1))
    launch(LOOP.replace("uint q", "uint p").replace("q", "p"), 32, 32, zeros(32, np.uint32), np.uint32(1))
    assert builds == [True, False, False, True]
    monkeypatch.setattr(run, "_MOST_QUICK_ITEMS", 0)
    assert launch(LOOP, 64, 64, direct, steps).metrics == profile.metrics
    assert once.tobytes() == again.tobytes() == direct.tobytes()


@pytest.mark.parametrize(
    ("items", "host_time", "quick"), [(4096, False, True), (4097, False, False), (64, True, False)]
)
def test_what_is_long_or_timed_is_built_with_all_optimizations(
    items: int, host_time: bool, quick: bool, builds: list[bool]
) -> None:
    launch(LOOP, items, 1, zeros(items, np.uint32), np.uint32(1), host_time=host_time)
    assert builds == [quick]


def test_a_trial_of_many_items_is_built_quickly(builds: list[bool]) -> None:
    kernel = Kernel.from_source(LOOP, "k")
    trial = Launch(kernel, (5000,), (1,), (zeros(5000, np.uint32), np.uint32(1)))
    run.characterize_launch(trial, options=run.Options(trial=True))
    assert builds == [True]


# -- what LLVM cannot take


def test_a_crash_of_llvm_is_a_refusal_and_the_next_program_is_read() -> None:
    nested = b"@a = external global " + b"[1 x " * 200_000 + b"i8" + b"]" * 200_000
    with pytest.raises(llvm.LLVMRefusedError, match="LLVM was stopped by SIG"):
        llvm.parse(nested, is_text=True)
    assert llvm.parse(b"", is_text=True).text


def test_a_program_that_llvm_crashes_on_is_optimized_less() -> None:
    made = random_kernels.make(506034, wild=True)  # of LLVM 22's vectorizer, for processors with AVX-512
    kernel = Kernel.from_source(made.source, "k", standard=made.standard, options=("-O2",))
    arguments = made.arguments()
    crosscast.characterize(Launch(kernel, made.global_size, made.local_size, tuple(arguments)), threads=1)
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    for array, expected in zip(arrays, made.outputs(), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_stage_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(llvm._LIMIT_S, "parse", 0.0)
    long = "\n".join(f"declare void @f{number}()" for number in range(100_000))
    with pytest.raises(llvm.LLVMRefusedError, match="did not end within 0"):
        llvm.parse(long.encode(), is_text=True)
