"""Combinations of features are compared where they can be made, and named where they cannot."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from counted_co_runs import APPLICATIONS, counted_co_runs, studied
from made_co_runs import made_co_runs

from crosscast.evaluate.corun import evaluate_corun, of_one_device
from crosscast.predict.corun.moolchandani2022 import FIGURE_8, TABLE_7, Combination, Published
from crosscast.studies.moolchandani2022 import (
    EVERYTHING,
    SPLITS,
    CombinationStudy,
    NotMade,
    performance_combinations,
    power_combinations,
    why_missing,
)

WAY: dict[str, Any] = {"progress": None, "cache": None, "jobs": 1}


def performance() -> CombinationStudy:
    studies = studied().studies
    assert studies is not None
    assert isinstance(studies.performance, CombinationStudy)
    return studies.performance


def test_every_published_combination_is_made_or_named_with_what_it_lacks() -> None:
    study = performance()
    asked = {each.name for row in FIGURE_8 for each in row}
    assert {*study.names, *study.missing} == {*asked, "GPU_time", EVERYTHING}
    assert not set(study.names) & set(study.missing)
    assert study.names[:2] == ("ALU+SSE", "ALU+SSE+GPU_time")
    assert study.missing["MEM+CPU_time"] == ("CPU_time",)
    power = studied().studies.power  # type: ignore[union-attr]
    assert isinstance(power, CombinationStudy)
    assert {*power.names, *power.missing} == {*(each.name for each in TABLE_7), "GPU_power", EVERYTHING}


def test_why_a_combination_is_missing_tells_bags_from_applications() -> None:
    assert why_missing(["IPC_sh", "CPU_time"]) == (
        "IPC_sh only told by running the bag itself; CPU_time known of no application here"
    )


def test_errors_are_those_of_the_published_model_with_these_features() -> None:
    study = performance()
    co_runs = of_one_device(counted_co_runs((2,)), "cpu")
    combination = Combination("mine", ("MEM", "GPU_time"))
    evaluation = evaluate_corun(co_runs, [Published("linear", combination)], SPLITS[0], level=None)
    (own,) = [each for each in evaluation.results if each.quantity == "time" and each.bag_size is None]
    row, column = study.names.index("MEM+GPU_time"), study.kinds.index("linear")
    assert study.mape(SPLITS[0])[row, column] == own.mape
    assert study.by_benchmark()["cfd"][row, column] == own.by_group["cfd"]  # type: ignore[index]
    assert list(study.by_benchmark()) == list(APPLICATIONS)


def test_results_are_json_with_a_row_a_split_combination_and_model() -> None:
    study = performance()
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert len(told["results"]) == len(SPLITS) * len(study.names) * len(study.kinds)
    assert told["not_made"]["MEM+CPU_time"] == "CPU_time known of no application here"
    assert np.isfinite(study.mape(SPLITS[1])).all()


def test_without_times_of_bags_slowdowns_are_predicted_and_without_power_nothing_of_it() -> None:
    made = made_co_runs(("bfs", "cfd", "crc", "csr"), power=False)
    untimed = made_co_runs(("bfs", "cfd", "crc", "csr")).bags
    co_runs = replace(made, bags=tuple(replace(bag, time_s=None, power_w=None) for bag in untimed))
    study = performance_combinations(co_runs, 0, kinds=["linear"], **WAY)
    assert isinstance(study, CombinationStudy)
    assert study.quantity == "slowdown"
    power = power_combinations(co_runs, 0, **WAY)
    assert power == NotMade("the power of no bag is known")
