"""Small launches are built quickly: what they compute and count is that of a build with all optimizations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast import Kernel, Launch
from crosscast.characterization import run
from crosscast.characterization.engine import child, llvm
from crosscast.characterization.run import Options, characterize_launch
from support import random_kernels
from support.examples import examples
from support.launching import in_shared_memory, launch, zeros

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

    def noted(*given_: Any, quick: bool) -> bytes:
        builds.append(quick)
        return build(*given_, quick=quick)

    monkeypatch.setattr(run, "build_library", noted)
    monkeypatch.setattr(run, "_long_kernels", set())
    monkeypatch.setattr(run, "_QUICK_S", 60.0)
    run._build.cache_clear()
    return builds


@settings(examples(12, fast=2), derandomize=True, database=None)
@given(st.integers(0, 40))
def test_metrics_and_memory_are_the_same(seed: int) -> None:
    made = random_kernels.make(seed, wild=True)
    metrics = []
    for most_quick_items in (run._MOST_QUICK_ITEMS, 0):
        arguments = made.arguments()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "_MOST_QUICK_ITEMS", most_quick_items)
            sizes = made.global_size, made.local_size
            metrics.append(launch(made.source, *sizes, *arguments, standard=made.standard).metrics)
        outputs = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        assert all(map(np.array_equal, outputs, made.outputs()))
    assert metrics[0] == metrics[1]


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


@given(st.integers(0, 40))
@settings(examples(12, fast=3), derandomize=True, database=None)
def test_a_trial_has_the_same_metrics_and_changes_no_buffer(seed: int) -> None:
    made = random_kernels.make(seed, wild=True)
    arguments = made.arguments()
    shared = [in_shared_memory(each) if isinstance(each, np.ndarray) else each for each in arguments]
    before = [each.tobytes() for each in shared if isinstance(each, np.ndarray)]
    kernel = Kernel.from_source(made.source, "k", standard=made.standard)
    trial = Launch(kernel, made.global_size, made.local_size, tuple(shared))
    metrics = characterize_launch(trial, options=Options(trial=True)).metrics
    assert [each.tobytes() for each in shared if isinstance(each, np.ndarray)] == before
    assert characterize_launch(replace(trial, args=tuple(arguments)), options=Options()).metrics == metrics


def test_a_trial_of_many_items_is_built_quickly(builds: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.from_source(LOOP, "k")
    trial = Launch(kernel, (5000,), (1,), (zeros(5000, np.uint32), np.uint32(1)))
    characterize_launch(trial, options=Options(trial=True))
    assert builds == [True]
    monkeypatch.setattr(child, "_REPORT_S", 0.01)
    monkeypatch.setattr(run, "_QUICK_S", 0.01)
    characterize_launch(replace(trial, args=(trial.args[0], np.uint32(1 << 14))), options=Options(trial=True))
    assert builds == [True, False]
