"""Each formula on small counts whose metrics can be worked out by hand."""

import math
from collections import Counter

import pytest

from crosscast.characterization import metrics as formulas
from crosscast.characterization.engine.counts import Counts, Outcomes
from crosscast.characterization.metrics import compute_metrics, covering, covering_histogram
from crosscast.profile import METRICS

# -- 90 % coverage


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], 0),
        ([1], 1),
        ([90, 10], 1),
        ([89, 11], 2),
        ([10] * 10, 9),
        ([1] * 11, 10),  # ceil(9.9) = 10
        ([0, 0, 5], 1),
    ],
)
def test_the_fewest_counts_that_reach_90_percent_rounded_up(counts: list[int], expected: int) -> None:
    assert covering(counts) == expected
    assert covering_histogram(Counter(counts)) == expected


def test_coverage_is_exact_where_doubles_are_not() -> None:
    total = 10**18 + 1
    goal = -(-9 * total // 10)
    assert covering([goal, total - goal]) == 1
    assert covering([goal - 1, total - goal + 1]) == 2


def test_coverage_takes_only_as_many_equal_counts_as_needed() -> None:
    assert covering_histogram({2: 10**12, 1: 10**12}) == 10**12 + 7 * 10**11


# -- parallelism


def _parallel() -> Counts:
    return Counts(
        opcodes=Counter(add=26),
        widths=Counter({1: 20, 4: 6}),
        totals=Counter({5: 3, 11: 1}),
        pieces=Counter({2: 5, 7: 1}),
        barriers=2,
    )


def test_parallelism_of_four_work_items() -> None:
    mean = (20 + 24) / 26
    expected = {
        "work_items": 4,
        "work_groups": 2,
        "total_barriers_hit": 2,
        "min_itb": 2,
        "max_itb": 7,
        "median_itb": 2,
        "min_ipt": 5,
        "max_ipt": 11,
        "median_ipt": 5,
        "load_imbalance": 6,
        "max_simd_width": 4,
        "mean_simd_width": mean,
        "sd_simd_width": math.sqrt((20 * (1 - mean) ** 2 + 6 * (4 - mean) ** 2) / 26),
        "granularity": 0.25,
        "barriers_per_instruction": (2 + 4) / 26,
        "instructions_per_operand": 26 / 44,
    }
    assert formulas.parallelism_metrics(_parallel(), 2) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("histogram", "expected"),
    [({3: 1}, 3), ({1: 1, 2: 1}, 1.5), ({1: 2, 9: 1}, 1), ({1: 1, 4: 1, 9: 1}, 4), ({1: 3, 8: 3}, 4.5)],
)
def test_medians_of_even_numbers_are_means_of_the_middle(histogram: dict[int, int], expected: float) -> None:
    assert formulas.median(histogram) == expected


# -- memory


def test_entropy_of_equal_counts_is_their_logarithm() -> None:
    assert formulas.entropy_bits({7: 1024}) == 10
    assert formulas.entropy_bits({5: 1}) == 0
    assert formulas.entropy_bits({}) == 0


def test_entropy_of_unequal_counts() -> None:
    # 1/2, 1/4, 1/8, 1/8
    assert formulas.entropy_bits({4: 1, 2: 1, 1: 2}) == pytest.approx(1.75, rel=1e-15)


def test_ratios_of_nothing_are_absent() -> None:
    found = formulas.memory_metrics(Counts())
    assert found["unique_read_write_ratio"] is None
    assert found["reread_ratio"] is None
    assert found["rewrite_ratio"] is None
    assert found["global_memory_address_entropy"] == 0


# -- control


@pytest.mark.parametrize(("patterns", "entropy"), [({1: 1 << 16}, 1), ({3: 4}, 2 / 16)])
def test_yokota_entropy_of_patterns_equally_frequent(patterns: dict[int, int], entropy: float) -> None:
    assert formulas.yokota_entropy([Outcomes(patterns=patterns)]) == pytest.approx(entropy, rel=1e-14)


def test_entropies_of_several_branches_are_weighted() -> None:
    branches = [Outcomes(patterns={10: 2}), Outcomes(patterns={60: 1})]
    assert formulas.yokota_entropy(branches) == pytest.approx((20 * 1 + 60 * 0) / 80 / 16, rel=1e-14)
    assert formulas.linear_entropy([Outcomes(10, 100), Outcomes(0, 100)]) == 2 * 10 / 200
    assert formulas.linear_entropy([Outcomes(8, 16)]) == 1


def test_fewer_than_17_outcomes_tell_nothing() -> None:
    assert formulas.linear_entropy([Outcomes(patterns={2: 1})]) == 0
    assert formulas.yokota_entropy([Outcomes()]) == 0


def test_all_metrics_come_in_the_order_of_the_table() -> None:
    assert list(compute_metrics(_parallel(), 2)) == [metric.name for metric in METRICS]
