"""The tables of an evaluation of choices say what its results say."""

import io

import pytest

from chosen_study import chosen_study
from crosscast.decide.evaluation import ALONE, TOGETHER
from crosscast.decide.scores import ChoiceResult
from crosscast.report.choice_tables import share
from crosscast.report.choices import print_choices


def page(*, both: bool = False, programs: bool = False) -> str:
    study, stages = chosen_study(both=both)
    stream = io.StringIO()
    print_choices(study, stages, stream, programs=programs)
    return stream.getvalue()


@pytest.fixture(scope="module")
def text() -> str:
    return page()


def of(method: str, protocol: str = ALONE) -> ChoiceResult:
    (machine,) = chosen_study()[0].machines
    return next(each for each in machine.results if (each.method, each.protocol) == (method, protocol))


def row(text: str, heading: str, method: str) -> list[str]:
    """Cells of a method in the table below a heading."""
    table = text.split(f"\n{heading}", 1)[1].split("\n\n", 1)[0]
    line = next(each for each in table.splitlines()[2:] if each.split()[0] == method)
    return line.split()[1:]


def test_the_first_line_says_on_what(text: str) -> None:
    (machine,) = chosen_study()[0].machines
    assert text.splitlines()[0] == (
        f"made up, node: {len(machine.cases)} cases of 12 kernels at a size (6 programs) over "
        "12 configurations; kernels weighted by their time; seed 0"
    )
    assert text.splitlines()[1] == (
        "Sample configurations: node: cpu cap 100 W, gpu cap 250 W; node: cpu cap 60 W, gpu cap 100 W."
    )


@pytest.mark.parametrize("method", ["own", "fixed", "gpu+fl", "limiter", "published+fl", "oracle"])
def test_the_main_table_has_the_metrics(text: str, method: str) -> None:
    metrics = of(method).metrics
    assert [cell.rstrip("*") for cell in row(text, "each program left out", method)] == [
        share(metrics.under_limit_share),
        share(metrics.under_performance),
        share(metrics.under_power),
        share(metrics.over_power),
        share(metrics.over_performance),
        share(metrics.score),
        f"{metrics.extra_runs:.1f}",
    ]


def test_near_duplicates_have_a_table_of_their_own(text: str) -> None:
    alone, together = of("own").metrics, of("own", TOGETHER).metrics
    assert row(text, "near-duplicates left out together", "own")[0].rstrip("*") == share(
        together.under_limit_share
    )
    assert alone != together
    assert "\nTogether: cfd + cfd_double.\n" in text


def test_intervals_and_the_curve_are_those_of_the_result(text: str) -> None:
    limiter = of("limiter")
    interval = limiter.sure.intervals["score"]
    cells = row(text, "95 % of draws", "limiter")
    assert cells[-3:] == [share(interval.low), "to", share(interval.high)]
    assert row(text, "S by the extra runs", "limiter") == [
        share(each.score) for each in limiter.curve.metrics
    ]


def test_tolerance_and_repeats_are_those_of_the_result(text: str) -> None:
    found = of("limiter")
    assert found.on_repeats is not None
    told = found.on_repeats.told_less
    assert row(text, "with 1 % tolerance", "limiter") == [
        share(each)
        for each in (
            found.metrics.under_limit_share_within_1pct,
            found.metrics.under_performance_within_1pct,
            *found.on_repeats.strict,
            *found.on_repeats.tolerated,
            told.under_limit_share,
            told.under_performance,
            told.score,
        )
    ]
    (machine,) = chosen_study()[0].machines
    assert machine.split_half is not None
    assert row(text, "with 1 % tolerance", "split-half")[1:] == [
        share(machine.split_half.under_limit_share),
        share(machine.split_half.under_performance),
        share(machine.split_half.under_limit_share_within_1pct),
        share(machine.split_half.under_performance_within_1pct),
    ]
    assert "which are simulated" in text


def test_a_promise_is_told_with_the_programs_above_it(text: str) -> None:
    found = of("hopeful")
    assert found.above
    cells = row(text, "what was promised", "hopeful")
    assert cells[:4] == ["90", "%", "10.0", share(found.metrics.violations)]
    assert cells[5:] == [str(len(found.above)), "of", "6"]
    assert f"\nAbove it with hopeful: {', '.join(found.above)}.\n" in text


def test_the_tails_are_those_of_the_worst_programs(text: str) -> None:
    found = of("published")
    assert found.regret is not None
    least = min(each.score for each in found.programs.values() if each.score is not None)
    cells = row(text, "performance lost", "published")
    assert cells[:3] == [
        share(each) for each in (found.regret.median, found.regret.percentile_90, found.regret.percentile_95)
    ]
    assert cells[-1] == share(least)


def test_methods_come_before_baselines_and_the_oracle_last(text: str) -> None:
    table = text.split("each program left out", 1)[1].split("\n\n", 1)[0]
    names = [line.split()[0] for line in table.splitlines()[2:]]
    assert names == [
        "own",
        "hopeful",
        "baselines",
        "fixed",
        "cpu+fl",
        "gpu+fl",
        "limiter",
        "published",
        "published+fl",
        "oracle",
    ]


def test_what_is_better_than_the_best_baseline_is_marked(text: str) -> None:
    for result in chosen_study()[0].machines[0].results:
        if result.protocol == ALONE and result.method != "oracle":
            difference = result.sure.differences.get("score")
            marked = row(text, "each program left out", result.method)[-2].endswith("*")
            assert marked == (difference is not None and difference.better)
    own = of("own").sure.differences["score"]
    assert f"{100 * own.value:+.1f} [" in " ".join(row(text, "difference from the best baseline", "own"))


def test_clusters_and_the_tree_are_told(text: str) -> None:
    _, (stage,) = chosen_study()
    assert f"The published model on all programs: {stage.predictor.clusters.note}." in text
    for line in stage.predictor.tree.text().splitlines():
        assert f"\n  {line}\n" in text


def test_the_main_table_follows_the_header_and_the_tree_comes_later(text: str) -> None:
    header, main, *later = text.split("\n\n")
    assert header.splitlines()[-1].startswith("The published model on all programs: ")
    assert main.startswith("each program left out")
    assert any(each.startswith("tree of the published model on all programs\n  ") for each in later)


def longest() -> int:
    (machine,) = chosen_study()[0].machines
    return max(int((machine.cases.kernel == row).sum()) for row in range(12))


def test_the_longest_frontier_is_one_line(text: str) -> None:
    (line,) = [each for each in text.splitlines() if "longest frontier" in each]
    assert line.startswith("The longest frontier, of ")
    assert line.endswith(f", has {longest()} configurations: --programs or --figures shows it.")


def test_the_configurations_on_the_longest_frontier_are_listed_with_the_programs() -> None:
    text = page(programs=True)
    table = text.split("\nconfigurations on the longest frontier, of ", 1)[1].split("\n\n", 1)[0]
    assert len(table.splitlines()) == 2 + longest()
    assert table.splitlines()[1].split("  ")[0] == "device"
    assert table.splitlines()[-1].endswith("1.00")


def test_lines_of_tables_are_at_most_as_wide_as_a_page(text: str) -> None:
    tables = [line for line in text.splitlines() if "  " in line.strip()]
    assert len(tables) > 60
    assert max(len(line.rstrip()) for line in tables) <= 110


def test_programs_have_tables_where_they_are_asked_for(text: str) -> None:
    assert "\nby program\n" not in text
    longer = page(programs=True)
    assert longer.count("\nby program\n") == 9
    table = longer.split("\nby program\nown ", 1)[1].split("\n\n", 1)[0]
    for name, metrics in of("own").programs.items():
        line = next(each for each in table.splitlines() if each.split()[0] == name)
        assert line.split()[1] == share(metrics.under_limit_share)


def test_each_machine_has_its_tables_and_says_where_there_is_nothing_to_cluster() -> None:
    text = page(both=True)
    first, second = text.split("\nmade up, lonely: ")
    assert "nothing to cluster" not in first
    assert "The published model on all programs: nothing to cluster: Kendall's tau is 1" in second
    assert "cluster 0" not in second
    assert "clock+fl" in second.split("each program left out", 1)[1]
