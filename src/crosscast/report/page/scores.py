"""The scores in short and in full, and how to read them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

from crosscast.evaluation.resampling import SHARE, Interval
from crosscast.report.evaluation import print_evaluation
from crosscast.report.numbers import NONE, factor, percent, plural
from crosscast.report.page.markup import Markup, element, joined, paragraph, table
from crosscast.report.page.subject import Subject

__all__ = ["headline", "in_full", "in_short"]

_FEW = 20
"""Applications below which the page says that they are few."""

_Write = Callable[[float | None], str]


def _decimal(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


_ROWS: tuple[tuple[str, str, _Write], ...] = (
    ("median error of a time", "median_ape", percent),
    ("the same, mean over applications", "median_ape_by_application", percent),
    ("root mean square error of ln(time)", "rmse_log", _decimal),
    ("slowdown of the recommended device, mean", "slowdown_mean", factor),
    ("recommended device is the fastest", "top1", percent),
    ("times within their interval", "coverage", percent),
)


def in_short(subject: Subject) -> Markup:
    """The headline scores beside the best baseline and the noise floor."""
    counts, result = subject.study.counts, subject.result
    return joined(
        [
            paragraph(
                f"Each of {plural(counts['applications'], 'application')} was left out in turn, and its "
                f"times on {plural(counts['devices'], 'device')} were predicted from its kernels' profiles "
                f"by the model {result.model}, fitted to the others alone.",
                headline(subject),
            ),
            table(
                f"Scores of the model {result.model} on applications that it has not seen",
                ("score", result.model, f"{100 * SHARE:g} % range", "best baseline", "noise floor"),
                (row for name in _ROWS for row in _row(subject, *name)),
            ),
            paragraph(
                f"{100 * SHARE:g} % range: where the score falls when the applications are drawn again, "
                "with replacement.",
                "Baseline: what needs no look at the kernel, or only looks up the most similar one; a star "
                "where the model is better than it beyond doubt, which is when that range of their "
                "difference excludes 0.",
                "Noise floor: a single run of each cell as the forecast of its median; errors as small as "
                "that are noise.",
                class_="note",
            ),
        ],
        "\n",
    )


def headline(subject: Subject) -> str:
    """How well times and the fastest device are predicted, in a sentence."""
    scores, confidence = subject.result.scores, subject.confidence
    interval = confidence.intervals.get("median_ape")
    between = (
        "" if interval is None else f" ({_range(interval, percent)} with other draws of the applications)"
    )
    sentence = (
        f"Half of the predicted times are within {percent(scores.median_ape)} of the measured ones{between}"
    )
    if scores.slowdown_mean is not None:
        sentence += (
            f", and the device recommended for a kernel takes {factor(scores.slowdown_mean)} the time of the "
            "fastest on average"
        )
    return f"{sentence}."


def _row(subject: Subject, label: str, name: str, write: _Write) -> Iterator[Sequence[str]]:
    value = getattr(subject.result.scores, name)
    if value is None:
        return
    confidence = subject.confidence
    interval = confidence.intervals.get(name)
    difference = confidence.differences.get(name)
    baseline, star = NONE, ""
    if difference is not None:
        baseline = f"{write(value - difference.value)} ({difference.baseline})"
        star = " *" if difference.better else ""
    yield (
        label,
        write(value) + star,
        NONE if interval is None else _range(interval, write),
        baseline,
        write(getattr(subject.study.noise.scores, name)),
    )


def _range(interval: Interval, write: _Write) -> str:
    return f"{write(interval.low)} to {write(interval.high)}"


def in_full(subject: Subject) -> Markup:
    """All scores of all models, as `crosscast evaluate` prints them, and what they do and do not say."""
    stream = io.StringIO()
    print_evaluation(subject.study, stream)
    text = "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
    label = "Scores of all models, baselines and the noise floor"
    return joined(
        [
            element("h3", "How to read it"),
            element("ul", joined((element("li", each) for each in _reading(subject)), "\n")),
            element("h3", "What it does not say"),
            element("ul", joined((element("li", each) for each in _limits(subject)), "\n")),
            element("h3", "All scores"),
            element(
                "div", element("pre", text), class_="wide", tabindex="0", role="region", aria_label=label
            ),
        ],
        "\n",
    )


def _reading(subject: Subject) -> Iterator[str]:
    result, study = subject.result, subject.study
    scores, level = result.scores, f"{100 * result.level:g} %"
    yield (
        "No prediction on this page is of a kernel that the model had seen: whatever it scales, tunes or "
        "selects, it did with the other applications alone."
    )
    yield (
        "An error of 100 % is a time predicted twice as long as it is, or as 0. Errors of a factor are the "
        "same in both directions in ln(time): 0.69 is a factor of 2."
    )
    yield (
        f"An interval is to hold the measured time in {level} of cases. Over all cells it did in "
        f"{percent(scores.coverage)}, in the worst application in "
        f"{percent(scores.coverage_worst_application)}; half of the intervals are wider than from a time to "
        f"{factor(scores.width)} that time."
    )
    if study.always is not None and scores.slowdown_mean is not None:
        device, always = study.always
        fixed = always.scores.slowdown_mean
        yield (
            f"Always taking {device} would cost {factor(fixed)} on average; that this device is "
            "the best to take always was found afterwards, with all measured times."
        )
    yield _verdict(subject)


def _verdict(subject: Subject) -> str:
    difference = subject.confidence.differences.get("rmse_log")
    if difference is None:
        return (
            "No baseline stands beside this model, so nothing here says that it is better than a trivial one."
        )
    low, high = (_signed(limit) for limit in (difference.interval.low, difference.interval.high))
    verdict = "better beyond doubt" if difference.better else "not shown to be better"
    return (
        f"The root mean square error of ln(time) of {subject.result.model} less that of the best baseline, "
        f"{difference.baseline}, is {_signed(difference.value)}, and {low} to {high} over the draws of "
        f"applications: {verdict}."
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _limits(subject: Subject) -> Iterator[str]:
    counts = subject.study.counts
    applications = counts["applications"]
    few = f"{plural(applications, 'application')} are few. " if applications < _FEW else ""
    yield (
        f"{few}Kernels of an application resemble each other, so the ranges are over applications, and not "
        f"over {plural(counts['cells'], 'cell')}. They hold for applications drawn from the same pool as "
        "these, and for no others."
    )
    yield (
        f"The model had seen these devices ({', '.join(device.key for device in subject.devices)}) run other "
        "applications. Nothing here says how well another device is predicted, or another compiler or driver."
    )
    yield (
        "A single application can be predicted far worse than the scores over all say: look at its row in "
        "the tables by application."
    )
    if subject.candidates > 1:
        yield (
            f"{subject.result.model} is shown because its error is the least of {subject.candidates} models "
            "on these same applications; that choice flatters it a little."
        )
    yield "Times are those of kernels, as the dataset records them, without copies of data, energy or costs."
