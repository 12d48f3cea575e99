"""CPU or GPU: protocols keep apart what they say, models see training rows only, scores are what they say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import cpu_or_gpu as study
from benchmarks.cpu_or_gpu import MODELS, SPLITS, MappingCases, cases_of

from crosscast.data.dataset import Dataset
from crosscast.data.sources import import_source
from support.tables import ADD, Row, mapped, write_rows

GROUPS = {
    "leave-kernel-out": "kernels",
    "leave-application-out": "applications",
    "leave-suite-out": "suites",
}


def mapped_dataset(folder: Path) -> Dataset:
    """Kernels of two suites, of which the GPU is faster where much is computed for each access."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for kernel in range(18):
        comp, mem = (int(each) for each in rng.integers(1, 200, 2))
        name = f"{'ab'[kernel // 3 % 2]}-1.0-p{kernel // 3}-k{kernel % 3}"
        for size in range(4):
            gain = np.log(comp / mem) + rng.normal(0, 0.1)
            times = {"runtime_cpu": 2.0**size, "runtime_gpu": 2.0**size * float(np.exp(-gain))}
            rows.append(mapped(name, "SWAB"[size], comp=comp, mem=mem, transfer=4096 * 4**size, **times))
    names = dict.fromkeys(str(row["benchmark"]) for row in rows)
    write_rows(folder / "cgo17_nvidia.csv", rows)
    write_rows(folder / "cgo17_sources.csv", [{"benchmark": name, "src": ADD} for name in names])
    return import_source("cgo17", folder)


every_split = pytest.mark.parametrize("split", SPLITS)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_TREES", 5)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> MappingCases:
    return cases_of(mapped_dataset(tmp_path_factory.mktemp("cgo17")))


@every_split
def test_every_row_is_held_out_once_with_its_group(split: str, cases: MappingCases) -> None:
    folds = SPLITS[split](cases)
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(len(cases)))
    labels = np.array(getattr(cases, GROUPS[split])) if split in GROUPS else np.arange(len(cases))
    for fold in folds:
        assert not set(labels[fold.train]) & set(labels[fold.test])
        assert len(fold.train) + len(fold.test) == len(cases)


@every_split
@pytest.mark.parametrize("name", MODELS)
def test_times_held_out_change_no_choice(name: str, split: str, cases: MappingCases) -> None:
    fold = SPLITS[split](cases)[0]
    swapped = cases.time_s.copy()
    swapped[fold.test] = swapped[fold.test][:, ::-1] * 7
    first, second = (
        MODELS[name](each, fold.train, fold.test, split) for each in (cases, replace(cases, time_s=swapped))
    )
    assert first.tolist() == second.tolist()


def test_scores_by_hand(cases: MappingCases) -> None:
    two = replace(cases, time_s=np.tile([[4.0, 1.0], [1.0, 2.0]], (len(cases) // 2, 1)))
    gpu = np.arange(len(two)) % 3 == 0
    ((scores, _),) = study.scored(two, {"one-device": gpu}).values()
    assert two.devices[study.single(two)] == "gtx970"
    own = np.where(gpu, two.time_s[:, 1], two.time_s[:, 0])
    assert scores.accuracy == np.mean(gpu == (two.time_s[:, 1] < two.time_s[:, 0]))
    assert scores.speedup == pytest.approx(np.exp(np.log(two.time_s[:, 1] / own).mean()))
    assert scores.regret == pytest.approx(np.exp(np.log(own / two.time_s.min(axis=1)).mean()))
    assert scores.mean_speedup == pytest.approx((two.time_s[:, 1] / own).mean())
    assert scores.worst_regret == 4.0
    assert study.right_by_majority(two, two.kernels) == 0.5
