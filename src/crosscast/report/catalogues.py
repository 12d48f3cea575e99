"""Reports on sources of data, named models, calibrations, and comparisons."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosscast.prediction.named_models import NamedModel
from crosscast.prediction.trained import format_names
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import table_of
from crosscast.report.numbers import plural
from crosscast.report.prediction import calibrated_on

if TYPE_CHECKING:
    from crosscast.comparison import Comparison
    from crosscast.measure.calibration import Calibration
    from crosscast.prediction.trained import Card


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


def calibration_report(calibration: Calibration) -> Report:
    """Describe a device's calibration, the errors of forecasts for it, and the next step."""
    return Report(
        [
            Heading(calibration.name, 1),
            *calibrated_on(calibration.model.card),
            f"The model is in {calibration.folder}, and answers where `--devices` names {calibration.name}.",
            "",
            f"Next: crosscast predict kernel.toml --devices {calibration.name},gtx1080",
        ]
    )


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
