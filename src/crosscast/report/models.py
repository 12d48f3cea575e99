"""Models that have a name: a table of all, and what there is to say about one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crosscast.predict.named_models import NamedModel
from crosscast.report.configuration import held_out_errors as configuration_errors
from crosscast.report.configuration import trained_on as configuration_training
from crosscast.report.corun import held_out_corun_errors, trained_on_mixes
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.prediction import held_out_errors, trained_on
from crosscast.report.relative import relative_errors_text, trained_on_runs

_TEXTS: dict[str, tuple[Callable[[Any], str], Callable[[Any], list[str]]]] = {
    "time": (trained_on, lambda card: held_out_errors(card, 0)),
    "relative": (trained_on_runs, relative_errors_text),
    "configuration": (configuration_training, configuration_errors),
    "corun": (trained_on_mixes, held_out_corun_errors),
}
"""What a model was trained on, and how good it is on what it has not seen, by question."""


def models_report(found: Sequence[NamedModel]) -> Report:
    """All models that have a name, and where they are used."""
    columns = {
        "model": lambda each: each.name,
        "for": lambda each: each.command,
        "licence": lambda each: each.licence or "your own",
        "predicts": lambda each: each.about,
    }
    return Report(
        [
            Table.of(found, columns, words=range(4)),
            "",
            "How good each is on unseen applications, its data and what to cite: crosscast models NAME.",
        ]
    )


def model_report(named: NamedModel, card: Any) -> Report:
    """One model: what it was trained on, how good it is, where its data are from."""
    training, errors = _TEXTS[named.question]
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
