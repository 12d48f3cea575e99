"""The published study as a whole: repeatable, kept, and an object."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.studies import johnston2018 as whole
from crosscast.studies.johnston2018 import PublishedStudy, omit, run
from crosscast.studies.johnston2018_forests import PAPER, QUICK, USUAL
from crosscast.tables.arrow import table_of
from crosscast.tables.energy import ENERGY
from published_data import SMALL, made_up


@pytest.fixture(scope="module")
def study() -> PublishedStudy:
    return run(made_up(), amount=SMALL)


def refuse(*arguments: Any, **named: Any) -> None:
    raise AssertionError("made although it was kept")


def test_it_has_all_parts(study: PublishedStudy) -> None:
    assert [row.kernel for row in study.omitted] == list(study.runs.kernel_names())
    assert [row.kernels for row in study.learning] == [1, 4, 5]
    assert study.honest is not None
    assert study.energy is not None
    trees, tried = study.median_parameters()
    assert trees in {row.trees for row in study.omitted}
    assert tried in {row.tried for row in study.omitted}


def test_its_object_is_json(study: PublishedStudy) -> None:
    found = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert found["headline"]["forest"]["r2"] == study.headline.forest.r2
    assert len(found["omitted"]["rows"]) == 5
    assert found["amount"] == asdict(SMALL)
    assert found["learning"][-1]["mae_corrected"] is None


def test_processes_change_nothing(study: PublishedStudy) -> None:
    assert run(made_up(), amount=SMALL, jobs=2).to_dict() == study.to_dict()


def test_finished_parts_are_kept(
    tmp_path: Path, study: PublishedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(made_up(), amount=SMALL, cache=tmp_path)
    for name in ("headline", "tune", "honest", "energy", "omit", "learn"):
        monkeypatch.setattr(whole, name, refuse)
    again = run(made_up(), amount=SMALL, cache=tmp_path)
    assert again.to_dict() == first.to_dict() == study.to_dict()
    with pytest.raises(AssertionError, match="although it was kept"):
        run(made_up(), amount=SMALL, cache=tmp_path, seed=1)


def test_data_that_changed_is_not_taken_from_what_was_kept(tmp_path: Path) -> None:
    run(made_up(), amount=SMALL, cache=tmp_path)
    count = len(list(tmp_path.iterdir()))
    run(made_up(noise=0.06), amount=SMALL, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 * count


def test_energy_that_changed_is_not_taken_from_what_was_kept(tmp_path: Path) -> None:
    data = made_up()
    first = run(data, amount=SMALL, cache=tmp_path)
    rows = data.energy.to_pylist()
    doubled = [{**row, "energy_j": 2 * row["energy_j"] ** 1.5} for row in rows]
    again = run(replace(data, energy=table_of(ENERGY, doubled)), amount=SMALL, cache=tmp_path)
    assert first.energy is not None
    assert again.energy is not None
    assert again.energy.held_out_rmse_log != first.energy.held_out_rmse_log
    assert again.headline == first.headline


def test_a_damaged_part_is_made_again(tmp_path: Path, study: PublishedStudy) -> None:
    run(made_up(), amount=SMALL, cache=tmp_path)
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        path.write_text(["", "{", "[]", '{"kernel": 1}'][number % 4])
    assert run(made_up(), amount=SMALL, cache=tmp_path).to_dict() == study.to_dict()


def test_what_was_finished_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(runs: Any, kernel: str, *others: Any) -> Any:
        if kernel == "kmeansPoint":
            raise KeyboardInterrupt
        return omit(runs, kernel, *others)

    monkeypatch.setattr(whole, "omit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(made_up(), amount=SMALL, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) >= 4


def test_progress_is_told() -> None:
    states: list[State] = []
    run(made_up(), amount=SMALL, progress=states.append)
    assert [state.done for state in states] == list(range(1, states[0].total + 1))
    assert {"headline", "without crc32", "trained on 5 kernels"} <= {state.label for state in states}


def test_a_cache_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        run(made_up(), amount=SMALL, cache=file / "folder")


def test_less_than_one_process_is_refused() -> None:
    with pytest.raises(InputError, match="jobs: expected at least 1"):
        run(made_up(), amount=SMALL, jobs=0)


def test_a_seed_below_zero_is_refused_before_the_work() -> None:
    with pytest.raises(InputError, match="seed: expected a number from 0"):
        run(made_up(), amount=SMALL, seed=-1)


def test_amounts_grow() -> None:
    for less, more in ((QUICK, USUAL), (USUAL, PAPER)):
        pairs = zip(asdict(less).values(), asdict(more).values(), strict=True)
        assert all(small <= large for small, large in pairs)
    assert (PAPER.samples, PAPER.forest_trees) == (500, 505)
