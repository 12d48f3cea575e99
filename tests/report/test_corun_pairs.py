"""A plan of jobs on a terminal."""

import io
from dataclasses import replace
from pathlib import Path

from crosscast.decide.colocation import Plan, choose_pairs
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.report.corun_pairs import print_corun_pairs
from kept_corun import constant, made_jobs


def printed(plan: Plan, model: TrainedCoRunModel) -> str:
    stream = io.StringIO()
    jobs = sum(len(bag.jobs) for bag in plan.shared) + len(plan.alone)
    print_corun_pairs(plan, [f"job {place}" for place in range(jobs)], model.card, stream)
    return stream.getvalue()


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_pairs_are_shown_with_slowdowns_times_and_gains(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.25, error=0.1)
    plan = choose_pairs(made_jobs(2), model, lengths=[10.0, 10.0])
    lines = lines_of(printed(plan, model))
    gain = plan.shared[0].gain_s
    assert "jobs slowdown interval together one by one fit gain" in lines
    (first,) = [line for line in lines if line.startswith("job 0")]
    # 1.25 times and divided by exp(0.1).
    assert first.startswith("job 0 1.25× 1.13× to 1.38×") and "20 s 100 %" in first
    assert f"+ job 1 1.25× 1.13× to 1.38× {gain.low:.3g} s to {gain.high:.3g} s" in lines
    assert any(
        line.startswith("All 2 jobs: ") and "instead of 20 s one after another" in line for line in lines
    )
    assert "Each gain counts by the probability that the jobs fit on the device together." in lines
    assert not any("alone on" in line for line in lines)


def test_who_runs_alone_is_shown_with_the_reason(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.2)
    jobs = [replace(job, memory_bytes=9) for job in made_jobs(2)]
    lines = lines_of(printed(choose_pairs(jobs, model, lengths=[1.0, 2.0], memory_bytes=10), model))
    assert "alone on cpu" in lines
    assert "job 1 (2 s): with the only other job there is not the memory for both" in lines
    assert "All 2 jobs one after another: 3 s; nothing is gained by sharing." in lines


def test_a_gain_that_may_be_none_says_so(tmp_path: Path) -> None:
    model = constant(tmp_path / "m", 1.8, error=0.3)
    plan = choose_pairs(made_jobs(2), model, lengths=[1.0, 1.0])
    text = printed(plan, model)
    assert plan.gain_s.low < 0
    assert "The interval holds 0: it may be that nothing is gained." in lines_of(text)
    assert "−" in text
