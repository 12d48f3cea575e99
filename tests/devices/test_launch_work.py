"""What operations cost on the units of devices."""

import numpy as np
import pytest

import crosscast
from crosscast.devices.catalogue import device_named
from crosscast.devices.launch_work import (
    PRODUCT_COST,
    amounts_of,
    division_instructions,
    operation_counts,
    saved_loads,
)
from crosscast.devices.sheets import sheets_of
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.terms import TERMS, terms

LOOP = "kernel void k(global {type} *x) {{ {type} a = x[get_global_id(0)]; for (int i = 0; i < 1024; i++) a = {}; x[get_global_id(0)] = a; }}"  # noqa: E501
ITEMS = 256


def profile_of(expression: str, type_: str) -> crosscast.Profile:
    kernel = crosscast.Kernel.from_source(LOOP.format(expression, type=type_), "k")
    array = np.ones(ITEMS, {"uint": np.uint32, "float": np.float32, "double": np.float64}[type_])
    return crosscast.characterize(kernel, ITEMS, 64, [array])


@pytest.mark.parametrize(
    ("expression", "type_", "each"),
    [
        ("a * 1664525u + 1013904223u", "uint", PRODUCT_COST),
        ("a * 1664525u", "uint", PRODUCT_COST),
        ("(a ^ 12345u) + 77u", "uint", 2),
        ("fma(a, 0.5f, 1.0f)", "float", 1),
        ("fma(a, 0.5, 1.0)", "double", 1),
        ("native_sin(a)", "float", 4),
        ("1.0f / (a + 1.0f)", "float", 9),
        ("4000000000u / (a + 1u)", "uint", 25),
        ("(a ^ 12345u) % 1000003u", "uint", 5),
    ],
)
def test_a_loop_costs_what_its_body_does_and_little_more(expression: str, type_: str, each: float) -> None:
    work = amounts_of(profile_of(expression, type_))
    assert work is not None
    per_iteration = work.issued / (ITEMS * 1024)
    # An addition, a comparison and a branch control the loop; unrolled four times it has a quarter of them.
    assert each <= per_iteration <= each + 0.8


def test_other_units_than_those_of_doubles_select_doubles() -> None:
    without_classes = operation_counts({}, 1000.0)
    assert without_classes["operations"] == sum(without_classes.values()) == 1000
    counts = operation_counts({"fp64": {"add": 10, "select": 20}}, 0.0)
    assert (counts["operations_fp64"], counts["operations"], counts["further_cost"]) == (10, 40, 0)


def test_divisions_by_what_a_loop_does_not_change_take_half_and_a_sum_joins_a_product() -> None:
    each = [division_instructions(*kind, product_cost=2.0) for kind in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert each == [16 + 4 * 2, (16 + 4 * 2) / 2, 50]
    counts = operation_counts({"fp32": {"add": 7, "mul": 5, "fused": 3, "div": 1}}, 0.0)
    assert counts["floating"] == 7 + 3


def test_loads_that_compilers_join_are_one_for_sixteen_bytes() -> None:
    classes = {"loads": {"local": {"4": 60}}, "reloads": {"local": {"4": 20}}}
    assert saved_loads(classes) == (20 / 80, 0)
    assert operation_counts(classes, 1e3)["operations"] == 60
    classes["consecutive"] = {"local": {"4": 80, "8": 40}}
    assert saved_loads(classes) == (20 / 200, (60 + 20) / 200)
    assert operation_counts(classes, 1e3)["operations"] == 60 + 20 + 20
    assert saved_loads({}) == (0, 0)


# Special functions of a unit in a clock
@pytest.mark.parametrize(("device", "rate"), [("a100-sxm-80gb", 16), ("h100-sxm", 16), ("gtx1080", 32)])
def test_no_forecast_is_faster_than_the_unit_for_special_functions(device: str, rate: int) -> None:
    profile = profile_of("native_sin(a)", "float")
    sheets = sheets_of([device_named(device)])
    arithmetic = terms(work_of([profile]), sheets)[0, 0, TERMS.index("arithmetic")]
    units = min(sheets.units[0, 0], ITEMS / 64)
    # Two of a unit's four schedulers have a sub-group.
    floor_s = 1024 * ITEMS / (rate / 2 * units * sheets.clock[0, 0])
    assert floor_s <= arithmetic <= 1.1 * floor_s


@pytest.mark.parametrize(
    ("kind", "single", "double"),
    # FMA pipes and others of sm_80, without rare paths: cuobjdump of kernels by nvcc 12.9
    [("exp", 8, 14), ("log", 24, 27), ("pow", 60, 78), ("native_pow", 8, 20), ("erf", 32, 42)],
)
def test_functions_cost_what_their_machine_code_does(kind: str, single: float, double: float) -> None:
    counts = operation_counts({"fp32": {kind: 10}, "fp64": {kind: 10}}, 0.0)
    assert counts["operations_real"] == 10 * single
    assert counts["operations_fp64"] == 10 * double
