"""Scores of trained models on held-out data, from their cards: a table, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crosscast.prediction.trained import Card, level_of, results_of
from crosscast.report.document import Table, Write
from crosscast.report.fields import Score, score_table
from crosscast.report.numbers import error_percent, level_percent, named, percent


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
