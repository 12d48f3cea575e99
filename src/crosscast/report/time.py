"""Reports on training and evaluation of models of times of kernels and of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from crosscast.data.fields import decode
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence
from crosscast.evaluation.time.launch_times import LaunchEvaluation
from crosscast.evaluation.time.results import Result, TimeEvaluation
from crosscast.evaluation.time.scores import HIGHER_IS_BETTER, Scores
from crosscast.prediction.time.card import TimeCard
from crosscast.prediction.time.models import BASELINES
from crosscast.prediction.trained import level_of, results_of
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import Score, score_table, scores_of
from crosscast.report.numbers import MARK, factor, level_percent, named
from crosscast.report.prediction import TimeScores, trained_on
from crosscast.units import format_count

_TABLES = {
    "errors": scores_of("rmse_log± rmse_log_by_application median_ape± median_ape_by_application± mape"),
    "choice of a device": scores_of("slowdown_mean± slowdown_geomean top1 within_10 kendall_tau"),
    "intervals": scores_of("coverage± coverage_over_cells coverage_worst_application width interval_score"),
}
_TOTALS = scores_of(
    "median_ape± median_ape_by_application rmse_log slowdown_mean coverage coverage_worst_application width"
)
_OF_APPLICATION = scores_of("rmse_log median_ape mape slowdown_mean top1 kendall_tau coverage width")
_FLOOR = "noise floor (a run itself)"
_OF_TRAINING = scores_of(
    "rmse_log median_ape median_ape_by_application slowdown_mean coverage coverage_worst_application"
)
_OF_LAUNCHES = scores_of(
    "bias median_ape rmse_log coverage_over_cells coverage_worst_application width slowdown_mean"
)


def evaluation_report(study: TimeEvaluation | LaunchEvaluation) -> Report:
    """Make the tables of an evaluation, and the legend."""
    if isinstance(study, LaunchEvaluation):
        return _of_launches(study)
    parts: list[Part] = [Heading(_subject(study), 1)]
    for probes in dict.fromkeys(result.probes for result in study.results):
        parts.append(Heading(_known_times(study, probes), 3))
        for title, scores in _TABLES.items():
            parts += ["", _scores_table(study, _with_probes(study, probes), probes, title, scores)]
        totals = _with_probes(study, probes, of_applications=True)
        if any(result.scores.median_ape is not None for result, _ in totals):
            parts += ["", _scores_table(study, totals, None, "whole applications", _TOTALS)]
        best = study.best(probes)
        if best is not None:
            parts.append(_by_application(best))
    return Report([*parts, "", *_legend(study)])


def _subject(study: TimeEvaluation) -> str:
    counts = study.counts
    return (
        f"{study.label}: {format_count(counts['cells'])} measurement points of "
        f"{counts['kernels_at_a_size']} kernels at a size ({counts['kernels']} kernels, "
        f"{counts['applications']} applications) on {counts['devices']} devices; {study.folds}; "
        f"seed {study.seed}"
    )


def _known_times(study: TimeEvaluation, probes: int) -> str:
    devices = study.counts["devices"]
    if study.folds == "leave-device-out":
        return f"Each device unseen, with each kernel's times on the {probes} other devices known"
    if probes == 0:
        return "No time of a held-out kernel known"
    sets = next(len(result.outcomes) for result in study.results if result.probes == probes)
    measured = f"{probes} device{'' if probes == 1 else 's'} of {devices}"
    return f"Each held-out kernel measured on {measured}, the others predicted: mean over {sets} choices"


def _with_probes(
    study: TimeEvaluation, probes: int, *, of_applications: bool = False
) -> list[tuple[Result, Confidence]]:
    pairs = zip(study.results, study.confidences, strict=True)
    if of_applications:
        pairs = zip(study.totals, study.total_confidences, strict=True)
    return [(result, confidence) for result, confidence in pairs if result.probes == probes]


def _scores_table(
    study: TimeEvaluation,
    rows: list[tuple[Result, Confidence]],
    probes: int | None,
    title: str,
    scores: Sequence[Score],
) -> Table:
    """Make a table of scores by model; with `probes`, also of references without a model."""
    # Models first, then baselines; those without a score last.
    rows.sort(
        key=lambda row: (
            row[0].model in BASELINES,
            row[0].scores.rmse_log is None,
            row[0].scores.rmse_log or 0.0,
        )
    )
    best = {score.name: _best(rows, score.name) for score in scores}
    lines = [
        [
            named(result.model, result.model in BASELINES),
            *(
                score.text(result.scores, confidence, marked=best[score.name] == result.model)
                for score in scores
            ),
        ]
        for result, confidence in rows
    ]
    lines += [
        [name, *(score.text(values) for score in scores)]
        for name, values in ([] if probes is None else _references(study, probes))
        if any(getattr(values, score.name) is not None for score in scores)
    ]
    return Table([title, *(score.heading for score in scores)], lines)


def _references(study: TimeEvaluation, probes: int) -> list[tuple[str, Scores]]:
    """Scores without a model: always one device, where no time is known, and one run of each cell."""
    rows = [(_FLOOR, study.noise.scores)]
    if study.always is not None and study.folds != "leave-device-out" and probes == 0:
        device, result = study.always
        rows.insert(0, (f"always {device}", result.scores))
    return rows


def _best(rows: Sequence[tuple[Result, Confidence]], score: str) -> str | None:
    """Find the best model in a score, if it is significantly better than the best baseline."""
    sign = 1 if score in HIGHER_IS_BETTER else -1
    candidates = [
        (sign * difference.value, result.model, difference.better)
        for result, confidence in rows
        if (difference := confidence.differences.get(score)) is not None
    ]
    # All differences of a score are to the same baseline.
    _, model, better = max(candidates, default=(0.0, None, False))
    return model if better else None


def _by_application(result: Result) -> Table:
    outcome = result.outcomes[0]
    kernels = set(zip(outcome.application, outcome.rows.tolist(), strict=True))
    rows = [
        [
            name,
            sum(application == name for application, _ in kernels),
            *(score.text(scores) for score in _OF_APPLICATION),
            result.without[name].slowdown_mean,
        ]
        for name, scores in result.applications.items()
    ]
    return Table(
        ["application", "kernels", *(score.heading for score in _OF_APPLICATION), "without it"],
        rows,
        f"{result.model}, by application",
        {"kernels": format_count, "without it": factor},
    )


def _legend(study: TimeEvaluation) -> list[str]:
    return [
        "Models are fitted, tuned and selected without the held-out data. APE: abs(predicted / measured - 1) "
        "of a time; by application: mean over applications.",
        "Slowdown: measured time on the device that is chosen over that on the fastest. Intervals are to "
        f"hold {level_percent(study.level)} of the times; width: upper over lower limit, median.",
        "Whole applications: time of all kernels at a size, as often as they are launched.",
        "Kernels are counted at each size; without it: mean slowdown over the other applications.",
        f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of the applications. "
        f"{MARK} the best model, where the bootstrap of its difference from the best baseline excludes 0.",
        "Noise floor: one run of each measurement point as the prediction of its median. Always one device: "
        "the one that is best in hindsight. Exact definitions: docs/evaluation.md.",
    ]


def training_report(card: TimeCard, folder: Path) -> Report:
    """Describe a model's training data and its errors."""
    results = [(decode(TimeScores, result, "errors.results"), result) for result in results_of(card)]
    results.sort(key=lambda pair: pair[0].probes)
    rows: list[tuple[list[str], object, None]] = [
        ([str(scores.probes), named(scores.model, scores.model != card.model)], raw, None)
        for scores, raw in results
    ]
    floor = card.errors.get("noise_floor")
    if floor is not None:
        rows.append((["", _FLOOR], floor, None))
    bold = [number for number, (scores, _) in enumerate(results) if scores.model == card.model]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            "",
            score_table(["probes", "model"], rows, _OF_TRAINING, words=(0, 1), bold=bold),
            "Each application was left out in turn, and predicted by the model fitted to the others. 0, 1, "
            "2: devices on which its kernels were measured before.",
            "RMSE: of the logarithm of the time. APE: median error of a time, over all points and as a mean "
            "over applications.",
            "Slowdown: time on the device taken over that on the fastest, mean over kernels. Coverage: share "
            f"of an application's times within {level_percent(level_of(card))} intervals, "
            "mean over applications, and the worst's.",
            "With intervals and by application: card.json. Exact definitions: docs/evaluation.md.",
        ]
    )


def _of_launches(study: LaunchEvaluation) -> Report:
    """Make a table by source, one by held-out group, and the legend."""
    counts = study.counts
    parts: list[Part] = [
        Heading(
            f"{study.label}: {counts['cells']:,} times of {counts['applications']} applications on "
            f"{counts['devices']} devices from {counts['sources']} sources; {study.folds}",
            1,
        ),
        _table("source", study.results()),
    ]
    if study.folds != "leave-source-out":
        by = "device" if study.folds == "leave-device-out" else "application"
        parts += ["", _table(by, study.groups(by))]
    parts += [
        "",
        "Bias: geometric mean of predicted over measured times. APE: median error of a time. RMSE: of the "
        "logarithm of the time.",
        f"Coverage: share of the times within {level_percent(study.level)} intervals, and in the application "
        "that has least. Width: upper over lower limit, median.",
        "Slowdown: time on the device forecast to be fastest over that on the fastest, mean over launches "
        "timed on at least five.",
    ]
    if study.shared_kernels:
        parts.append(
            f"{len(study.shared_kernels)} kernels were timed by several sources: with one source held out, "
            "the others' times of the same kernel are known."
        )
    return Report(parts)


def _table(by: str, rows: Sequence[Mapping[str, object]]) -> Table:
    return score_table(
        [by, "times"], [([_name(by, row), row["cells"]], row, None) for row in rows], _OF_LAUNCHES
    )


def _name(by: str, row: Mapping[str, object]) -> str:
    name = row[by] or "all"
    return f"{name}, {row['kind']}" if row.get("kind") else str(name)
