"""Studies of co-running in print and in pictures: all that could be made, and why the rest could not."""

import io
from dataclasses import replace
from pathlib import Path

from counted_co_runs import studied

from crosscast.report.corun_evaluation import print_corun_evaluation
from crosscast.report.corun_figures.all_figures import write_corun_figures
from crosscast.studies.moolchandani2022 import NotMade

PICTURES = {
    "left-out-time",
    "left-out-slowdown",
    "left-out-power",
    "clusters",
    "silhouettes",
    "performance-strip-leave-benchmark-out",
    "performance-strip-random-80-20",
    "performance-heat",
    "performance-violins",
    "performance-split-violins",
    "performance-grid",
    "performance-path-shares",
    "performance-path-times",
    "power-strip-leave-benchmark-out",
    "power-strip-random-80-20",
    "power-heat",
    "power-path-shares",
    "power-path-times",
    "sizes",
}


def test_each_study_that_was_made_has_its_pictures(tmp_path: Path) -> None:
    paths = write_corun_figures(studied(), tmp_path / "figures")
    assert {path.stem for path in paths} == PICTURES
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_without_studies_there_is_a_picture_a_quantity_of_what_was_left_out(tmp_path: Path) -> None:
    paths = write_corun_figures(replace(studied(), studies=None), tmp_path)
    assert {path.stem for path in paths} == {name for name in PICTURES if name.startswith("left-out")}


def printed(**changes: NotMade) -> str:
    study = studied()
    assert study.studies is not None
    stream = io.StringIO()
    print_corun_evaluation(replace(study, studies=replace(study.studies, **changes)), stream)
    return stream.getvalue()


def test_all_studies_are_printed() -> None:
    text = printed()
    for part in (
        "clusters of 30 bags by fairness, LLC misses, L1 misses: mean silhouette",
        "time of bags of 2 by features, leave-benchmark-out: MAPE",
        "power of bags of 2 by features, random-80-20: MAPE",
        "published combinations (",
        "time: bags with a feature on their path through a decision tree of all that is known",
        "bags of several sizes, leave-benchmark-out: MAPE",
        "One predictor a size, as published: published-linear.",
        "times on cpu translated to other, each of 4 applications left out: MAPE",
        "Published: 7 to 9 % (an accuracy of 91 to 93 %)",
    ):
        assert part in text
    assert "Not studied" not in text


def test_what_could_not_be_studied_is_said_once_a_reason() -> None:
    why = NotMade("the power of no bag is known")
    text = printed(power=why, power_paths=why)
    assert (
        "Not studied: features for power, decision paths for power, as the power of no bag is known." in text
    )


def test_studies_are_in_json() -> None:
    study = studied()
    assert study.studies is not None
    told = replace(study, studies=replace(study.studies, sizes=NotMade("of why"))).to_dict()["studies"]
    assert told["sizes"] == {"not_made": "of why"}
    assert told["translations"][0]["to"] == "other"
    assert "studies" not in replace(study, studies=None).to_dict()
