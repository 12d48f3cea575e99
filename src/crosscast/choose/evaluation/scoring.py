"""From choices in all cases to results of methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.cases import Cases, by_input
from crosscast.choose.evaluation.fold import Numbers
from crosscast.choose.evaluation.metrics import Metrics, tallies_of
from crosscast.choose.evaluation.repeats import Repeats
from crosscast.choose.evaluation.result import ChoiceResult, Curve, OnRepeats, Regret
from crosscast.choose.evaluation.sureness import Tallied, bootstrap_choices
from crosscast.choose.limit import within_cap
from crosscast.choose.walk import Method
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["Choices", "results_of"]


@dataclass(frozen=True, eq=False)
class Choices:
    """What all methods chose in all cases.

    Parameters
    ----------
    surfaces
        What was measured.
    cases
        The ``m`` cases.
    protocol
        What was left out.
    budget
        Most changes after the first configuration; ``None`` for no limit.
    curve
        The ``b`` numbers of changes of the curve.
    chosen, changes
        ``(methods, b + 1, m)`` Where each settled and the changes until there; the last for `budget`.
    guarded
        ``(methods, m)`` Where each settled when told a lower cap.
    """

    surfaces: Surfaces
    cases: Cases
    protocol: str
    budget: int | None
    curve: tuple[int, ...]
    chosen: Numbers
    changes: Numbers
    guarded: Numbers


def results_of(
    choices: Choices, methods: Sequence[Method], repeats: Repeats | None, seed: int
) -> list[ChoiceResult]:
    """Score the choices of each method.

    Parameters
    ----------
    choices
        What they chose.
    methods
        The methods, in the same order.
    repeats
        Repeats to score on as well, if there are any.
    seed
        Start of the random numbers of the bootstrap.
    """
    cases, surfaces = choices.cases, choices.surfaces
    time_s = surfaces.time_s[cases.kernel, choices.chosen]
    power_w = surfaces.power_w[cases.kernel, choices.chosen]
    tallies = tallies_of(cases, time_s, power_w, choices.changes)
    inputs = by_input(cases, surfaces)
    of_inputs = tallies_of(inputs, time_s[:, -1], power_w[:, -1], choices.changes[:, -1])
    baselines = [bool(getattr(method, "baseline", False)) for method in methods]
    sure = bootstrap_choices(
        [
            Tallied(method.name, baseline, of_method[-1])
            for method, baseline, of_method in zip(methods, baselines, tallies, strict=True)
        ],
        seed,
    )
    results = []
    for place, method in enumerate(methods):
        confidence = getattr(method, "confidence", None)
        programs = _by_program(cases, tallies[place, -1])
        results.append(
            ChoiceResult(
                method.name,
                choices.protocol,
                choices.budget,
                confidence,
                baselines[place],
                Metrics.of(tallies[place, -1]),
                programs,
                _by_program(inputs, of_inputs[place]),
                _above(programs, confidence),
                Curve(choices.curve, tuple(Metrics.of(each) for each in tallies[place, :-1])),
                _regret(cases, time_s[place, -1], power_w[place, -1]),
                None if repeats is None else _on_repeats(choices, place, repeats),
                sure[place],
                choices.chosen[place, -1],
                choices.changes[place, -1],
            )
        )
    return results


def _by_program(cases: Cases, tallies: Reals) -> dict[str, Metrics]:
    return {name: Metrics.of(tallies[[place]]) for place, name in enumerate(cases.programs)}


def _above(programs: dict[str, Metrics], confidence: float | None) -> tuple[str, ...]:
    if confidence is None:
        return ()
    most = 1 - confidence
    return tuple(name for name, each in programs.items() if each.violations and each.violations > most)


def _regret(cases: Cases, time_s: Reals, power_w: Reals) -> Regret | None:
    under = within_cap(power_w, cases.power_cap)
    return Regret.of(1 - cases.oracle_time_s[under] / time_s[under], cases.share[under])


def _on_repeats(choices: Choices, place: int, repeats: Repeats) -> OnRepeats:
    chosen = repeats.scored(choices.cases, choices.chosen[place, -1])
    told_less = repeats.scored(choices.cases, choices.guarded[place])
    return OnRepeats(
        (_known(chosen.under_limit_share), chosen.under_performance),
        (_known(chosen.under_limit_share_within_1pct), chosen.under_performance_within_1pct),
        told_less,
    )


def _known(share: float | None) -> float:
    return np.nan if share is None else share
