"""Features of Table III: which counters of which tool give them."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.prediction.relative.counters import INTENSITIES, RULES, TABLE_3, plain_name, table3_features
from support.vectors import runs_with


def features(counters: Mapping[str, float]) -> dict[str, float]:
    """The features that a run has."""
    (values,) = table3_features(runs_with(counters))[0]
    return {name: value for name, value in zip(TABLE_3, values.tolist(), strict=True) if not np.isnan(value)}


PAPI = {
    "PAPI_TOT_INS": 1000.0,
    "PAPI_BR_INS": 200.0,
    "PAPI_SR_INS": 100.0,
    "PAPI_LD_INS": 250.0,
    "PAPI_SP_OPS": 50.0,
    "PAPI_DP_OPS": 400.0,
    "bdw_ep::ARITH": 10.0,
    "PAPI_L1_LDM": 7.0,
    "PAPI_L1_STM": 6.0,
    "PAPI_L2_LDM": 5.0,
    "PAPI_L2_STM": 4.0,
    "PAPI_MEM_SCY": 3.0,
    "IO Bytes Written": 2.0,
    "IO Bytes Read": 1.0,
    "EPT": 8.0,
}


def test_papi_gives_every_feature_of_the_table() -> None:
    assert features(PAPI) == pytest.approx(
        {
            "branch intensity": 0.2,
            "store intensity": 0.1,
            "load intensity": 0.25,
            "single fp intensity": 0.05,
            "double fp intensity": 0.4,
            "arithmetic intensity": 0.01,
            "l1 load misses": 7,
            "l1 store misses": 6,
            "l2 load misses": 5,
            "l2 store misses": 4,
            "io bytes written": 2,
            "io bytes read": 1,
            "extended page table": 8,
            "memory stalls": 3,
        }
    )


def test_misses_are_requests_that_do_not_hit() -> None:
    values = features({"local_load_requests": 200, "local_store_requests": 50, "local_hit_rate": 75})
    assert values == {"l1 load misses": 50, "l1 store misses": 12.5}
    assert features({"local_load_requests": 200, "local_hit_rate": 101})["l1 load misses"] == 0


def test_counters_of_amd_serve_two_features_as_in_the_table() -> None:
    instructions = {"VALUInsts": 60, "SALUInsts": 20, "LDSInsts": 15, "GDSInsts": 5}
    memory = {"TCC_MISS_sum": 40, "TCC_EA_RDREQ": 30, "TCC_EA_WRREQ": 10, "MemUnitStalled": 12}
    values = features(instructions | memory)
    assert values == pytest.approx(
        {
            "store intensity": 0.2,
            "load intensity": 0.2,
            "single fp intensity": 0.8,
            "double fp intensity": 0.8,
            "l2 load misses": 30,
            "l2 store misses": 10,
            "memory stalls": 12,
        }
    )


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("papi.PAPI_BR_INS", "papi_br_ins"),
        ("perf::BRANCHES", "branches"),
        ("branches:u", "branches"),
        ("branches:ppp", "branches"),
        ("cpu_core/branches/u", "branches"),
        ("bdw_ep::ARITH", "bdw_ep::arith"),
        ("GINS: STL_ANY", "gins:stl_any"),
        ("executed_control.flow_instructions", "executed_control.flow_instructions"),
    ],
)
def test_names_are_told_apart_from_what_tools_put_around_them(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_cores_of_two_kinds_are_added_up() -> None:
    values = features({"cpu_core/instructions/": 70, "cpu_atom/instructions/": 30, "cpu_core/branches/": 10})
    assert values == {"branch intensity": 0.1}
    rows = runs_with(
        {"cpu_core/instructions/": 50, "branches": 5}, {"cpu_atom/instructions/": 20, "branches": 5}
    )
    assert table3_features(rows)[0][:, 0].tolist() == [0.1, 0.25]


def test_every_rule_is_for_a_feature_and_intensities_alone_have_a_total() -> None:
    assert {rule.feature for rule in RULES} == set(TABLE_3)
    assert all((rule.whole is not None) == (rule.feature in INTENSITIES) for rule in RULES)
    assert all(
        plain_name(name) == name for rule in RULES for name in (*rule.amount.needs, *rule.amount.may_use)
    )


NUMBERS = st.floats(min_value=1, max_value=1e12)


@given(
    counts=st.fixed_dictionaries(dict.fromkeys(PAPI, NUMBERS)),
    order=st.permutations(list(PAPI)),
    factor=st.floats(min_value=1e-3, max_value=1e6),
)
def test_order_does_not_matter_and_more_of_the_same_has_the_same_intensities(
    counts: dict[str, float], order: list[str], factor: float
) -> None:
    before = features(counts)
    assert features({name: counts[name] for name in order}) == before
    after = features({name: factor * value for name, value in counts.items()})
    assert {name: after[name] for name in INTENSITIES} == pytest.approx(
        {name: before[name] for name in INTENSITIES}
    )
    amounts = set(TABLE_3) - set(INTENSITIES)
    assert {name: after[name] for name in amounts} == pytest.approx(
        {name: factor * before[name] for name in amounts}
    )


_DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT: str = runpy.run_path(str(_DOCS / "hooks.py"))["on_page_markdown"](
    (_DOCS / "counters.md").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("tool", dict.fromkeys(rule.tool for rule in RULES))
def test_every_rule_is_in_the_table_of_its_tool(tool: str) -> None:
    text = DOCUMENT.split(f"\n### Counters of {tool}\n")[-1].split("\n### ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        f"| {rule.feature} | `{rule.amount.text}` | {f'`{rule.whole.text}`' if rule.whole else ''} |"
        for rule in RULES
        if rule.tool == tool
    ]
