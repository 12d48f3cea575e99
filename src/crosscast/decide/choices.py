"""Choices of a configuration for each kernel under each power cap, and their JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from crosscast.data.configuration import Objective
from crosscast.decide.samples import SampledKernel
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.configuration.choice import Choice, choice_of
from crosscast.prediction.configuration.data import SurfaceForecast
from crosscast.prediction.trained import model_facts


@dataclass(frozen=True, eq=False)
class KernelChoices:
    """A kernel, its forecast, and the choice under each cap."""

    kernel: SampledKernel
    forecast: SurfaceForecast
    choices: list[Choice]


def choices_for(
    trained: TrainedConfigurationModel,
    kernels: Sequence[SampledKernel],
    caps: Sequence[float],
    *,
    objective: Objective,
    cap_probability: float | None,
    level: float,
    max_slowdown: float | None = None,
) -> list[KernelChoices]:
    """Choose a configuration for each kernel under each power cap in watts.

    A slowdown is relative to the first sample configuration.
    """
    space = trained.predictor.space
    choose = partial(
        choice_of,
        objective=objective,
        confidence=cap_probability,
        level=level,
        max_slowdown=max_slowdown,
        baseline=int(trained.card.numbers[0]),
    )
    chosen = []
    for kernel in kernels:
        forecast = trained.predictor.forecast(kernel.observed)
        choices = [choose(forecast, space, cap) for cap in caps]
        chosen.append(KernelChoices(kernel, forecast, choices))
    return chosen


def choices_answer(chosen: Sequence[KernelChoices], trained: TrainedConfigurationModel) -> dict[str, object]:
    """Return the JSON object of all choices, with the fields of the first at its top level as well."""
    listed = [
        {
            "kernel": one.kernel.name,
            "samples": [
                {**configuration.to_dict(), "time_s": time_s, "power_w": power_w, "runs": runs}
                for configuration, time_s, power_w, runs in zip(
                    one.kernel.configurations(trained.card),
                    one.kernel.observed.time_s.tolist(),
                    one.kernel.observed.power_w.tolist(),
                    one.kernel.runs,
                    strict=True,
                )
            ],
            **choice.to_dict(),
        }
        for one in chosen
        for choice in one.choices
    ]
    return {
        **listed[0],
        "choices": listed,
        "model": {**model_facts(trained.card), "errors": dict(trained.card.errors)},
    }
