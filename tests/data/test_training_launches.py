"""The launches and profiles for training: extended profiles, samples, and the launches of regions."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.training_launches import elementwise_launch, layer_norm_launch, radices, region_jobs, strata
from benchmarks.training_profiles import spread

import crosscast
from crosscast import Kernel, Launch
from crosscast.characterization.sampling import extended, profile_of, runs_for
from crosscast.profile import METRICS, Profile
from support.examples import one_in
from support.shared import shared_data

TILES = """
__kernel void tiles(__global const float *a, __global float *c, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    c[y * width + x] = a[y * width + x] + a[(y + 2) * width + x + 2];
}
"""


def tiles(groups: tuple[int, int]) -> Profile:
    """A stencil of 8 x 8 groups on rows of 256, with a halo of 2."""
    kernel = Kernel.from_source(TILES, "tiles")
    arrays = [np.zeros(256 * 512, np.float32) for _ in range(2)]
    size = (8 * groups[0], 8 * groups[1])
    return crosscast.characterize(Launch(kernel, size, (8, 8), (*arrays, np.int32(256))))


def test_counts_of_a_tiled_launch_are_extended_without_error() -> None:
    whole = tiles((16, 12))
    runs = [(2, 2), (4, 2), (2, 4), (4, 4)]
    found = extended({run: tiles(run) for run in runs}, (16, 12))
    for metric in METRICS:
        if metric.unit == "count" and not metric.name.startswith(("footprint_90", "opcode", "branches")):
            assert found.metrics[metric.name] == whole.metrics[metric.name], metric.name
    assert found.metrics["granularity"] == whole.metrics["granularity"]
    assert found.metrics["reread_ratio"] == pytest.approx(whole.metrics["reread_ratio"])
    entropy = "global_memory_address_entropy"
    assert found.metrics[entropy] == pytest.approx(whole.metrics[entropy], abs=0.2)
    assert found.launch["global_size"] == whole.launch["global_size"]
    assert found.launch["work"]["instructions"] == whole.launch["work"]["instructions"]
    assert found.launch["extended"] == {"runs": [list(run) for run in runs], "groups": [16, 12]}


def test_a_short_launch_is_run_in_full_and_a_long_one_in_part() -> None:
    assert runs_for((64, 64), 1e-6, 1.0) is None
    runs = runs_for((64, 64), 0.1, 1.0)
    assert runs is not None
    assert len(runs) == 4
    assert runs_for((1000, 1), 0.01, 1.0) == [(11, 1), (22, 1)]
    launches: list[tuple[int, int]] = []

    def run(groups: tuple[int, int]) -> Profile:
        launches.append(groups)
        return tiles(groups)

    group = tiles((1, 1)).metrics["total_instruction_count"]
    assert group is not None
    assert profile_of(run, (3, 2), 6 * group).metrics == tiles((3, 2)).metrics
    assert launches == [(2, 1), (3, 2)]
    assert profile_of(run, (2, 1), group).metrics == tiles((2, 1)).metrics
    assert launches[2:] == [(2, 1)]
    # Boxes of 1, 2, 2 and 4 groups, of which the second is the first run.
    assert profile_of(run, (30, 20), 9 * group).launch["extended"]["groups"] == [30, 20]
    assert launches[4:] == [(1, 1), (1, 2), (2, 2)]
    assert profile_of(run, (30, 20), 1e12, most_groups=100).launch["extended"]["groups"] == [30, 20]


@pytest.mark.parametrize(("op", "reads", "writes"), [("add", 2, 1), ("mulu", 1, 1), ("gelu", 1, 1)])
def test_elementwise_kernels_read_and_write_a_vector_a_work_item(op: str, reads: int, writes: int) -> None:
    groups, launch = elementwise_launch(op, 4 * 128 * 6)
    assert groups == (6, 1)
    metrics = crosscast.characterize(launch((2, 1))).metrics
    assert (metrics["total_reads"], metrics["total_writes"]) == (256 * reads, 256 * writes)


def test_layer_norm_has_mean_zero_and_deviation_one() -> None:
    groups, launch = layer_norm_launch(3, 768)
    made = launch(groups)
    x = np.random.default_rng(0).normal(2, 3, 3 * 768).astype(np.float32)
    args: list[Any] = list(made.args)
    args[2] = x
    crosscast.characterize(Launch(made.kernel, made.global_size, made.local_size, tuple(args)))
    y = args[7].reshape(3, 768)
    rows = x.reshape(3, 768)
    expected = (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
    np.testing.assert_allclose(y, expected, atol=1e-4)


def test_a_sample_of_configurations_is_spread_seeded_and_without_repeats() -> None:
    variants = [f"x={x};y={y}" for x in range(20) for y in range(10)]
    chosen = spread(variants, 20, 0)
    assert chosen == spread(variants, 20, 0) != spread(variants, 20, 1)
    assert len({variant.split(";")[0] for variant in chosen}) == 20
    assert spread(variants[:5], 20, 0) == variants[:5]


def test_a_transform_has_its_radices_and_a_sequence_its_strata() -> None:
    assert [radix for radix, _ in radices(2097152)] == [16, 16, 16, 16, 16, 2]
    assert [radix for radix, _ in radices(16384)] == [16, 16, 16, 4]
    found = strata(255, 12)
    assert len(found) == 12
    assert sum(count for _, count in found) == 255


@pytest.mark.parametrize(
    ("application", "size"),
    one_in(5, [("bfs", "tiny"), ("fft", "small"), ("dwt", "small"), ("nw", "tiny"), ("lud", "tiny")]),
)
def test_launches_of_regions_are_those_of_the_recorded_programs(application: str, size: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = shared_data("opendwarfs")
    recorded = {
        (row["kernel"], row["invocation"]): row
        for row in parquet.read_table(folder / "profiles.parquet").to_pylist()
        if (row["application"], row["size"]) == (application, size)
    }
    jobs, parts = region_jobs(folder / "launches", 3.0)
    checked = 0
    for job in jobs:
        if job.keys[0][0] != application or job.keys[0][2] != size or job.keys[0][1] == "copy_buffer":
            continue
        for key, profile in zip(job.keys, job.make(crosscast.characterize), strict=True):
            # The transform's launches are numbered over all radices.
            of_kernel = [other for other in sorted(recorded) if other[0] == key[1]]
            row = recorded[of_kernel[min(key[3], len(of_kernel) - 1)]]
            assert profile.metrics["work_items"] == row["work_items"]
            # Ids that are read in loops have left them since those were recorded: instructions are fewer.
            for name in ("total_reads", "total_writes", "total_barriers_hit"):
                found = profile.metrics[name]
                assert found is not None
                assert math.isclose(found, row[name], rel_tol=0.01), (key, name)
            checked += 1
    assert checked >= 3
    assert len(parts) == 104
