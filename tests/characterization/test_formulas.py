"""Each formula on small counts whose metrics can be worked out by hand.

Operands of instructions are as LLVM prints them. The cases of ``shared/oracle``, beside the checkout or where
``CROSSCAST_SHARED`` points, have outputs and all metrics of the published tool.
"""

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization import metrics as formulas
from crosscast.characterization import run
from crosscast.characterization.engine.counts import Counts, Outcomes
from crosscast.characterization.ir import Instruction
from crosscast.characterization.metrics import compute_metrics, covering, covering_histogram
from crosscast.profile import METRICS, Profile
from support.examples import one_in
from support.oracle import CASES, ORACLE, needs_oracle, oracle_launch

# -- 90 % coverage


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], 0), ([1], 1), ([90, 10], 1), ([89, 11], 2), ([10] * 10, 9), ([1] * 11, 10), ([0, 0, 5], 1)],
)
def test_the_fewest_counts_that_reach_90_percent_rounded_up(counts: list[int], expected: int) -> None:
    assert covering(counts) == expected
    assert covering_histogram(Counter(counts)) == expected


def test_coverage_is_exact_where_doubles_are_not_and_takes_no_more_equal_counts_than_needed() -> None:
    total = 10**18 + 1
    goal = -(-9 * total // 10)
    assert covering([goal, total - goal]) == 1
    assert covering([goal - 1, total - goal + 1]) == 2
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


def test_entropies_and_ratios_of_small_counts() -> None:
    assert [formulas.entropy_bits(each) for each in ({7: 1024}, {5: 1}, {})] == [10, 0, 0]
    assert formulas.entropy_bits({4: 1, 2: 1, 1: 2}) == pytest.approx(1.75, rel=1e-15)  # 1/2, 1/4, 1/8, 1/8
    nothing = formulas.memory_metrics(Counts())
    assert nothing["global_memory_address_entropy"] == 0
    assert {nothing[name] for name in ("unique_read_write_ratio", "reread_ratio", "rewrite_ratio")} == {None}


# -- control


def test_entropies_of_branches() -> None:
    def yokota(*branches: Outcomes) -> float:
        return formulas.yokota_entropy(branches)

    assert yokota(Outcomes(patterns={1: 1 << 16})) == pytest.approx(1, rel=1e-14)
    assert yokota(Outcomes(patterns={3: 4})) == pytest.approx(2 / 16, rel=1e-14)
    # Several are weighted.
    several = yokota(Outcomes(patterns={10: 2}), Outcomes(patterns={60: 1}))
    assert several == pytest.approx((20 * 1 + 60 * 0) / 80 / 16, rel=1e-14)
    assert formulas.linear_entropy([Outcomes(10, 100), Outcomes(0, 100)]) == 2 * 10 / 200
    assert formulas.linear_entropy([Outcomes(8, 16)]) == 1
    # Fewer than 17 outcomes tell nothing.
    assert formulas.linear_entropy([Outcomes(patterns={2: 1})]) == yokota(Outcomes()) == 0


def test_all_metrics_come_in_the_order_of_the_table() -> None:
    assert list(compute_metrics(_parallel(), 2)) == [metric.name for metric in METRICS]


OF_CONSTANTS = "getelementptr inbounds nuw (i8, ptr addrspace(3) @x.y, i64 4)"


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("add nsw i32 %a, %b", "i32: %a; i32: %b"),
        ("fcmp fast olt <2 x double> %x, zeroinitializer", "<2 x double>: %x; <2 x double>: zeroinitializer"),
        ("load volatile i32, ptr addrspace(1) %x, align 4", "i32:; ptr addrspace(1): %x"),
        ('store atomic i32 1, ptr %p syncscope("a, b") release, align 4', "i32: 1; ptr: %p"),
        ("cmpxchg weak ptr %p, i32 %a, i32 0 acq_rel monotonic, align 4", "ptr: %p; i32: %a; i32: 0"),
        ('br i1 %c, label %"a, b", label %b', 'i1: %c; label: %"a, b"; label: %b'),
        (
            "switch i32 %v, label %d [ i32 0, label %a i32 1, label %d ]",
            "i32: %v; label: %d; i32: 0; label: %a; i32: 1; label: %d",
        ),
        ("ret void", ""),
        ("alloca [16 x { i32, <2 x float> }], align 4", "[16 x { i32, <2 x float> }]:"),
        ("getelementptr inbounds nuw %struct.S, ptr %p, i64 0, i32 1", "%struct.S:; ptr: %p; i64: 0; i32: 1"),
        (
            f"getelementptr [4 x i8], ptr addrspace(3) {OF_CONSTANTS}, i64 %i",
            f"[4 x i8]:; ptr addrspace(3): {OF_CONSTANTS}; i64: %i",
        ),
        (
            "select i1 %c, <2 x i32> splat (i32 1), <2 x i32> <i32 0, i32 1>",
            "i1: %c; <2 x i32>: splat (i32 1); <2 x i32>: <i32 0, i32 1>",
        ),
    ],
)
def test_operands_are_types_and_values(text: str, operands: str) -> None:
    instruction = Instruction(text, text.split(" ")[0])
    assert "; ".join(f"{each.type}: {each.value}".strip() for each in instruction.operands) == operands
    instruction.rename(lambda name: name)
    assert instruction.text == text


def test_arguments_of_a_call_have_attributes() -> None:
    text = (
        "tail call spir_func float @_Z3fooPU3AS1f(ptr addrspace(1) noundef align 4 %0, "
        "ptr byval(%struct.S) align 8 %s, float nofpclass(nan inf) 1.000000e+00, i64 range(i64 0, 5) %n)"
    )
    call = Instruction(text, "call", "float")
    assert call.callee == "_Z3fooPU3AS1f"
    assert [tuple(operand) for operand in call.operands] == [
        ("ptr addrspace(1)", "%0", "noundef align 4"),
        ("ptr", "%s", "byval(%struct.S) align 8"),
        ("float", "1.000000e+00", "nofpclass(nan inf)"),
        ("i64", "%n", "range(i64 0, 5)"),
    ]
    assert call.uses() == {"%0", "%s", "%n"}


def test_calls_without_a_name_labels_and_constants() -> None:
    assert Instruction('call i32 asm "@f()", "=r"()', "call", "i32").callee == ""
    assert Instruction("call void %f(i32 1)", "call").callee == ""
    branch = Instruction("br i1 %c, label %a, label %b", "br")
    branch.retarget("%a", "%b")
    assert (branch.targets, branch.successors, branch.uses()) == (["%b", "%b"], ["%b"], frozenset({"%c"}))
    text = "getelementptr i8, ptr addrspace(4) addrspacecast (ptr addrspace(3) @x to ptr addrspace(4)), i64 4"
    cast = Instruction(text, "getelementptr", "ptr addrspace(4)").operands[1].constant_expression
    assert cast is not None
    assert cast.type == "ptr addrspace(4)"
    assert cast.text == "addrspacecast ptr addrspace(3) @x to ptr addrspace(4)"


# -- the published tool


@dataclass
class _Run:
    profile: Profile
    expected: dict[str, str]
    found_outputs: dict[str, npt.NDArray[Any]]
    expected_outputs: Mapping[str, npt.NDArray[Any]]


def _run(case: str, form: str, **options: Any) -> _Run:
    folder = ORACLE / case
    outputs = dict(np.load(folder / "outputs.npz"))
    launch, names = oracle_launch(case, form)
    profile = run.characterize_launch(launch, options=run.Options(published=True, **options))
    with (folder / "metrics.csv").open() as file:
        expected = {row["metric"]: row["count"] for row in csv.DictReader(file)}
    found = {name: a for name, a in zip(names, launch.args, strict=True) if isinstance(a, np.ndarray)}
    return _Run(profile, expected, found, outputs)


def _same_number(found: float, expected: str) -> bool:
    """Equal as printed: integers exactly, reals to the 6 or 4 digits that the table gives."""
    if isinstance(found, int):
        return str(found) == expected
    return expected in (f"{found:.6g}", f"{found:.4g}")


@needs_oracle
@pytest.mark.parametrize("threads", one_in(2, [1, 2]))
@pytest.mark.parametrize("case", CASES)
def test_bitcode_computes_the_outputs_and_all_published_numbers(case: str, threads: int) -> None:
    run_ = _run(case, "bitcode", threads=threads)
    for name, expected in run_.expected_outputs.items():
        np.testing.assert_array_equal(run_.found_outputs[name], expected)
    found = {name: value for name, _, value in run_.profile.published}
    wanted = {name: value for name, value in run_.expected.items() if "PSL" not in name}
    wrong = {
        name: (found.get(name), value)
        for name, value in wanted.items()
        if name not in found or not _same_number(found[name], value)
    }
    assert not wrong


@needs_oracle
@pytest.mark.parametrize("case", CASES)
def test_source_computes_the_outputs_and_counts_within_two_percent(case: str) -> None:
    run_ = _run(case, "source")
    for name, expected in run_.expected_outputs.items():
        np.testing.assert_array_equal(run_.found_outputs[name], expected)
    counts = [each for each in run_.profile.published if each[0].startswith(("Total", "Unique", "Work"))]
    assert len(counts) > 10
    for name, _, value in counts:
        assert value == pytest.approx(float(run_.expected[name]), rel=0.02), name
