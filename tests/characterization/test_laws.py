"""Laws that hold for every kernel and launch, tried on random ones."""

import functools
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crosscast
from crosscast.characterization import run
from crosscast.characterization.engine import child
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.characterization.engine.layout import CLASSES
from crosscast.characterization.metrics import instruction_mix
from crosscast.data.profiles import read_parquet, write_parquet
from crosscast.kernel import Kernel, Launch
from crosscast.results import to_json
from support import random_kernels
from support.examples import examples, one_in
from support.launching import ints, kernels, launch, local_ints, zeros
from support.random_kernels import RandomKernel
from support.sub_group_kernels import CASES

_few = settings(examples(8, fast=3), derandomize=True, database=None)
_seeds = st.integers(0, 11)  # few, so that most examples of most laws are the same ones

Metrics = Mapping[str, Any]


@functools.cache
def _plain(seed: int) -> Metrics:
    """What a random kernel gives."""
    return _run(random_kernels.make(seed))


def _run(made: RandomKernel, **options: Any) -> Metrics:
    kernel = Kernel.from_source(made.source, "k", standard=made.standard)
    given_ = Launch(kernel, made.global_size, made.local_size, made.inputs())
    return run.characterize_launch(given_, options=run.Options(threads=1, **options)).metrics


@_few
@given(_seeds)
def test_checks_and_more_numbers_change_nothing(seed: int) -> None:
    random_kernel, plain = random_kernels.make(seed), _plain(seed)
    assert _run(random_kernel, check_bounds=True) == plain
    assert _run(random_kernel, published=True) == plain


def test_checks_change_nothing_where_structures_are_passed_by_value() -> None:
    found = [
        run.characterize_launch(CASES["structure by value"].launch(), options=run.Options(check_bounds=check))
        for check in (False, True, False)
    ]
    assert found[0].metrics == found[1].metrics == found[2].metrics


@_few
@given(_seeds)
def test_a_profile_has_the_same_bytes_each_time(seed: int) -> None:
    first = json.dumps(_plain(seed))
    run._build.cache_clear()
    assert json.dumps(_run(random_kernels.make(seed))) == first


@pytest.mark.parametrize(
    ("seed", "level"), one_in(7, itertools.product(range(6), ("-Oz", "-O0", "-O1", "-O2", "-O3")))
)
def test_what_kernels_leave_in_memory_is_the_same_at_every_level(seed: int, level: str) -> None:
    made = random_kernels.make(seed, wild=True)
    expected = made.outputs()
    kernel = Kernel.from_source(made.source, "k", standard=made.standard, options=[level])
    metrics = []
    for threads in (1, 3):
        arguments = made.arguments()
        launch = Launch(kernel, made.global_size, made.local_size, tuple(arguments))
        metrics.append(crosscast.characterize(launch, threads=threads).metrics)
        found = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        assert all(map(np.array_equal, found, expected))
    assert metrics[0] == metrics[1]


# -- groups that communicate

_COMMUNICATING = {
    "a buffer as counter": "if (get_local_id(0) == 0) a[0] += 1; o[g] = a[0];",
    "a chain of groups": "o[g] = g < n ? g : o[g - n] * 3 % 1009; a[g % 7] = o[g];",
    "atomics whose results are used": "o[g] = atomic_add(a, g);",
    "exchanges": "if (atomic_cmpxchg(a, get_group_id(0), get_group_id(0) + 1) == get_group_id(0)) o[g] = 1;",
    "the last one to write": "a[get_local_id(0) % 8] = get_group_id(0); o[g] = g;",
}


@pytest.mark.parametrize("body", _COMMUNICATING.values(), ids=_COMMUNICATING.keys())
def test_threads_change_nothing_where_groups_communicate(body: str) -> None:
    source = (
        "kernel void k(volatile global int *a, global int *o, int n) {"
        f" int g = get_global_id(0); for (int i = 0; i < 20; i++) {{ {body} }} }}"
    )
    results = []
    for threads in (1, 2, 3):
        a, o = zeros(8), zeros(4000)
        profile = launch(source, 4000, 8, a, o, np.int32(8), threads=threads)
        results.append((profile.metrics, a.tolist(), o.tolist()))
    assert results[0] == results[1] == results[2]


_ADDING = {
    "sums": "atomic_add(a + h % 7, h); atomic_sub(b + h % 5, i); atomic_inc(a + 7); atomic_dec(b + g % 8);",
    "sums of 64 bits": "atom_add((volatile global long *)a + h % 4, h * 5000000000l); atomic_add(b + 1, 1);",
    "sums and a maximum": "atomic_add(a + h % 7, h); atomic_max(b + h % 5, h);",
    "sums and reads": "if (g < 8) b[g] = 3; atomic_add(a + h % 7, h);",
}


@pytest.mark.parametrize("body", _ADDING.values(), ids=_ADDING.keys())
def test_threads_add_to_the_same_memory(body: str) -> None:
    source = (
        "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
        "kernel void k(volatile global int *a, volatile global int *b) { int g = get_global_id(0);"
        f" for (int i = 0; i < 20; i++) {{ int h = g * 77 + i; {body} }} }}"
    )
    results = []
    for threads in (1, 2, 3):
        a, b = ints(8), ints(8)
        profile = launch(source, 4000, 8, a, b, threads=threads)
        assert profile.launch["threads"] == threads
        results.append((profile.metrics, a.tolist(), b.tolist()))
    assert results[0] == results[1] == results[2]


# -- placement

_GATHER = """kernel void k(global float *o, global int *unused, global const float *a, global const int *x) {
  int i = get_global_id(0);
  if (x[i] & 1) o[i] = a[x[i]] * 2; else o[i] = a[i];
}"""


@_few
@given(st.integers(1, 5000), st.integers(0, 63), st.booleans())
def test_where_buffers_stand_changes_nothing(padding: int, shift: int, shared: bool) -> None:
    index = (ints(64) * 29) % 64
    profiles = []
    for moved in (False, True):
        a = np.arange(64 + shift, dtype=np.float32)[shift if moved else 0 :][:64]
        unused = ints(padding if moved else 1)
        out = shared_empty(64, np.float32) if shared and moved else np.zeros(64, np.float32)
        profiles.append(launch(_GATHER, 64, 16, out, unused, a, index, threads=2).metrics)
        np.testing.assert_array_equal(out, np.where(index & 1, a[index] * 2, a))
    assert profiles[0] == profiles[1]


def test_as_many_threads_as_are_allowed_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """kernel void k(global uint *a, uint n) {
      uint i = get_global_id(0), s = 0;
      for (uint j = 0; j < n; j++) s = s * 7 + (j ^ i) % 13;
      a[i] = s;
    }"""
    monkeypatch.setattr(child, "_REPORT_S", 0.01)
    out, items = np.zeros(2048, np.uint32), np.arange(2048, dtype=np.uint32)
    expected, seen = np.zeros_like(out), list[run.Progress]()
    for step in range(5000):
        expected = expected * np.uint32(7) + (np.uint32(step) ^ items) % np.uint32(13)
    profile = run.characterize_launch(
        Launch(Kernel.from_source(source, "k"), (2048,), (8,), (out, np.uint32(5000))),
        options=run.Options(threads=256, progress=seen.append),
    )
    assert profile.launch["threads"] == 256
    assert (out == expected).all()
    assert seen
    assert all(progress.groups_done <= progress.groups_total == 2048 // 8 for progress in seen)


def test_what_a_group_does_in_its_local_memory_does_not_keep_groups_on_one_thread() -> None:
    source = """
    kernel void k(global int *out) {
      local int t[64];
      uint l = get_local_id(0);
      if (l < 16) vstore4((int4)(l), l, t);
      barrier(CLK_LOCAL_MEM_FENCE);
      atomic_add(&t[l & 3], 1);
      barrier(CLK_LOCAL_MEM_FENCE);
      out[get_global_id(0)] = t[l];
    }
    """
    one, two = zeros(512), zeros(512)
    alone, together = (launch(source, 512, 64, out, threads=n) for n, out in ((1, one), (2, two)))
    assert together.launch["threads"] == 2
    assert together.metrics == alone.metrics
    assert np.array_equal(one, two)


CLASS_HEAD = "kernel void k(global int *i, global float *f, global float4 *v, local int *l) {"
OF_CLASSES: list[tuple[str, dict[str, int]]] = [
    ("", {"control": 1}),
    # A load, what the statement does, a store, and the return.
    ("i[0] = i[0] + 3;", {"alu": 1, "mem": 2, "control": 1}),
    ("i[0] = i[0] ^ 3;", {"alu": 1, "mem": 2, "control": 1}),
    ("i[0] = i[0] << 3;", {"shift": 1, "mem": 2, "control": 1}),
    ("i[0] = i[0] * 7;", {"shift": 1, "mem": 2, "control": 1}),
    ("f[0] = f[0] + 3;", {"fp": 1, "mem": 2, "control": 1}),
    ("f[0] = i[0];", {"fp": 1, "mem": 2, "control": 1}),
    ("f[0] = sqrt(f[0]);", {"fp": 1, "mem": 2, "control": 1}),
    ("v[0] = v[0] + v[0];", {"sse": 1, "mem": 2, "control": 1}),
    ("v[0] = sqrt(v[0]);", {"sse": 1, "mem": 2, "control": 1}),
    ("i[0] = clz(i[0]);", {"alu": 1, "mem": 2, "control": 1}),
    ("atomic_add(i, 5);", {"mem": 1, "control": 1}),
    ("barrier(CLK_LOCAL_MEM_FENCE);", {"control": 2}),
]
CLASS_KERNELS = kernels(CLASS_HEAD, [body for body, _ in OF_CLASSES])


def counts(kernel: Kernel) -> dict[str, int]:
    """Instructions by class of one work-item."""
    arrays = (ints(64), zeros(64, np.float32), zeros((64, 4), np.float32), local_ints(64))
    return dict(crosscast.characterize(kernel, 1, 1, arrays).instructions)


@pytest.mark.parametrize(("body", "expected"), OF_CLASSES)
def test_an_instruction_is_in_the_class_of_what_it_does(body: str, expected: dict[str, int]) -> None:
    assert counts(CLASS_KERNELS[body]) == expected


def test_a_copy_of_memory_and_the_stack_have_classes_of_their_own() -> None:
    large = (
        "typedef struct { int a[100]; } Large; kernel void k(global Large *b, global Large *a) { *b = *a; }"
    )
    assert launch(large, 1, 1, zeros(100), zeros(100)).instructions == {"string": 1, "control": 1}
    # Two of the kernel's own; the parameters have theirs too.
    (kernel,) = kernels(CLASS_HEAD, ["int a = i[0]; i[0] = a;"], options=["-O0"]).values()
    assert counts(kernel)["stack"] == 5


def test_the_mix_is_of_all_launches_together_if_they_counted_classes(make_profile: Any) -> None:
    assert instruction_mix([make_profile()]) == instruction_mix([]) == {}
    found = [{"alu": 3, "other": 1}, {"alu": 1, "mem": 5}]
    mix = instruction_mix([replace(make_profile(), instructions=each) for each in found])
    assert tuple(mix) == CLASSES
    assert {name: share for name, share in mix.items() if share} == {"alu": 0.4, "mem": 0.5}


@settings(_few, max_examples=2)
@given(st.floats(width=32))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_of_any_bits_is_kept_in_json_and_parquet(
    tmp_path_factory: pytest.TempPathFactory, value: float, other: float
) -> None:
    source = "kernel void k(global float *f, float v, double w) { f[get_global_id(0)] = v + w; }"
    profile = launch(source, 8, 4, zeros(8, np.float32), np.float32(value), np.float64(other))
    told = json.loads(to_json(profile.to_dict()), parse_constant=pytest.fail)
    table = tmp_path_factory.mktemp("table") / "profiles.parquet"
    write_parquet([profile], table)
    (read,) = read_parquet(table)
    for arguments in (told["launch"]["arguments"], read.launch["arguments"]):
        assert [repr(float(each["value"])) for each in arguments[1:]] == [repr(value), repr(other)]
