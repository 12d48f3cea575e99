"""A kernel's time on this machine: code that counts nothing computes the same, and when there is none."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.characterization import frontend, run
from crosscast.characterization.engine import llvm
from crosscast.characterization.engine.arguments import copy_back, lay_out
from crosscast.characterization.engine.child import Run
from crosscast.characterization.engine.llvm import build_library, kernel_ir
from crosscast.characterization.instrumentation.driver import emit
from crosscast.characterization.instrumentation.strided_code import SLICE_TYPE
from crosscast.kernel import Argument
from support.examples import one_in
from support.launching import in_shared_memory

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


def kernel(body: str) -> crosscast.Kernel:
    head = "constant int table[] = {3, 1, 4, 1};\nkernel void k(global int *a, global int *b, local int *t)"
    source = f"{head} {{ size_t i = get_global_id(0), l = get_local_id(0); {body} }}"
    return crosscast.Kernel.from_source(source, "k", standard="2.0")


def arguments() -> list[Argument]:
    values = np.random.default_rng(7).integers(0, 200, ITEMS).astype(np.int32)
    return [values, np.arange(ITEMS, dtype=np.int32), crosscast.Local(4 * GROUP)]


def run_uncounted(launch: crosscast.Launch) -> None:
    """Run a launch with the code that counts nothing in place of the other, so that its output shows."""
    options = replace(run._instrumentation_options(launch, run.Options()), counts=False)
    module, plan, _ = run._plan(launch.kernel, options)
    emitted = emit(plan)
    slices = f"@cc_launch_slices = hidden constant [1 x {SLICE_TYPE}] zeroinitializer"
    functions = f"{emitted.text.replace('@cc_native(', '@cc_group(')}\n{slices}"
    library = build_library(kernel_ir(module, functions, counts=False), emitted.library_symbols)
    layout, parameters = emitted.layout, frontend.parameters(launch.kernel.program, launch.kernel.name)
    memory = lay_out(launch, parameters, layout.local_bytes, layout.is_accessed)
    Run(launch, memory, layout, run.Options(), 1).run(library)
    copy_back(memory)


def bits(args: Sequence[Argument]) -> list[bytes]:
    return [a.tobytes() for a in args if isinstance(a, np.ndarray)]


def without_host(profile: crosscast.Profile) -> dict[str, Any]:
    known: dict[str, Any] = copy.deepcopy(profile.to_dict())
    del known["timing_s"]
    known["launch"].pop("host", None)
    return known


@pytest.mark.parametrize("body", one_in(2, KERNELS.values()))
def test_a_kernel_computes_the_same_where_nothing_is_counted(body: str) -> None:
    counted, uncounted = arguments(), arguments()
    profile = crosscast.characterize(kernel(body), ITEMS, GROUP, counted, host_time=True)
    run_uncounted(crosscast.Launch(kernel(body), (ITEMS,), (GROUP,), tuple(uncounted), ()))
    assert bits(uncounted) == bits(counted) != bits(arguments())
    host = profile.launch["host"]
    assert host.keys() == {"time_s", "repeats", "threads", "cpu", "compiler"}
    assert 0 < host["time_s"] < 1
    assert (host["repeats"], host["threads"]) == (3, 1)


@pytest.mark.parametrize("sizes", [((100,), (64,)), ((20, 18), (8, 4)), ((6, 5, 7), (4, 2, 3))])
def test_groups_that_are_not_full_compute_the_same(sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    source = """kernel void k(global int *a) {
        size_t w = get_global_size(0), h = get_global_size(1);
        size_t at = get_global_id(0) + w * (get_global_id(1) + h * get_global_id(2));
        a[at] = at * 1000 + get_local_size(0) * 100 + get_local_size(1) * 10 + get_group_id(0); }"""
    program = crosscast.Kernel.from_source(source, "k", standard="2.0")
    counted, uncounted = (np.zeros(int(np.prod(sizes[0])), np.int32) for _ in range(2))
    launch = crosscast.Launch(program, *sizes, (counted,), ())
    assert crosscast.characterize(launch, host_time=True).launch["host"]["repeats"] == 3
    run_uncounted(replace(launch, args=(uncounted,)))
    assert counted.tobytes() == uncounted.tobytes()


@pytest.mark.parametrize("body", one_in(2, KERNELS.values()))
def test_the_rest_of_a_profile_and_the_output_are_the_same_without_the_time(body: str) -> None:
    timed, plain = arguments(), arguments()
    with_time, without = (
        crosscast.characterize(kernel(body), ITEMS, GROUP, args, host_time=host_time)
        for host_time, args in ((True, timed), (False, plain))
    )
    assert "host" not in without.launch
    assert without_host(with_time) == without_host(without)
    assert bits(timed) == bits(plain)


def test_runs_for_the_time_leave_no_trace_in_buffers_that_are_not_copied() -> None:
    args = [in_shared_memory(a) if isinstance(a, np.ndarray) else a for a in arguments()]
    profile = crosscast.characterize(kernel(KERNELS["updates"]), ITEMS, GROUP, args, host_time=True)
    once = arguments()
    crosscast.characterize(kernel(KERNELS["updates"]), ITEMS, GROUP, once, host_time=False)
    assert bits(args) == bits(once)
    assert profile.launch["host"]["repeats"] == 3


def test_a_kernel_that_writes_a_variable_is_run_once() -> None:
    source = "global int n; kernel void k(global int *a) { if (!get_global_id(0)) a[0] = ++n; }"
    array = np.zeros(1, np.int32)
    program = crosscast.Kernel.from_source(source, "k", standard="2.0")
    profile = crosscast.characterize(program, 64, 64, [array], host_time=True)
    assert (array[0], profile.launch["host"]["repeats"]) == (1, 1)


def test_a_cuda_kernel_has_a_time_but_not_what_runs_by_turns_or_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "__global__ void k(int *a) { int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] += i; }"
    array = np.zeros(ITEMS, np.int32)
    program = crosscast.Kernel.from_source(source, "k", form="cuda")
    profile = crosscast.characterize(program, ITEMS, GROUP, [array], host_time=True)
    np.testing.assert_array_equal(array, np.arange(ITEMS))
    assert profile.launch["host"]["time_s"] > 0
    by_turns = kernel("b[i] = sub_group_reduce_add(a[i]);")
    assert "host" not in crosscast.characterize(by_turns, ITEMS, GROUP, arguments(), host_time=True).launch
    monkeypatch.setattr("crosscast.characterization.engine.child._MOST_NATIVE_S", 1e-9)
    assert "host" not in crosscast.characterize(program, ITEMS, GROUP, [array], host_time=True).launch


@pytest.mark.parametrize("body", ["b[i + (1 << 28)] = 1;", "b[i] = a[i] / (a[i] % 3);"])
def test_faults_of_the_kernel_are_told_as_they_are_without_the_time(body: str) -> None:
    told = []
    for host_time in (True, False):
        with pytest.raises(crosscast.errors.KernelFault) as fault:
            crosscast.characterize(kernel(body), ITEMS, GROUP, arguments(), threads=1, host_time=host_time)
        told.append(str(fault.value))
    assert told[0] == told[1]


def test_what_llvm_refuses_of_the_kernel_that_counts_nothing_costs_only_the_time() -> None:
    content, undefined, native = llvm.build("define void @cc_group() { ret void }", "", ["cc_group"], "no")
    assert (bool(content), undefined, native) == (True, [], b"")
