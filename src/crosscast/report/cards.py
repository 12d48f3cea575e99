"""Reports on models: scores on held-out data from their cards, lists, descriptions; and on comparisons."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from crosscast.prediction.named_models import NamedModel
from crosscast.prediction.trained import Card, format_names, level_of, results_of
from crosscast.report.document import Heading, Part, Report, Table, Text, Write
from crosscast.report.fields import (
    Score,
    error_percent,
    level_percent,
    named,
    percent,
    plural,
    score_table,
    table_of,
)

if TYPE_CHECKING:
    from crosscast.comparison import Comparison
    from crosscast.prediction.trained import Card


class HeldOutScores(msgspec.Struct, frozen=True):
    """Scores of a model on held-out data, of any question; ``None`` where not known."""

    model: str
    baseline: bool = False
    quantity: str = ""
    mix_size: int | None = None
    probes: int = 0
    rows: int = 0
    median_ape: float | None = None
    mape: float | None = None
    rmse_log: float | None = None
    mae: float | None = None
    same_order: float | None = None
    slowdown_mean: float | None = None
    regret: float | None = None
    auc: float | None = None
    coverage: float | None = None
    coverage_worst_application: float | None = None
    worst: str | None = None
    worst_coverage: float | None = None
    intervals: Mapping[str, tuple[float, float]] = {}

    @property
    def worst_text(self) -> str | None:
        """The least coverage of a held-out group, with the group's name if it is known."""
        if self.worst is not None:
            return f"{self.worst} {percent(self.worst_coverage)}"
        least = self.coverage_worst_application
        return None if least is None else percent(least)


def held_out_scores(card: Card) -> list[HeldOutScores]:
    """Scores of all models on held-out data; empty if the card has none."""
    return [scores for scores, _ in results_of(card, HeldOutScores)]


def held_out_table(
    card: Card, scores: Sequence[Score], more: Sequence[tuple[str, object]] = (), *, probes: bool = False
) -> Table:
    """Make a table of the scores of all models on held-out data, and of others by name."""
    results = sorted(results_of(card, HeldOutScores), key=lambda pair: pair[0].probes)
    rows = [(named(each.model, each.model != card.model), str(each.probes), raw) for each, raw in results]
    rows += [(name, "", values) for name, values in more]
    lines = [([known, name] if probes else [name], values, None) for name, known, values in rows]
    bold = [number for number, (each, _) in enumerate(results) if each.model == card.model]
    headings = ["probes", "model"] if probes else ["model"]
    return score_table(headings, lines, scores, words=range(len(headings)), bold=bold)


def _error(share: float) -> str:
    return percent(share) if share >= 0.1 else error_percent(share)


_CLAUSES: Mapping[str, tuple[str, Write]] = {
    "median_ape": ("median error {}", _error),
    "mape": ("mean error {}", _error),
    "rmse_log": ("RMSE of the logarithm {}", "{:.3f}".format),
    "mae": ("mean absolute error {} of the time on the slowest device", "{:.3f}".format),
    "same_order": ("devices in the right order for {}", percent),
    "slowdown_mean": ("the recommended device took {} times the time of the fastest", "{:.2f}".format),
    "regret": ("the recommended device took {} more time than the fastest", percent),
    "coverage": ("coverage of {level} intervals {}", percent),
}


def held_out_sentence(
    card: Card,
    parts: Mapping[str, HeldOutScores],
    names: str,
    *,
    groups: str = "applications",
    level: float | None = None,
    beside: str = "",
) -> list[str]:
    """Sentence with the named scores of each part, such as a quantity, as far as they are known.

    `level` is that of the intervals, by default the card's; `beside` is said beside the MAE.
    """
    reached, sentences = level_percent(level or level_of(card)), []
    for part, scores in parts.items():
        known = [name for name in names.split() if getattr(scores, name) is not None]
        clauses = ", ".join(_clause(scores, name, reached, beside) for name in known)
        if clauses:
            sentences.append(f"{part}: {clauses}" if part else clauses)
    return [f"On held-out {groups}: {'; '.join(sentences)}."] if sentences else []


def _clause(scores: HeldOutScores, name: str, level: str, beside: str) -> str:
    text, write = _CLAUSES[name]
    clause = text.format(write(getattr(scores, name)), level=level)
    if name == "median_ape" and name in scores.intervals:
        low, high = scores.intervals[name]
        return f"{clause} (95 % bootstrap {100 * low:.0f} to {100 * high:.0f} %)"
    if name == "coverage" and scores.worst_text:
        return f"{clause} (worst application {scores.worst_text})"
    return f"{clause} ({beside})" if name == "mae" and beside else clause


def sources_report(sources: Sequence[Mapping[str, Any]]) -> Report:
    """List the sources that can be imported, with licence, origin and files."""
    parts: list[Part] = []
    for source in sources:
        facts = [f"licence: {source['licence']}", f"origin: {source['origin']}"]
        files = [
            f"file: {' or '.join(file['names'])}{'' if file['required'] else ' (optional)'}"
            + (f", columns {', '.join(file['columns'])}" if file["columns"] else "")
            for file in source["files"]
        ]
        parts += [
            Heading(source["name"]),
            source["about"],
            Text([*facts, f"path: {source['path']}", *files], "list"),
        ]
    return Report(
        [
            *parts,
            "",
            "To import one: crosscast dataset import NAME PATH --out FOLDER; --help says what PATH is.",
        ]
    )


_TEXTS = {"time": "prediction", "relative": "relative", "configuration": "configuration", "corun": "corun"}
"""Modules by question that describe a card's training data and its errors on unseen applications."""


def models_report(models: Sequence[NamedModel], plugins: Mapping[str, str]) -> Report:
    """List the named models, and the commands that use them."""
    rows = [[model.name, model.command, model.licence or "your own", model.about] for model in models]
    return Report(
        [
            Table(["model", "for", "licence", "predicts"], rows, words=range(4)),
            *(
                f"{name}: a model of times of the package {package} (predict time --model {name})"
                for name, package in plugins.items()
            ),
            "",
            "How good each is on unseen applications, its data and what to cite: crosscast models NAME.",
        ]
    )


def model_report(named: NamedModel, card: Card) -> Report:
    """Describe a model: training data, errors, and origin of the data."""
    # Imported on demand, as the tables of each question need other parts of the package.
    texts = importlib.import_module(f"crosscast.report.{_TEXTS[named.question]}")
    parts: list[Part] = [
        Heading(named.name, 1),
        f"{named.about}.",
        f"Used by crosscast {named.command}.",
        "",
        f"{card.model}, {texts.trained_on(card)}",
        *texts.held_out_errors(card),
    ]
    facts = {"Licence": named.licence, "Data": named.origin, "Cite": named.citation, "Folder": named.folder}
    return Report([*parts, "", *(f"{name}: {fact}" for name, fact in facts.items() if fact)])


_MOST = 30
"""Largest number of differences that are listed; ``--json`` has all."""
_MOST_NAMED = 10


def comparison_report(comparison: Comparison) -> Report:
    """List the largest differences, the items of only one side, and the conditions that hold."""
    first, second = comparison.labels
    differ = sum(each.change is not None for each in comparison.differences)
    alone = len(comparison.differences) - differ
    verb = "differs" if differ == 1 else "differ"
    summary = f"{plural(comparison.compared, 'number')} compared, {differ:,} {verb}"
    summary += f"; {plural(alone, 'number')} of only one of the two." if alone else "."
    parts: list[Part] = [Heading(f"{first} and {second}", 1), summary]
    if comparison.differences:
        shown = comparison.differences[:_MOST]
        parts.append(
            table_of(
                shown,
                {
                    "of": "item",
                    "number": "metric",
                    "first": "first",
                    "second": "second",
                    "change": "change",
                    "relative": "relative",
                },
                caption="Largest changes",
                formats={"first": _number, "second": _number, "change": _signed, "relative": _relative},
            )
        )
        more = len(comparison.differences) - _MOST
        if more > 0:
            parts.append(f"... and {more:,} more, which --json has.")
    for label, items in zip(comparison.labels, comparison.only, strict=True):
        if items:
            parts.append(f"Only in {label}: {format_names(items, _MOST_NAMED)}.")
    if comparison.failed:
        verdicts = [
            f"FAIL  {condition}: {format_names(items, _MOST_NAMED)}" if items else f"ok    {condition}"
            for condition, items in comparison.failed.items()
        ]
        parts.append(Text(verdicts, "note"))
    return Report(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _signed(value: float) -> str:
    return f"+{_number(value)}" if value > 0 else _number(value)


def _relative(share: float) -> str:
    return "from 0" if math.isinf(share) else f"{100 * share:+.3g} %"
