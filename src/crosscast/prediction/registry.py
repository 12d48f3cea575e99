"""The questions by name, and the modules that implement them; a new question is added here."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

QuestionName = Literal["time", "relative", "configuration", "corun"]
"""Names of the questions that models answer."""


class Home(NamedTuple):
    """Modules that implement a question."""

    artefact: str  # Module whose `open_model` returns the trained model of a folder
    question: str  # Module whose `QUESTION` evaluates and trains (`crosscast.evaluation.question.Question`)


HOMES: dict[str, Home] = {
    name: Home(f"crosscast.prediction.{name}.artefact", f"crosscast.evaluation.{name}.question")
    for name in get_args(QuestionName)
}
"""Modules of each question."""
