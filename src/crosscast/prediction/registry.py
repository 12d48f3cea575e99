"""The questions by name, and the modules in which each is written. A question is added here by its name."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

QuestionName = Literal["time", "relative", "configuration", "corun"]
"""Names of the questions that models answer."""


class Home(NamedTuple):
    """Where a question is written."""

    artefact: str  # Module whose `open_model` makes a trained model of what was read from a folder
    question: str  # Module whose `QUESTION` evaluates and trains (`crosscast.evaluation.question.Question`)


HOMES: dict[str, Home] = {
    name: Home(f"crosscast.prediction.{name}.artefact", f"crosscast.evaluation.{name}.question")
    for name in get_args(QuestionName)
}
"""The home of each question."""
