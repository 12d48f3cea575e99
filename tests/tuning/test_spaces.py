"""Spaces of variants, which are valid and how they are launched, and searches in them with known times."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from crosscast.arrays import Reals
from crosscast.characterization.launchfiles import read_launches
from crosscast.devices.device_files import read_device
from crosscast.errors import InputError
from crosscast.tuning import Space
from crosscast.tuning.evaluation import expected_of_random, searched
from crosscast.tuning.expressions import Expression, plain
from crosscast.tuning.search import Candidates, Prior, Search, TuningProcess, expected_gain
from crosscast.tuning.space_files import read_space, t1_of, t4_of
from support.refusals import refusal, refusals

KERNEL = """
kernel void scale(global float *x, float by) {
    for (int k = 0; k < TILE; ++k) x[get_global_id(0) * TILE + k] *= by;
}
"""
SPACE = """
kernel = "scale"
constraints = ["GROUP * TILE <= 128", "TILE != 3 or GROUP == 32"]
[parameters]
GROUP = [32, 64]
TILE = "range(1, 5)"
UNUSED = [0, 1]
[launch]
global = "4096 // (GROUP * TILE) * GROUP"
local = ["GROUP"]
[[arg]]
type = "float"
length = "4096"
[[arg]]
type = "float"
value = 2.0
"""
T1: dict[str, Any] = json.loads("""
{"General": {"BenchmarkName": "scale"},
 "ConfigurationSpace": {
  "TuningParameters": [
   {"Name": "block_size_x", "Type": "int", "Values": "[2**i for i in range(5, 8)]", "Default": 32},
   {"Name": "TILE", "Type": "int", "Values": "[1] + list(range(2, 5, 2))", "Default": 1}],
  "Conditions": [{"Expression": "32 <= block_size_x*TILE <= 128", "Parameters": ["block_size_x", "TILE"]}]},
 "KernelSpecification": {
  "Language": "OpenCL", "KernelName": "scale", "KernelFile": "scale.cl", "ProblemSize": [4096],
  "GridDivX": ["block_size_x", "TILE"], "GlobalSize": {"X": "4096"}, "LocalSize": {"X": "block_size_x"},
  "Arguments": [
   {"Name": "x", "Type": "float", "MemoryType": "Vector", "Size": "ProblemSize[0]", "FillType": "Random"},
   {"Name": "by", "Type": "float", "MemoryType": "Scalar", "FillValue": 2.0}]}}
""")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.cl").write_text(KERNEL)
    return tmp_path


def space_of(folder: Path, text: str = SPACE, source: str | None = "scale.cl") -> Space:
    path = folder / f"space.{'json' if text.startswith('{') else 'toml'}"
    path.write_text(text)
    return read_space(path, source and folder / source)


def test_variants_fulfil_all_constraints_and_are_launched_by_parameters(folder: Path) -> None:
    space = space_of(folder)
    variants = space.variants()
    expected = [
        {"GROUP": group, "TILE": tile, "UNUSED": unused}
        for group, tile, unused in itertools.product((32, 64), (1, 2, 3, 4), (0, 1))
        if group * tile <= 128 and (tile != 3 or group == 32)
    ]
    assert [dict(variants[row]) for row in range(len(variants))] == expected
    assert not variants.drawn
    launch, again = (space.rule.launch({"GROUP": 32, "TILE": 4, "UNUSED": 1}) for _ in range(2))
    assert (launch.global_size, launch.local_size) == ((1024,), (32,))
    # They do not share what kernels write.
    one, other = launch.args[0], again.args[0]
    assert isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    one[0] = 7
    assert (other[0], other.shape) == (0, (4096,))
    # Parameters that the source does not name share its compilation.
    first, second = ({"GROUP": group, "TILE": 2, "UNUSED": unused} for group, unused in ((32, 0), (64, 1)))
    assert space.rule.kernel_of(first) == space.rule.kernel_of(second)
    assert space.rule.kernel_of(first).program.options == ("-DTILE=2",)


def test_t1_files_are_read_as_they_are(folder: Path) -> None:
    space = space_of(folder, json.dumps(T1), None)
    variants = space.variants()
    found = [tuple(variants[row].values()) for row in range(len(variants))]
    assert found == [(32, 1), (32, 2), (32, 4), (64, 1), (64, 2), (128, 1)]
    launch = space.rule.launch(variants[2])
    assert (launch.global_size, launch.local_size) == ((1024,), (32,))
    assert isinstance(launch.args[0], np.ndarray) and launch.args[0].size == 4096


def test_constraints_of_t1_may_name_the_size_of_the_problem(folder: Path) -> None:
    condition = {"Expression": "block_size_x * TILE <= ProblemSize[0] // 64"}
    section = T1["ConfigurationSpace"] | {"Conditions": [condition]}
    (folder / "alone").mkdir()
    as_text = T1 | {"KernelSpecification": T1["KernelSpecification"] | {"ProblemSize": ["4096"]}}
    for each, content in ((folder, T1), (folder / "alone", T1), (folder, as_text)):
        space = space_of(each, json.dumps(content | {"ConfigurationSpace": section}), None)
        assert [label.split(";") for label in space.variants().labels] == [
            [f"block_size_x={group}", f"TILE={tile}"] for group, tile in ((32, 1), (32, 2), (64, 1))
        ]


ARGUMENTS = """
[[arg]]
local = "4 * GROUP"
[[arg]]
type = "char"
length = 64
fill = "constant"
value = 3
[[arg]]
type = "ulong"
value = "TILE"
"""
CUDA_SPACE = SPACE.replace("global =", "shared = '4 * GROUP'\ngrid =").replace('local = ["', 'block = [8, "')
ON_PROBLEM = {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "ProblemSize[0] // TILE"}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (SPACE + ARGUMENTS, "scale.cl"),
        (SPACE.replace("[param", "standard = '2.0'\n[param"), "scale.cl"),
        (CUDA_SPACE + ARGUMENTS, "scale.cu"),
        (json.dumps(T1).replace('{"Name": "by"', json.dumps(ON_PROBLEM) + ', {"Name": "by"'), None),
    ],
)
def test_a_space_written_as_t1_is_the_same(folder: Path, text: str, source: str | None) -> None:
    (folder / "scale.cu").write_text("__global__ void scale(float *x, float by) {}")
    space = space_of(folder, text, source)
    written = folder / "written"
    written.mkdir()
    again = space_of(written, json.dumps(t1_of(space, "scale")), None)
    assert again.variants().labels == space.variants().labels
    assert again.rule.program == space.rule.program
    variant = space.variants()[3]
    assert again.rule.groups(variant) == space.rule.groups(variant)
    one, other = space.rule.launch(variant), again.rule.launch(variant)
    assert one.shared == other.shared
    for a, b in zip(map(np.asarray, one.args), map(np.asarray, other.args), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


@refusals("old new sentence")
def test_what_t1_has_no_words_for_is_not_written(folder: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        t1_of(space_of(folder, SPACE.replace(old, new)), "scale")


def test_results_are_written_as_t4() -> None:
    variants, forecasts = [{"A": 1}, {"A": 2}, {"A": 3}], [{"forecast": 1e-3}] * 3
    t4 = t4_of(variants, {0: [2e-3, 1e-3, 3e-3]}, {1: "runtime"}, forecasts)
    first, second, third = json.loads(json.dumps(t4))["results"]
    assert first["measurements"][0] == {"name": "time", "value": 2.0, "unit": "ms"}
    assert (second["invalidity"], second["correctness"]) == ("runtime", 0)
    assert third["times"]["runtimes"] == [] and third["measurements"][0]["value"] == 1.0
    # It did not run, so that nothing tells whether it is correct.
    assert first["correctness"] == 1 and not {"invalidity", "correctness"} & set(third)


def test_more_variants_than_are_taken_are_drawn(tmp_path: Path) -> None:
    values = "".join(f"{name} = 'range(1, 41)'\n" for name in "abcd")
    space = space_of(tmp_path, f"constraints = ['(a + b) % 2 == 0']\n[parameters]\n{values}", None)
    variants = space.variants(most=1000)
    assert variants.drawn and len(set(variants.labels)) == len(variants) == 1000
    assert all((int(variants[row]["a"]) + int(variants[row]["b"])) % 2 == 0 for row in range(1000))
    assert space.variants(most=1000).labels == variants.labels


NUMBERS = st.integers(-20, 20)
ARITHMETIC = st.recursive(
    st.one_of(st.sampled_from(["x", "y"]), NUMBERS.map(str)),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("abs({})".format, inner),
        st.builds("({} if {} > 2 else {})".format, inner, inner, inner),
    ),
    max_leaves=8,
)


@given(ARITHMETIC, NUMBERS, NUMBERS)
def test_arithmetic_is_that_of_python(text: str, x: int, y: int) -> None:
    try:
        expected = eval(text, {}, {"x": x, "y": y})
    except ZeroDivisionError:
        return
    value = Expression.parse(text, "here", frozenset("xy")).value({"x": x, "y": y})
    assert plain(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(ARITHMETIC, ARITHMETIC, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_constraints_of_many_are_those_of_each(left: str, right: str, pairs: list[tuple[int, int]]) -> None:
    constraint = Expression.parse(f"{left} <= {right}", "here", frozenset("xy"))
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    together = constraint.holds({"x": x, "y": y}, len(pairs))
    assert together.tolist() == [bool(constraint.holds({"x": a, "y": b}, 1)[0]) for a, b in pairs]


@refusals("text")
def test_what_is_not_arithmetic_is_refused(text: str) -> None:
    assert "here: expected arithmetic" in refusal(Expression.parse, text, "here", frozenset("x"))


def test_arithmetic_may_be_nested_sixty_deep_and_no_deeper() -> None:
    names = frozenset("x")
    assert Expression.parse("-" * 60 + "x", "here", names).value({"x": 3}) == 3
    for text in ("(" * 300 + "x" + ")" * 300, "-" * 61 + "x", "x + " * 3000 + "x"):
        assert "here: expected arithmetic" in refusal(Expression.parse, text, "here", names)


@refusals("text")
def test_arithmetic_without_a_sensible_value_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="here: expected arithmetic"):
        Expression.parse(text, "here", frozenset("x")).value({"x": [1, 2]})


@refusals("text sentence")
def test_bad_spaces_are_refused_in_a_sentence(folder: Path, text: str, sentence: str) -> None:
    text = text if text.startswith("kernel") else f"kernel = 'scale'\n{text}"
    with pytest.raises(InputError, match=sentence):
        space_of(folder, text).variants()


@pytest.mark.parametrize("read", [read_space, read_launches, read_device])
@pytest.mark.parametrize("value", ["[" * 5000, "1" * 5000])
def test_toml_beyond_the_reader_is_refused(folder: Path, read: Callable[[Path], object], value: str) -> None:
    path = folder / "deep.toml"
    path.write_text(f"a = {value}")
    assert "TOML" in refusal(read, path)


@refusals("section changed sentence")
def test_bad_t1_files_are_refused(folder: Path, section: str, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        space_of(folder, json.dumps(T1 | {section: T1[section] | changed} if changed else {}), None)


@pytest.mark.parametrize(
    "items", ["range(TILE)", "[x for x in [1] if x < TILE]", "GROUP * 99999999999999999999"]
)
def test_what_is_not_computed_for_all_variants_at_once_is_no_coordinate(folder: Path, items: str) -> None:
    space = space_of(folder, SPACE.replace("4096 // (GROUP * TILE)", f"sum({items}) // 1"))
    variants = space.variants()
    assert space.rule.coordinates(variants).tolist() == variants.coordinates.tolist()


PRIOR = Prior(constant=0.5, linear=0.5, smooth=0.5, noise=0.05)


def made(seed: int, n: int = 400, error: float = 0.3) -> tuple[Candidates, Reals]:
    """A space whose times the forecast misses by a bias, by a share of a term, and by a smooth part."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.5, 1.5, (n, 3))
    shares = rng.dirichlet((1, 1, 1), n)
    forecast = (points**2).sum(axis=1)
    errors = 0.4 + error * (np.sin(2 * points[:, 0]) + shares[:, 1])
    return Candidates(forecast, np.full(n, 0.5), shares, points, np.zeros((n, 0))), np.exp(forecast + errors)


def measure(search: Search, time_s: Reals, runs: int) -> None:
    for _ in range(runs):
        (row,) = search.next()
        search.add({int(row): float(time_s[row])})


def test_a_process_passes_through_its_points_and_knows_itself_without_one() -> None:
    points = np.random.default_rng(0).normal(size=(25, 2))
    values = np.stack([np.sin(points[:, 0]), points @ [1.0, 2.0]], axis=1)
    fitted = TuningProcess.fit(points, points, values, PRIOR)
    means, deviations = fitted.predict(points, points)
    assert np.abs(means - values).max() < 0.15
    far = fitted.predict(points + 50, points + 50)[1]
    assert far.min() > deviations.max()
    others = np.arange(25) != 4
    again = TuningProcess(points[others], points[others], values[others], fitted.logs)
    assert fitted.leave_one_out()[4] == pytest.approx(again.predict(points[[4]], points[[4]])[0][0], abs=1e-6)


@given(st.floats(-3, 3), st.floats(0.05, 2), st.floats(-3, 3))
def test_the_expected_gain_is_its_integral(mean: float, deviation: float, best: float) -> None:
    low = mean - 12 * deviation
    density = norm(mean, deviation).pdf
    gain = quad(lambda t: (best - t) * density(t), low, best, limit=200)[0] if best > low else 0.0
    value = np.exp(expected_gain(np.array([mean]), np.array([deviation]), best))[0]
    assert value == pytest.approx(gain, rel=0.05, abs=1e-7)
    # Gains far below are still in order.
    near, far, farther = expected_gain(np.array([10.0, 20.0, 40.0]), np.full(3, 0.5), 0.0)
    assert near > far > farther > -np.inf


@pytest.mark.parametrize("misled", [False, True])
def test_a_forecast_is_weighted_by_the_likelihood_of_measurements(misled: bool) -> None:
    """A forecast without error finds the best at once; one of another space delays it by a few runs."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(400, 3))
    log_time = np.sin(points[:, 0]) + 0.5 * points[:, 1] ** 2
    forecast = rng.permutation(log_time) if misled else log_time
    search = Search(Candidates(forecast, np.full(400, 0.3), np.zeros((400, 0)), points, np.zeros((400, 0))))
    measure(search, np.exp(log_time), 20)
    runs = list(search.log_times.values())
    assert (runs[0] == log_time.min()) is not misled
    assert min(runs) <= np.quantile(log_time, 0.01)


def test_the_first_runs_keep_apart_where_the_forecast_prefers_one_corner() -> None:
    candidates, time_s = made(3)
    wrong = replace(candidates, log_time=candidates.points.sum(axis=1))
    search = Search(wrong)
    measure(search, time_s, 10)
    points = wrong.points[list(search.log_times)]
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    assert squares[np.triu_indices(10, 1)].min() > 0.3


@pytest.mark.parametrize("least", [0, 25])
def test_variants_are_measured_once_and_neither_those_that_failed_nor_those_that_cannot_run(
    least: int,
) -> None:
    candidates, times = made(1, 40)
    can_run = np.arange(40) >= least
    candidates = replace(candidates, log_time=np.where(can_run, candidates.log_time, np.inf))
    search, measured = Search(candidates), []
    while rows := search.next(2).tolist():
        measured += rows
        search.add({row: None if row % 5 == 0 else float(times[row]) for row in rows})
        assert np.isfinite(search.posterior()).all()
    assert sorted(measured) == list(range(least, 40)) != measured
    assert search.likely_better(0.0) == 0.0 and search.is_over(0.02)
    assert searched(candidates, times, 10)[-1] >= times[can_run].min()
    assert searched(candidates.take(np.arange(least)), times[:least], 10).tolist() == [np.inf]


@pytest.mark.parametrize("seed", range(4))
def test_a_search_beats_random_with_a_fifth_of_the_runs(seed: int) -> None:
    candidates, times = made(seed)
    least = searched(candidates, times, 10)
    assert least[0] == times[np.argmin(candidates.log_time)]
    assert (np.diff(least) <= 0).all()
    assert times.min() / least[-1] > expected_of_random(times, 50)


def test_the_posterior_passes_through_measured_times() -> None:
    candidates, times = made(2, 60)
    search = Search(candidates)
    search.add({row: float(times[row]) for row in range(20)})
    log_time, deviation = search.posterior()
    assert log_time[:20] == pytest.approx(np.log(times[:20]))
    assert deviation[:20].max() < deviation[20:].min() + 0.1
    assert search.likely_better(0.3) < search.likely_better(0.01)
    before = np.abs(candidates.log_time - np.log(times))[20:].mean()
    assert np.abs(log_time - np.log(times))[20:].mean() < 0.5 * before


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.integers(1, 7))
def test_random_search_is_the_mean_over_all_choices(times: list[float], runs: int) -> None:
    values = np.array(times)
    choices = itertools.combinations(times, min(runs, len(times)))
    expected = float(np.mean([values.min() / min(each) for each in choices]))
    assert expected_of_random(values, runs) == pytest.approx(expected)
