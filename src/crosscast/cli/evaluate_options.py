"""Options of ``crosscast evaluate`` that would be passed over: refused before anything is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crosscast.cli.evaluate_choices import CHOICES, ChoiceOptions
from crosscast.cli.evaluate_relative import RelativeOptions
from crosscast.errors import InputError

__all__ = ["LEVEL", "Effort", "Typed"]

Effort = Literal["quick", "usual", "thorough"]

LEVEL = 0.9
"""Probability of intervals where nobody says."""


@dataclass(frozen=True)
class Typed:
    """What was typed besides the protocol; ``None``, or the default, where nothing was.

    Parameters
    ----------
    models, probes, level, effort
        As `crosscast.cli.evaluate.evaluate` has them.
    choices, relative
        What else.
    """

    models: str | None
    probes: str | None
    level: float
    effort: Effort
    choices: ChoiceOptions
    relative: RelativeOptions

    def check(self, protocol: str, *, relative: bool) -> None:
        """Refuse what says nothing to an evaluation.

        Parameters
        ----------
        protocol
            What is left out.
        relative
            Whether relative performance is evaluated, rather than times.

        Raises
        ------
        InputError
            If such an option was typed.
        """
        if relative:
            self._check_relative()
            return
        if protocol != CHOICES:
            _refuse(self.choices.given(), f"nothing to say with {protocol}")
        _refuse(self.relative.given(), f"nothing to say with {protocol}")
        if protocol != "published" and self.effort != "usual":
            _refuse(["--effort"], f"nothing to choose with {protocol}")
        if protocol == "published":
            _refuse(self._of_models(), "the published study itself says this")
        if protocol == CHOICES:
            _refuse(self._of_models(), f"nothing to say with {protocol}, which compares --methods")

    def check_corun(self) -> None:
        """Refuse what says nothing to an evaluation of bags.

        Raises
        ------
        InputError
            If such an option was typed.
        """
        effort = ["--effort"] if self.effort != "usual" else []
        of_choices = [option for option in self.choices.given() if option != "--devices"]
        of_relative = [option for option in self.relative.given() if option != "--studies"]
        _refuse([*of_choices, *of_relative, *effort], "nothing to say about bags")

    def _check_relative(self) -> None:
        effort = ["--effort"] if self.effort != "usual" else []
        of_models = [option for option in self._of_models() if option != "--models"]
        of_choices = [option for option in self.choices.given() if option != "--devices"]
        _refuse([*of_choices, *of_models, *effort], "nothing to say about relative performance")

    def _of_models(self) -> list[str]:
        given = {
            "--models": self.models is not None,
            "--probes": self.probes is not None,
            "--level": self.level != LEVEL,
        }
        return [option for option, is_given in given.items() if is_given]


def _refuse(options: list[str], reason: str) -> None:
    for option in options:
        raise InputError(f"{option}: {reason}; leave the option out")
