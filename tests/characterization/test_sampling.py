"""Profiles of some work-groups: those of all where groups are alike, otherwise within the stated error."""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast import Kernel, Launch
from crosscast.characterization.run import Options, characterize_launch
from crosscast.characterization.sampling import fewest_groups, sample_of
from crosscast.devices.launch_work import GlobalAtomics
from crosscast.errors import LaunchError
from crosscast.profile import Profile, sampling_sentence
from support.examples import one_in
from support.refusals import refusals

N = 1 << 16

Shape = tuple[int, ...]
ALIKE: Mapping[str, tuple[str, Shape, Shape, int]] = {
    "scale": ("int i = get_global_id(0); if (i < n) c[i] = 2 * a[i];", (N,), (64,), N - 100),
    "stencil": (
        "int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);"
        "if (x > 0 && y > 0 && x < w - 1 && y < h - 1)"
        "    c[y * w + x] = a[y * w + x - 1] + a[y * w + x + 1] + a[y * w - w + x] + a[y * w + w + x];",
        *((256, 256), (32, 2), N),
    ),
    "transpose": (
        "__local float t[8][9]; int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0);"
        "t[get_local_id(1)][get_local_id(0)] = a[y * w + x];"
        "barrier(CLK_LOCAL_MEM_FENCE);"
        "c[(get_group_id(0) * 8 + get_local_id(1)) * w + get_group_id(1) * 8 + get_local_id(0)]"
        "    = t[get_local_id(0)][get_local_id(1)];",
        *((256, 256), (8, 8), N),
    ),
    "rows_by_a_table": (
        "int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0); float s = 0;"
        "for (int k = 0; k < 16; k++) s += a[k * w + x]; c[y * w + x] = s * y;",
        *((64, 1024), (64, 4), N),
    ),
    "layers": (
        "int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);"
        "int i = (z * get_global_size(1) + y) * get_global_size(0) + x; if (z) c[i] = a[i] - a[i - 1];",
        *((32, 8, 256), (32, 2, 2), N),
    ),
}


def launch_of(name: str, body: str, size: Shape, local: Shape, n: int) -> Launch:
    source = f"__kernel void {name}(__global const float *a, __global float *c, int n) {{ {body} }}"
    args = (np.zeros(N, np.float32), np.zeros(N, np.float32), np.int32(n))
    return Launch(Kernel.from_source(source, name), size, local, args)


def stores(items: int = N, local: int = 64) -> Launch:
    return launch_of("scale", "c[get_global_id(0)] = 1;", (items,), (local,), N)


def profiled(launch: Launch, groups: int | str) -> Profile:
    options = Options(sample_groups=groups if isinstance(groups, int) else "all")
    return characterize_launch(launch, options=options)


def counts(profile: Profile) -> Iterator[tuple[str, object]]:
    """All counts of a profile by name, without what is estimated and what each run has for itself."""
    estimated = ("entropy", "footprint_90", "reuse", "simd_width", "per_operand", "threads", "sampled")

    def walk(name: str, value: Any) -> Iterator[tuple[str, object]]:
        if any(each in name for each in estimated):
            return
        if isinstance(value, Mapping):
            for key in value:
                yield from walk(f"{name}.{key}", value[key])
        else:
            yield name, value

    yield from walk("metrics", profile.metrics)
    yield from walk("launch", profile.launch)
    yield from walk("instructions", profile.instructions)


def not_near(n: object, found: object) -> bool:
    """Whether a count is not the same, or a ratio not but for its last digits."""
    return found != (pytest.approx(n, rel=1e-12) if isinstance(n, float) else n)


@pytest.mark.parametrize("name", ALIKE)
def test_counts_of_groups_that_are_alike_are_those_of_all(name: str) -> None:
    launch = launch_of(name, *ALIKE[name])
    groups = math.prod(launch.global_size) // math.prod(launch.local_size)
    whole, some = profiled(launch, "all"), profiled(launch, groups // 5)
    found = dict(counts(some))
    unlike = {key: (n, found.get(key)) for key, n in counts(whole) if not_near(n, found.get(key))}
    assert not unlike
    sampled = some.launch["sampled"]
    assert sampled["groups"] < sampled["of"] / 2
    assert set(sampled["error"].values()) == {0.0}
    assert "sampled" not in whole.launch


def test_bytes_behind_caches_are_about_those_of_all() -> None:
    launch = launch_of("stencil", *ALIKE["stencil"])
    reuses = [profiled(launch, n).launch["reuse"] for n in ("all", 200)]
    whole, some = (reuse["bytes"]["64"]["16"] for reuse in reuses)
    # Neighbours that run tell nothing of the channels of those that do not.
    assert [reuse["channel_share"] is None for reuse in reuses] == [False, True]
    assert some["first"] == pytest.approx(whole["first"], rel=0.02)
    assert some["1048576"] == pytest.approx(whole["1048576"], rel=0.15)


UNLIKE: Mapping[str, str] = {
    "triangle": "int i = get_global_id(0); float s = 0; for (int k = 0; k < i; k += 64) s += a[k]; c[i] = s;",
    "lengths": "int i = get_global_id(0); float s = 0; for (int k = 0; k < (int)a[i]; k++) s += k; c[i] = s;",
    "gather": "int i = get_global_id(0); c[i] = a[(int)a[i]];",
}


@pytest.mark.parametrize("seed", one_in(3, range(3)))
@pytest.mark.parametrize("name", UNLIKE)
def test_counts_of_groups_that_are_not_alike_are_within_the_error(name: str, seed: int) -> None:
    launch = launch_of(name, UNLIKE[name], (N,), (64,), N)
    values: npt.NDArray[Any] = np.random.default_rng(seed).integers(0, 400, N)
    launch.args[0][...] = values  # type: ignore[index]
    whole, some = profiled(launch, "all"), profiled(launch, 160)
    error = some.launch["sampled"]["error"]
    total = "total_instruction_count"
    assert some.metrics[total] == pytest.approx(whole.metrics[total], rel=2 * error["instructions"] + 1e-6)
    sectors = [p.launch["sub_groups"]["32"]["sectors_32_read"] for p in (whole, some)]
    assert sectors[1] == pytest.approx(sectors[0], rel=2 * error["sectors_32"] + 1e-6)
    distinct = [sum(p.launch["distinct_bytes"]["global"].values()) for p in (whole, some)]
    assert distinct[1] == pytest.approx(distinct[0], rel=2 * error["distinct_bytes"] + 1e-2)


@pytest.mark.parametrize("bins", [1, 64, 512, 4096, N])
def test_a_sample_knows_how_many_addresses_have_atomics(bins: int) -> None:
    body = "atomic_inc((volatile global int *)c + get_global_id(0) % n);"
    launch = launch_of("bins", body, (N,), (16,), bins)
    whole, some = profiled(launch, "all").launch, profiled(launch, 400).launch
    counted = {"written": 4 * bins, "lines": -(-bins // 32), "most": -(-2 * N // bins)}
    assert whole["distinct_bytes"]["atomics"] == counted
    of_sample, error = some["distinct_bytes"]["atomics"], some["sampled"]["error"]["distinct_bytes"]
    for name in ("written", "lines"):
        assert counted[name] == pytest.approx(of_sample[name], rel=2 * error + 1e-2, abs=1)
    turns = [GlobalAtomics.of(launch, 32).turns[0] for launch in (whole, some)]
    assert turns[1] == pytest.approx(turns[0], rel=2 * error + 1e-2, abs=1)


def test_a_table_that_all_groups_read_has_no_more_bytes_than_it_has() -> None:
    source = "__kernel void look(__global const int *t, __global const int *i, __global int *c) {"
    source += " int x = get_global_id(0); c[x] = t[i[x]]; }"
    kernel, rng = Kernel.from_source(source, "look"), np.random.default_rng(5)
    table, index = np.zeros(1 << 14, np.int32), rng.integers(0, 1 << 14, N).astype(np.int32)
    launch = Launch(kernel, (N,), (64,), (table, index, np.zeros(N, np.int32)))
    whole, some = profiled(launch, "all"), profiled(launch, 100)
    reads = [p.launch["distinct_bytes"]["global"]["read"] for p in (whole, some)]
    assert reads[1] == pytest.approx(reads[0], rel=0.01)
    # The table fits a cache of 1 MiB, however few of its elements a group reads, and not one of 16 or 32 KiB.
    for size in ("16384", "32768", "1048576"):
        far = [p.launch["reuse"]["bytes"]["64"]["16"][size] for p in (whole, some)]
        assert far[1] == pytest.approx(far[0], rel=0.03), size


def test_arrays_are_left_as_they_were_by_some_groups_but_few_run_in_full() -> None:
    launch, few = stores(), stores(640)
    profiled(launch, 100)
    assert not np.any(np.asarray(launch.args[1]))
    assert "sampled" not in profiled(few, 8).launch
    assert np.all(np.asarray(few.args[1])[:640] == 1)


def test_the_same_groups_give_the_same_profile() -> None:
    launch = launch_of("gather", UNLIKE["gather"], (N,), (64,), N)
    once, again = (dict(counts(profiled(launch, 100))) for _ in range(2))
    assert once == again


@refusals("groups sentence")
def test_a_sample_that_tells_nothing_is_refused(groups: int, sentence: str) -> None:
    with pytest.raises(LaunchError, match=sentence):
        profiled(stores(), groups)


def test_a_launch_that_needs_too_much_memory_is_sampled_where_that_may_be() -> None:
    launch = stores(local=16)
    with pytest.raises(LaunchError, match=r"over the memory limit of 1000 bytes; --sample-groups runs some"):
        characterize_launch(launch, options=Options(memory_limit=1000))
    said: list[str] = []
    options = Options(memory_limit=1000, sample_groups="auto", note=said.append)
    sampled = characterize_launch(launch, options=options).launch["sampled"]
    assert sampled["because"] == "memory"
    assert said == ["scale: 2048 of 4096 work-groups are run, and counts extended"]


def test_a_launch_is_sampled_unasked_rather_than_run_in_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosscast.characterization.run._MOST_MEMORY", 1000)
    launch = stores(local=16)
    whole = characterize_launch(launch, options=Options())
    sampled = characterize_launch(launch, options=Options(sample_groups="auto"))
    assert sampled.launch["sampled"]["because"] == "memory"
    assert sampled.instructions == whole.instructions
    ordered = launch_of("last", "*c = atomic_inc((volatile global int *)a);", (N,), (16,), N)
    assert "sampled" not in characterize_launch(ordered, options=Options(sample_groups="auto")).launch


def test_a_launch_that_takes_too_long_is_sampled_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosscast.characterization.run._PATIENCE_S", 0.0)
    monkeypatch.setattr("crosscast.characterization.run._LONGEST_S", 0.1)
    monkeypatch.setattr("crosscast.characterization.run._SAMPLED_S", 0.1)
    body = "float s = 0; for (int k = 0; k < n; k++) s += a[k & 1023]; c[get_global_id(0)] = s;"
    launch = launch_of("long_loop", body, (N,), (64,), 50_000)
    profile = crosscast.characterize(launch, sample_groups="auto", timeout_s=300)
    assert profile.launch["sampled"]["because"] == "time"
    assert profile.metrics["work_items"] == N
    assert profile.launch["instructions"]["fp32"]["add"] == N * 50_000
    assert sampling_sentence(profile.launch).endswith("work-groups ran; counts are extended: " + ", ".join(
        f"{name} exact" for name in ("instructions", "accesses", "sectors 32", "lines 128", "distinct bytes")
    ))  # fmt: skip


extents = st.integers(1, 300)


@given(st.tuples(extents, extents, extents), st.integers(1, 5000))
def test_boxes_lie_in_the_launch_and_weights_add_up_to_it(groups: tuple[int, int, int], most: int) -> None:
    sample = sample_of(groups, most)
    if sample is None:
        fewest = fewest_groups(groups)
        assert fewest is None or most < fewest or 3 * most > math.prod(groups)
        return
    assert sample.run_groups() <= most
    sizes = {run: sample.box(run) for run in sample.runs()}
    boxes = [*sizes.values(), sample.larger_box()[0]]
    for box in boxes:
        assert all(first >= 0 and n > 0 and first + n <= extent
                   for first, n, extent in zip(*box, groups, strict=True))  # fmt: skip
        assert sum(end - first for first, end in box.pieces(groups)) == math.prod(box.size)
    box, counts = sample.larger_box()
    for axis, count in zip(sample.axes, counts, strict=True):
        assert count is None or axis.extent - count < 2 or box.first[axis.number] > 0
    # Counts that go with the groups of each dimension, with its rims, and neither.
    weights = {run: sample.weight(run) for run in sizes}
    assert sum(w * math.prod(sizes[run].size) for run, w in weights.items()) == math.prod(groups)
    assert sum(weights.values(), Fraction(0)) == 1
    inner = {
        run: math.prod(n - (first == 0) - (first + n == extent)
                       for first, n, extent in zip(*box, groups, strict=True))
        for run, box in sizes.items()
    }  # fmt: skip
    assert sum(w * inner[run] for run, w in weights.items()) == math.prod(extent - 2 for extent in groups)
