"""Programs that are variants of each other are left out together."""

import pytest

from crosscast.decide.evaluation import duplicates, folds_together
from crosscast.errors import InputError

ALTIS = [
    "bfs",
    "busspeeddownload",
    "busspeedreadback",
    "cfd",
    "cfd_double",
    "fdtd2d",
    "kmeans",
    "maxflops",
    "nw",
]
PARTICLES = ["particlefilter_float", "particlefilter_naive", "pathfinder"]


def test_names_that_begin_alike_are_of_variants() -> None:
    assert duplicates([*ALTIS, *PARTICLES]) == (
        ("busspeeddownload", "busspeedreadback"),
        ("cfd", "cfd_double"),
        ("particlefilter_float", "particlefilter_naive"),
    )


@pytest.mark.parametrize(
    "names", [("nn", "nnx"), ("scanScan", "scandinavia"), ("bs", "bt"), ("sort", "mergeSort")]
)
def test_a_short_common_beginning_is_not_enough(names: tuple[str, str]) -> None:
    expected = () if names != ("scanScan", "scandinavia") else (tuple(sorted(names)),)
    assert duplicates(names) == expected


def test_case_does_not_matter() -> None:
    assert duplicates(["MatMulShared", "matmulGlobal"]) == (("MatMulShared", "matmulGlobal"),)


def test_named_groups_join_those_found() -> None:
    assert duplicates(ALTIS, [("bfs", "cfd"), ("nw", "kmeans")]) == (
        ("bfs", "cfd", "cfd_double"),
        ("busspeeddownload", "busspeedreadback"),
        ("kmeans", "nw"),
    )


def test_programs_of_other_machines_do_not_matter() -> None:
    assert duplicates(["bfs", "nw"], [("bfs", "elsewhere")]) == ()


def test_each_program_is_left_out_once() -> None:
    folds = folds_together(ALTIS, duplicates(ALTIS))
    assert sorted(name for fold in folds for name in fold) == ALTIS
    assert ("cfd", "cfd_double") in folds
    assert ("nw",) in folds


def test_something_must_be_left_to_learn_from() -> None:
    with pytest.raises(
        InputError, match=r"together: expected programs left to learn from, found all in a\+b"
    ):
        folds_together(["a", "b"], [("a", "b")])
