"""A trained model of co-running on a terminal: what it learned from, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.text import Text

from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.warnings import format_names
from crosscast.report.console import console_of_numbers
from crosscast.report.corun_errors import corun_error_table
from crosscast.report.numbers import percent, plural, three_digits

__all__ = ["corun_trained_on", "honest_corun_errors", "print_corun_training"]

_MOST_NAMED = 8
_SHOWN = ("slowdown", "time", "power", "fits")


def print_corun_training(card: CoRunCard, folder: Path, stream: TextIO) -> None:
    """Print a card.

    Parameters
    ----------
    card
        Card of the model.
    folder
        Where the model is.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    console.print(Text(f"{folder}: {card.model}, {corun_trained_on(card)}"), soft_wrap=True)
    console.print()
    results = [each for each in card.errors.get("results", ()) if each["quantity"] in _SHOWN]
    console.print(corun_error_table([each for each in results if each["bag_size"] is None]))
    for line in (
        "Each application was left out in turn with all bags that it is in, and these were predicted by the "
        "model fitted to the others.",
        f"Coverage: how many {percent(card.errors.get('level'))} intervals held what was measured; worst: of "
        "the application whose intervals held least often.",
        "Exact definitions: docs/corun-evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def corun_trained_on(card: CoRunCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('bags', 0)), 'bag')} of {sizes} of "
        f"{plural(len(card.applications), 'application')} ({format_names(card.applications, _MOST_NAMED)}) "
        f"on {card.device}."
    )


def honest_corun_errors(card: CoRunCard) -> list[str]:
    """How good the model was on applications that it had not seen.

    Returns
    -------
    list of str
        Sentences; none if the card does not say.
    """
    own = {
        each["quantity"]: each
        for each in card.errors.get("results", ())
        if each.get("model") == card.model and each.get("bag_size") is None and not each.get("probes")
    }
    parts = [
        f"{name} {three_digits(100 * own[quantity]['mape'])} %"
        for quantity, name in (("slowdown", "slowdowns"), ("time", "times of bags"), ("power", "powers"))
        if own.get(quantity, {}).get("mape") is not None
    ]
    if not parts:
        return []
    said = f"Mean absolute error on applications that it had not seen: {', '.join(parts)}."
    return [said, *_held(card, own)]


def _held(card: CoRunCard, own: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = own.get("time") or own.get("slowdown")
    if found is None or found.get("coverage") is None:
        return []
    what = "times" if "time" in own else "slowdowns"
    return [
        f"{percent(card.errors.get('level'))} intervals held {percent(found['coverage'])} of its {what}; of "
        f"{found['worst']} {percent(found['worst_coverage'])}."
    ]
