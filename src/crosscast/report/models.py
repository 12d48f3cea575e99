"""Models that have a name: a table of all, and what there is to say about one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosscast.prediction.named_models import NamedModel
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.prediction import calibrated_on

if TYPE_CHECKING:
    from crosscast.calibration import Calibration

_TEXTS = {
    "time": "prediction:trained_on,held_out_errors",
    "relative": "relative:trained_on_runs,relative_errors_text",
    "configuration": "configuration:trained_on,held_out_errors",
    "corun": "corun:trained_on_mixes,held_out_corun_errors",
}
"""Functions of a card, by question: what the model was trained on, and its errors on unseen applications."""


def models_report(found: Sequence[NamedModel], plugged: Mapping[str, str]) -> Report:
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
            *(
                f"{name}: a model of times of the package {package} (predict time --model {name})"
                for name, package in plugged.items()
            ),
            "",
            "How good each is on unseen applications, its data and what to cite: crosscast models NAME.",
        ]
    )


def model_report(named: NamedModel, card: Any) -> Report:
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
