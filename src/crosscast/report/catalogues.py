"""Tables of what there is: sources of data, models, and what two of a kind differ in."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosscast.prediction.named_models import NamedModel
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import table_of
from crosscast.report.numbers import NONE, plural
from crosscast.report.prediction import calibrated_on

if TYPE_CHECKING:
    from crosscast.comparison.contents import Comparison
    from crosscast.measure.calibration import Calibration
    from crosscast.prediction.trained import Card


def sources_report(sources: Sequence[Mapping[str, Any]]) -> Report:
    """What can be imported: what it is, its licence, where it is from and which files are wanted."""
    parts: list[Part] = []
    for source in sources:
        facts = [f"licence: {source['licence']}", f"origin: {source['origin']}"]
        wanted = [
            f"file: {' or '.join(file['names'])}{'' if file['required'] else ' (optional)'}"
            + (f", columns {', '.join(file['columns'])}" if file["columns"] else "")
            for file in source["files"]
        ]
        parts += [
            Heading(source["name"]),
            source["about"],
            Text([*facts, f"path: {source['path']}", *wanted], "list"),
        ]
    return Report(
        [
            *parts,
            "",
            "To import one: crosscast dataset import NAME PATH --out FOLDER; --help says what PATH is.",
        ]
    )


_TEXTS = {
    "time": "prediction:trained_on,held_out_errors",
    "relative": "relative:trained_on,held_out_errors",
    "configuration": "configuration:trained_on,held_out_errors",
    "corun": "corun:trained_on_mixes,held_out_corun_errors",
}
"""Functions of a card, by question: what the model was trained on, and its errors on unseen applications."""


def models_report(found: Sequence[NamedModel], plugged: Mapping[str, str]) -> Report:
    """All models that have a name, and where they are used."""
    rows = [[each.name, each.command, each.licence or "your own", each.about] for each in found]
    return Report(
        [
            Table(["model", "for", "licence", "predicts"], rows, words=range(4)),
            *(
                f"{name}: a model of times of the package {package} (predict time --model {name})"
                for name, package in plugged.items()
            ),
            "",
            "How good each is on unseen applications, its data and what to cite: crosscast models NAME.",
        ]
    )


def model_report(named: NamedModel, card: Card) -> Report:
    """One model: what it was trained on, how good it is, where its data are from."""
    module, _, functions = _TEXTS[named.question].partition(":")
    # Each question's tables need parts of the package that the others do not.
    texts = importlib.import_module(f"crosscast.report.{module}")
    training, errors = (getattr(texts, name) for name in functions.split(","))
    parts: list[Part] = [
        Heading(named.name, 1),
        f"{named.about}.",
        f"Used by crosscast {named.command}.",
        "",
        f"{card.model}, {training(card)}",
        *errors(card),
    ]
    facts = {"Licence": named.licence, "Data": named.origin, "Cite": named.citation, "Folder": named.folder}
    return Report([*parts, "", *(f"{name}: {fact}" for name, fact in facts.items() if fact)])


def calibration_report(found: Calibration) -> Report:
    """What a device was calibrated with, how good forecasts for it are, and what to do next."""
    return Report(
        [
            Heading(found.name, 1),
            *calibrated_on(found.model.card),
            f"The model is in {found.folder}, and answers where `--devices` names {found.name}.",
            "",
            f"Next: crosscast predict kernel.toml --devices {found.name},gtx1080",
        ]
    )


_MOST = 30
"""Differences that are listed; ``--json`` has all."""
_MOST_NAMED = 10


def comparison_report(found: Comparison) -> Report:
    """How much differs, the largest changes, what only one has, and which conditions hold."""
    first, second = found.labels
    differ = len(found.differences)
    said = (
        f"{plural(found.compared, 'number')} compared, {differ:,} {'differs' if differ == 1 else 'differ'}."
    )
    parts: list[Part] = [Heading(f"{first} and {second}", 1), said]
    if found.differences:
        shown = found.differences[:_MOST]
        parts.append(
            table_of(
                shown,
                {
                    "of": "item",
                    "number": "metric",
                    "first": "first",
                    "second": "second",
                    "change": "change",
                    "relative": lambda each: _relative(each.relative),
                },
                caption="Largest changes",
                formats=dict.fromkeys(("first", "second"), _number) | {"change": _signed},
                words=(0, 1),
            )
        )
        if differ > _MOST:
            parts.append(f"... and {differ - _MOST:,} more, which --json has.")
    for label, items in zip(found.labels, found.only, strict=True):
        if items:
            more = f" and {len(items) - _MOST_NAMED:,} more" if len(items) > _MOST_NAMED else ""
            parts.append(f"Only in {label}: {', '.join(items[:_MOST_NAMED])}{more}.")
    if found.failed:
        parts.append(Text([_verdict(text, items) for text, items in found.failed.items()], "note"))
    return Report(parts)


def _verdict(condition: str, items: tuple[str, ...]) -> str:
    if not items:
        return f"ok    {condition}"
    more = f" and {len(items) - _MOST_NAMED:,} more" if len(items) > _MOST_NAMED else ""
    return f"FAIL  {condition}: {', '.join(items[:_MOST_NAMED])}{more}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _signed(value: float) -> str:
    return f"+{_number(value)}" if value > 0 else _number(value)


def _relative(share: float | None) -> str:
    if share is None:
        return NONE
    return "from 0" if math.isinf(share) else f"{100 * share:+.3g} %"
