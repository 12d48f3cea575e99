"""Rankings of a small space by real profiles: shared profiles, variants that cannot run, and refusals."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.errors import InputError
from crosscast.evaluation.loop import State
from crosscast.report.tuning import ranking_report
from crosscast.tuning import Space
from crosscast.tuning.profiling import Profiler, VariantCounts, spread
from crosscast.tuning.ranking import Ranking, model_for, rank
from crosscast.tuning.space_files import read_space
from support.examples import one_in
from support.refusals import refusals

TOTAL = "total_instruction_count"
KERNEL = """
kernel void scale(global float *x, float by) {
#if GROUP == 16 && BROKEN == 1
    this does not compile
#endif
    local float part[GROUP * HELD];
    const int first = get_group_id(0) * GROUP * TILE + get_local_id(0);
#if BROKEN == 2 || (BROKEN == 3 && GROUP == 16)
    x[1 << 30] = by;
#endif
    for (int k = 0; k < TILE; ++k) {
        part[get_local_id(0)] = x[first + k * GROUP];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[first + k * GROUP] = part[GROUP - 1 - get_local_id(0)] * by;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
"""
SPACE = """
kernel = "scale"
[parameters]
GROUP = [16, 32, 64, 128]
TILE = [1, 2, 4, 8]
HELD = [1]
BROKEN = [0]
NAMED = [0, 1]
[launch]
global = "65536 // TILE"
local = "GROUP"
[[arg]]
type = "float"
length = 65536
[[arg]]
type = "float"
value = 2.0
"""


Ranked = tuple[Ranking, Profiler]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "scale.cl"
    path.write_text(KERNEL)
    return path


def space_of(source: Path, text: str) -> Space:
    path = source.with_name("space.toml")
    path.write_text(text)
    return read_space(path, source)


def ranked(source: Path, text: str = SPACE, profiles: int = 12, **how: object) -> Ranked:
    space = space_of(source, text)
    profiler = Profiler(space.rule, folder=source.parent / "cache")
    model, devices = model_for(None, ["rtx-a4000", "gtx1080"])
    return rank(space, devices, model, profiler=profiler, profiles=profiles, **how), profiler  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fully_profiled(tmp_path_factory: pytest.TempPathFactory) -> Ranked:
    """A ranking for which all variants were profiled."""
    path = tmp_path_factory.mktemp("ranking") / "scale.cl"
    path.write_text(KERNEL)
    return ranked(path, profiles=32)


def test_all_variants_are_ranked_and_some_profiled(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranking, profiler = ranked(source, profiles=16)
    assert (len(ranking), int(ranking.profiled.sum())) == (32, 16)
    assert np.isfinite(ranking.log_time).all()
    low, high = ranking.limits()
    assert (low < np.exp(ranking.log_time)).all() and (np.exp(ranking.log_time) < high).all()
    # Of those that are forecast alike, the ones that were profiled come first.
    alike = replace(ranking, log_time=0 * low, deviation=np.where(ranking.profiled, 0.1, 0.3)[:, None])
    assert ranking.profiled[alike.order()[:16]].all()
    columns = ranking.columns()
    assert list(columns["rank"])[:3] == [1, 2, 3] and len(columns["time_s"]) == 64
    assert not profiler.failed
    # Two profiles say little of the others, and not that they are alike.
    assert (ranked(source, profiles=2)[0].count_error > ranking.count_error).all()
    # Drawn variants are not called all valid ones.
    monkeypatch.setattr("crosscast.tuning.ranking.MOST_RANKED", 8)
    text = ranking_report(ranked(source, profiles=4)[0]).to_text()
    assert "8 variants are ranked, of which 4 were profiled." in text
    assert "There are more valid variants: these 8 were drawn of them at random." in text


def test_variants_that_compile_alike_share_a_profile(fully_profiled: Ranked) -> None:
    ranking, profiler = fully_profiled
    assert profiler.shared == 16
    one, other = (
        ranking.variants.labels.index(f"GROUP=32;TILE=4;HELD=1;BROKEN=0;NAMED={named}") for named in (0, 1)
    )
    assert ranking.log_time[one].tolist() == ranking.log_time[other].tolist()
    # NAMED changes nothing, and GROUP the most: variants that are forecast alike are near.
    points = ranking.candidates("gtx1080").coordinates
    group = points[ranking.variants.rows[:, 0] == 1][0] - points[0]
    assert 0 < np.abs(points[1] - points[0]).max() <= 0.5 < np.abs(group).max()


def test_intervals_of_profiled_variants_are_those_of_a_forecast(fully_profiled: Ranked) -> None:
    ranking, profiler = fully_profiled
    low, high = ranking.limits()
    profiles = profiler.profiles([ranking.variants[row] for row in (0, 31)])
    for row, profile in zip((0, 31), profiles.values(), strict=True):
        forecast = crosscast.predict(profile, devices=list(ranking.devices))
        np.testing.assert_allclose(high[row] / low[row], (forecast.high / forecast.low)[0], rtol=0.02)


def test_processes_give_what_threads_do(
    fully_profiled: Ranked, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosscast.tuning.profiling._SLOW_S", 0.0)
    text = SPACE.replace("NAMED = [0, 1]", "NAMED = [0]").replace("BROKEN = [0]", "BROKEN = [0, 1]")
    text = text.replace("[16, 32, 64, 128]", "[16, 128]").replace("[1, 2, 4, 8]", "[1, 8]")
    ranking, profiler = ranked(source, text, profiles=8)
    assert set(profiler.failed) == {f"GROUP=16;TILE={n};HELD=1;BROKEN=1;NAMED=0" for n in (1, 8)}
    by_threads, _ = fully_profiled
    rows = {label: row for row, label in enumerate(by_threads.variants.labels)}
    same = [row for row, label in enumerate(ranking.variants.labels) if label in rows]
    assert len(same) == 4
    expected = by_threads.log_time[[rows[ranking.variants.labels[row]] for row in same]]
    assert ranking.log_time[same].tolist() == expected.tolist()


def test_profiles_are_kept_for_the_next_time(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = ranked(source)
    monkeypatch.setattr("crosscast.tuning.profiling.characterize_launch", None)
    again, profiler = ranked(source)
    assert profiler.shared == 0
    assert again.log_time.tolist() == first.log_time.tolist()


def test_estimated_counts_are_those_of_a_run_where_the_space_is_regular(source: Path) -> None:
    text = SPACE.replace("NAMED = [0, 1]", "").replace("[16, 32, 64, 128]", "[16, 24, 32, 48, 64, 96, 128]")
    text = text.replace("65536 // TILE", "1536 * 32 // TILE")
    ranking, profiler = ranked(source, text, profiles=28)
    variants = ranking.variants
    profiles = profiler.profiles([variants[row] for row in range(len(variants))])
    ran = {row: profiles[label] for row, label in enumerate(variants.labels) if row % 5 != 1}
    counts = VariantCounts(variants, ranking.space.rule, ran)
    ratios = []
    for row in range(1, 28, 5):
        (estimated,) = counts.profiles([row])
        true = profiles[variants.labels[row]]
        assert estimated.metrics["work_items"] == true.metrics["work_items"]
        for name in ("groups", "group_items", "sub_groups_32", "sub_groups_64"):
            assert estimated.launch["geometry"][name] == true.launch["geometry"][name]
        ratios.append(estimated.metrics[TOTAL] / true.metrics[TOTAL])  # type: ignore[operator]
    assert np.median(np.abs(np.log(ratios))) < 0.1
    assert np.abs(np.log(ratios)).max() < 0.4


def test_counts_of_a_part_hold_for_loops_over_the_grid(tmp_path: Path) -> None:
    source = tmp_path / "sum.cl"
    source.write_text(
        "kernel void sum(global const float *x, global float *y) {"
        " float s = 0; for (int i = get_global_id(0); i < 1 << 18; i += get_global_size(0)) s += x[i];"
        " y[get_global_id(0)] = s; }"
    )
    text = "kernel = 'sum'\n[parameters]\nA = [1]\n[launch]\nglobal = 32768\nlocal = 64\n"
    rule = space_of(source, text + "[[arg]]\nlength = 262144\n[[arg]]\nlength = 32768\n").rule
    whole, part = (
        Profiler(rule, 1, most, folder=tmp_path / f"{most}")._profile({"A": 1}) for most in (1e9, 1e5)
    )
    assert part.launch["extended"]["groups"] == [512, 1]
    for name in ("path", "global_size", "instructions", "distinct_bytes"):
        assert part.launch[name] == whole.launch[name]


def test_points_that_cover_a_space_are_different_and_the_same_again() -> None:
    points = np.random.default_rng(0).normal(size=(200, 3))
    chosen = spread(points, 40, 0).tolist()
    assert len(set(chosen)) == 40 and chosen == spread(points, 40, 0).tolist()
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    assert distance[:, chosen].min(axis=1).max() < distance[:, :40].min(axis=1).max()


@pytest.mark.parametrize("how", one_in(2, ["1", "3"]))
def test_variants_that_cannot_run_are_left_out_with_a_note(source: Path, how: str) -> None:
    ranking, profiler = ranked(source, SPACE.replace("BROKEN = [0]", f"BROKEN = [{how}]"), profiles=32)
    assert len(profiler.failed) == 8
    assert all(label.startswith("GROUP=16;") for label in profiler.failed)
    assert not np.isfinite(ranking.log_time[ranking.variants.rows[:, 0] == 0]).any()
    assert any("8 variants could not be profiled, such as GROUP=16" in note for note in ranking.notes)
    assert "Counts of the others" not in str(ranking_report(ranking).parts)


@refusals("old new found")
def test_variants_without_sizes_are_left_out(source: Path, old: str, new: str, found: str) -> None:
    ranking, _ = ranked(source, SPACE.replace(old, new), profiles=4)
    assert len(ranking) == 24 and (ranking.variants.rows[:, 0] > 0).all()
    (note,) = ranking.notes
    assert re.match(f"Variants that cannot be launched: 8, such as GROUP=16;TILE=1.*{found}", note)


def test_forecasts_by_blocks_report_progress(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, float]] = []
    states: list[State] = []
    whole, _ = ranked(source)
    monkeypatch.setattr("crosscast.tuning.ranking._BLOCK", 20)
    again, _ = ranked(source, progress=states.append, begin=lambda *of: begun.append(of))
    np.testing.assert_allclose(again.log_time, whole.log_time, rtol=1e-12)
    # Each profile is kept, so that all progress is that of three rounds of forecasts.
    assert [(each.done, each.total) for each in states] == [(20, 32), (32, 32)] * 3
    assert [each.left_s / each.elapsed_s for each in states[1::2]] == pytest.approx([2, 1, 0])
    assert [count for count, _ in begun] == [32] and begun[0][1] > 0


def test_a_later_batch_may_fail_as_a_whole(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosscast.tuning.ranking._fastest", lambda *_: [0])
    ranking, profiler = ranked(source, SPACE.replace("BROKEN = [0]", "BROKEN = [1]"), profiles=4)
    assert ranking.variants.labels[0] in profiler.failed and len(ranking.order()) > 0


def test_variants_that_read_outside_a_buffer_are_noted(source: Path) -> None:
    source.write_text(KERNEL.replace("x[first + k * GROUP];", "x[first + k * GROUP + NAMED];"))
    ranking, _ = ranked(source, SPACE.replace("[1, 2, 4, 8]", "[1]"))
    (note,) = ranking.notes
    assert note.startswith("Variants that read outside a buffer: 4, such as GROUP=")
    assert "which reads up to 4 bytes behind the end of x, where a device may have anything" in note


def test_a_device_without_the_local_memory_is_not_offered_the_variant(source: Path) -> None:
    text = SPACE.replace("HELD = [1]", "HELD = [1, 64, 97]").replace("NAMED = [0, 1]", "")
    text = text.replace("TILE = [1, 2, 4, 8]", "TILE = [1]")
    space = space_of(source, text)
    model, (device,) = model_for(None, ["rtx-a4000"])
    small = replace(device, key="small", numbers={**device.numbers, "local_memory_bytes": 16384})
    roomy = replace(device, key="roomy", vendor="AMD", series="RDNA 2")
    profiler = Profiler(space.rule, folder=source.parent)
    ranking = rank(space, [device, small, roomy], model, profiler=profiler, profiles=12)
    chosen = [ranking.variants[row] for row in range(12)]
    needed = 4 * np.array([int(each["HELD"]) * int(each["GROUP"]) for each in chosen])
    # The GPU's unit has 100 KiB, of which NVIDIA's compilers give 48 KiB to a work-group.
    for column, most in enumerate((49152, 16384, 65536)):
        assert (np.isfinite(ranking.log_time[:, column]) == (needed <= most)).all()
    assert "more local memory than small gives to a work-group: 3." in " ".join(ranking.notes)


@refusals("old new sentence")
def test_spaces_that_cannot_be_ranked_are_refused(source: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ranked(source, SPACE.replace(old, new), profiles=4)


@refusals("how sentence")
def test_wrong_arguments_are_refused(source: Path, how: dict[str, object], sentence: str) -> None:
    space = space_of(source, SPACE).where
    with pytest.raises(InputError, match=sentence):
        crosscast.tune(source, space, cache=source.parent, **how)  # type: ignore[arg-type]


def test_a_space_that_was_read_is_ranked_with_the_source(source: Path) -> None:
    space = space_of(source, SPACE.replace("[1, 2, 4, 8]", "[1]").replace("[16, 32, 64, 128]", "[16]"))
    space = replace(space, launches=None)
    ranking = crosscast.tune(source, space, ["gtx1080"], profiles=2, cache=source.parent)
    assert len(ranking) == 2 and ranking.space.rule.program.path == source
