"""`crosscast.tune`: variants measured here, a device that fails half-way, and scores of searches."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crosscast.characterization.launchfiles import read_launches
from crosscast.commands.tune import write_results
from crosscast.data.configuration import Configuration
from crosscast.data.sources.kernel_times import dataset_on_catalogue
from crosscast.data.sources.runs import ConfiguredRun
from crosscast.errors import DeviceFault, InputError
from crosscast.report.document import Table
from crosscast.report.tuning import ranking_report
from crosscast.tuning import tune as measuring
from crosscast.tuning import variants_of
from crosscast.tuning.evaluation import BUDGETS, evaluate_tuning, measured_of, simulated
from crosscast.tuning.profiling import Profiler
from crosscast.tuning.ranking import Ranking, model_for, rank
from crosscast.tuning.space_files import read_space
from crosscast.tuning.tune import Journal, here, measured_search, variant_file
from support.commands import Command, Output
from support.examples import one_in
from support.refusals import refusal, refusals
from support.schemas import assert_valid

ROOT = Path(__file__).parents[2]
KERNEL, SPACE = (ROOT / "examples" / "tuning" / name for name in ("matmul.cl", "matmul-space.toml"))


DEVICES = ("rtx-a4000", "gtx1080")
tune = Command.of("tune")


class Faulty:
    """A device that fails in some runs, by their numbers, and is ever faster in the others."""

    def __init__(self, fails: Callable[[int], object], fault: type[Exception] = DeviceFault) -> None:
        self.run, self.fails, self.fault = -1, fails, fault

    def __call__(self, *_: Any) -> list[float]:
        self.run += 1
        if self.fails(self.run):
            raise self.fault("it is lost")
        return [1e-3 * (100 - self.run)]


SOUND = Faulty(lambda run: False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's kernel and a part of its space, of which all variants are soon profiled."""
    path = tmp_path_factory.mktemp("tune")
    (path / "matmul.cl").write_bytes(KERNEL.read_bytes())
    text = SPACE.read_text().replace("512", "64")
    text = text.replace("[2, 4, 8, 16]", "[4, 8]").replace("[1, 2, 4, 8]", "[1, 2]")
    (path / "matmul.toml").write_text(f'source = "matmul.cl"\n{text}')
    return path


@pytest.fixture
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture(scope="module")
def ranking(folder: Path) -> Ranking:
    space = read_space(folder / "matmul.toml")
    model, devices = model_for(None, [here(None)[1]])
    return rank(space, devices, model, profiler=Profiler(space.rule, folder=folder))


def test_a_variant_as_a_launch_file_is_the_same_launch(ranking: Ranking, tmp_path: Path) -> None:
    path = tmp_path / "variant.toml"
    path.write_text(variant_file(ranking.space.rule, ranking.variants[3]))
    (read,) = read_launches(path)
    launch = ranking.space.rule.launch(ranking.variants[3])
    assert (read.global_size, read.local_size) == (launch.global_size, launch.local_size)
    assert read.kernel == launch.kernel
    for one, other in zip(read.args, launch.args, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


def test_measurements_condition_forecasts_and_are_in_the_journal(ranking: Ranking, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "times.jsonl")
    result = measured_search(ranking, here(None)[0], 2, journal, within=0.0)
    with (tmp_path / "times.jsonl").open("a") as file:
        # Lines that lack something count as little as a truncated one.
        file.write('{"times_s": [1]}\n{"variant": "A=3"}\n3\n{"variant": "A=4", "times_s": []}\n')
        file.write('{"variant": "A=2", "ti')
    assert len(result.measured) == 2 and all(seconds > 0 for seconds in result.measured.values())
    assert set(journal.read()) == {ranking.variants.labels[row] for row in result.measured}
    for row, seconds in result.measured.items():
        assert np.exp(result.log_time[row, 0]) == pytest.approx(seconds)
    columns: Any = result.columns()
    (table,) = (part for part in ranking_report(result).parts if isinstance(part, Table))
    shown = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    # The table has the order of the rows in JSON, and no forecast of what is known.
    for number, each in enumerate(shown):
        assert all(columns[name][number] == each[name] for name in ("GROUP", "WORK", "STAGE"))
        assert (each["forecast"] is None) == (each["measured"] is not None) == (each["high"] is None)
        assert str(each["saves most of"]).partition(" ")[0] == str(columns["saves_most_of"][number])
    write_results(result, tmp_path / "out")
    results = json.loads((tmp_path / "out" / "t4.json").read_text())["results"]
    assert [[each["name"] for each in one["measurements"]] for one in results] == [["time"]] * 2


def test_a_search_knows_what_cannot_run(
    ranking: Ranking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_times", SOUND)
    log_time = np.where(np.arange(len(ranking)) < len(ranking) // 2 + 1, np.inf, ranking.log_time[:, 0])
    few = replace(ranking, log_time=log_time[:, None])
    result = measured_search(few, here(None)[0], len(ranking), Journal(tmp_path / "times.jsonl"))
    assert np.isfinite(result.log_time[:, 0]).tolist() == np.isfinite(log_time).tolist()


def test_a_search_that_fails_half_way_goes_on(
    ranking: Ranking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, journal = here(None)[0], Journal(tmp_path / "times.jsonl")
    monkeypatch.setattr(measuring, "_times", Faulty(lambda run: run >= 4))
    with pytest.raises(DeviceFault, match=r"failed 3 times one after another.*4 variants were measured"):
        measured_search(ranking, device, 12, journal, within=0.0)
    results = journal.read()
    assert len(results) == 4 and not any(isinstance(each, str) for each in results.values())
    monkeypatch.setattr(measuring, "_times", SOUND)
    result = measured_search(ranking, device, 12, journal, within=0.0)
    assert 5 <= len(result.measured) <= 12 and not result.not_run
    assert set(results) <= {ranking.variants.labels[row] for row in result.measured}
    ended = measured_search(ranking, device, 12, journal, within=0.99)
    assert ended.notes == ("Measuring ended, as no other variant is likely to be 99 % faster.",)
    monkeypatch.setattr(measuring, "_times", Faulty(lambda run: True, InputError))
    with pytest.raises(InputError, match="expected a variant that runs, found it is lost"):
        measured_search(ranking, device, 3, Journal(tmp_path / "none.jsonl"))


def test_failures_between_runs_are_those_of_variants(
    ranking: Ranking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_times", Faulty(lambda run: run % 2))
    journal = Journal(tmp_path / "times.jsonl")
    result = measured_search(ranking, here(None)[0], 6, journal, within=0.0)
    assert (len(result.measured), len(result.not_run)) == (3, 3)
    # The last one may be the device's, of which no run is known since.
    assert [isinstance(each, str) for each in journal.read().values()] == [False, False, True, False, True]


@pytest.mark.parametrize(
    "strategy", one_in(3, ["genetic_algorithm", "simulated_annealing", "basinhopping", "random_sample"])
)
def test_a_variant_that_a_strategy_chooses_again_is_no_run(ranking: Ranking, strategy: str) -> None:
    pytest.importorskip("kernel_tuner")
    times = np.linspace(2.0, 1.0, len(ranking))
    for runs in (3, 8, len(ranking)):
        least = simulated(ranking.variants, times, strategy, runs, 0)
        assert len(least) <= runs and (np.diff(least) <= 0).all()
        assert least.tolist() == simulated(ranking.variants, times, strategy, runs, 0).tolist()
        # After so many different variants, the best is at least as good as the one of that rank.
        worst_first = np.sort(times)[::-1][: len(least)]
        assert (least <= worst_first * (1 + 1e-9)).all()


def test_crosscast_is_a_strategy_of_kernel_tuner(ranking: Ranking) -> None:
    pytest.importorskip("kernel_tuner")
    times = np.exp(ranking.log_time[:, 0] + 0.2 * np.sin(np.arange(len(ranking))))
    least = simulated(ranking.variants, times, ranking.strategy(), 8, 0)
    assert least[0] == pytest.approx(times[int(ranking.order()[0])])
    assert least[-1] <= np.sort(times)[3]
    fewer = SimpleNamespace(param_names=["GROUP"], list=[(4,)])
    message = "tune_params: expected values of the space's parameters, found none for "
    assert refusal(ranking.strategy().tune, fewer, None, {}).startswith(message)


def runs(folder: Path) -> list[ConfiguredRun]:
    variants = read_space(folder / "matmul.toml").variants()
    rng = np.random.default_rng(0)
    return [
        ConfiguredRun("product", "matmul", label, Configuration(device, {}), float(seconds), (), 5)
        for device in DEVICES
        for label, seconds in zip(variants.labels, rng.uniform(1e-3, 3e-3, len(variants)), strict=True)
    ]


def test_searches_end_at_the_optimum_of_a_space(cache: None, folder: Path, tmp_path: Path) -> None:
    dataset = dataset_on_catalogue("made", runs(folder), {})
    evaluation = evaluate_tuning(dataset, [read_space(folder / "matmul.toml")])
    assert {each.device for each in evaluation.scores} == set(DEVICES)
    assert not evaluation.held_out and evaluation.profiled == {"matmul": 8}
    for each in evaluation.scores:
        assert all(0 < f <= 1 for f in each.fraction if not np.isnan(f)) and each.variants == 8
        if each.method == "crosscast":
            assert list(each.fraction[1:]) == sorted(each.fraction[1:])
            assert each.fraction[BUDGETS.index(20)] == 1
    answer = evaluation.to_dict()
    assert answer["budgets"] == list(BUDGETS)
    assert_valid(answer)
    # Spaces of other kernels and no variants are refused.
    (tmp_path / "other.toml").write_text('kernel = "other"\n[parameters]\nA = [1]\n')
    other = read_space(tmp_path / "other.toml")
    message = "expected the name of one kernel of the dataset (matmul)"
    assert message in refusal(evaluate_tuning, dataset, [other])
    assert variants_of(["A=1;B", "A=2;B"]).labels == ("A=1;B=", "A=2;B=")
    twice = [replace(each, application="other") for each in runs(folder)]
    both = measured_of(dataset_on_catalogue("made", [*runs(folder), *twice], {}))
    assert [*both] == ["product-matmul", "other-matmul"]
    plain = [ConfiguredRun("a", "k", "small", Configuration("gtx1080", {}), 1.0, (), 1)]
    assert "expected times of variants" in refusal(measured_of, dataset_on_catalogue("made", plain, {}))


def test_the_command_writes_the_best(
    cache: None, folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (folder / "matmul.cl", "--space", folder / "matmul.toml", "--devices", "rtx-a4000")
    text = tune.text(capsys, *words)
    assert "8 variants are valid, of which 8 were profiled." in text
    assert "The best on rtx-a4000" in text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = tune.answer(capsys, *words, "--out", folder / "out")
    assert [each["rank"] for each in answer["ranking"]] == list(range(1, 9))
    assert {each.name for each in (folder / "out").iterdir()} == {"ranking.json", "t1.json", "t4.json"}
    (folder / "normal.toml").write_text((folder / "matmul.toml").read_text().replace("uniform", "normal"))
    tune.answer(capsys, words[0], "--space", folder / "normal.toml", *words[3:], "--out", folder / "normal")
    assert {each.name for each in (folder / "normal").iterdir()} == {"ranking.json", "t4.json"}


@refusals("words sentence")
def test_wrong_options_are_one_sentence(
    folder: Path, capsys: Output, words: list[str], sentence: str
) -> None:
    given = (folder / "matmul.cl", "--space", folder / "matmul.toml", *words)
    assert sentence in tune.refusal(capsys, *given)
