"""A machine translation card on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from crosscast.predict.corun.translation import LOGARITHMIC, TranslationCard
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE, plural, three_digits

__all__ = ["print_translation", "translated_by"]


def print_translation(card: TranslationCard, stream: TextIO) -> None:
    """Print what a card was made of, and how far it is off.

    Parameters
    ----------
    card
        The card.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    training = card.training
    console.print(
        Text(
            f"{card.source} to {card.target}: a {card.line.form} line through "
            f"{plural(int(training.get('times', 0)), 'time')} of "
            f"{plural(len(training.get('applications', ())), 'application')} of {training.get('dataset')}",
            style="bold",
        ),
        soft_wrap=True,
    )
    console.print(Text(_formula(card)), soft_wrap=True)
    scores = list(training.get("scores", ()))
    counts = sorted({each["members"] for each in scores if each["members"] is not None})
    table = number_table("line", ["of", *("alone" if n == 1 else f"bags of {n}" for n in counts), "all"])
    found = {
        (each["form"], each["quantity"], each["members"]): _percent(card, each["mape"]) for each in scores
    }
    for form, quantity in dict.fromkeys((each["form"], each["quantity"]) for each in scores):
        values = [found.get((form, quantity, n)) for n in (*counts, None)]
        table.add_row(form, quantity, *(NONE if value is None else value for value in values))
    console.print()
    console.print(Text("MAPE, each application left out:", style="bold"))
    console.print(table)


def translated_by(card: TranslationCard) -> str:
    """How far a card is off, as a sentence."""
    scores = [
        each
        for each in card.training.get("scores", ())
        if each["form"] == card.line.form and each["quantity"] == "time" and each["members"] is None
    ]
    off = f"; with applications left out, it is off by {_percent(card, scores[0]['mape'])}" if scores else ""
    return f"Times on {card.source} are translated to {card.target} by a {card.line.form} line{off}."


def _percent(card: TranslationCard, mape: float) -> str:
    """An error of a card; those of version 1 are in per cent, others are fractions."""
    return f"{three_digits(mape if card.version == 1 else 100 * mape)} %"


def _formula(card: TranslationCard) -> str:
    line = card.line
    if line.form == LOGARITHMIC:
        return f"ln(time there) = {line.slope:.4g} × ln(time here) {line.intercept:+.4g}, in seconds"
    return f"time there = {line.slope:.4g} × time here {line.intercept:+.4g} s"
