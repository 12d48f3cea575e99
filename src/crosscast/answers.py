"""What the commands and the service answer: JSON objects of forecasts and choices, and facts of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from crosscast.decide.samples import SampledKernel
    from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
    from crosscast.prediction.configuration.choice import Choice
    from crosscast.prediction.configuration.data import SurfaceForecast
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.roofline import Verdict

Objective = Literal["performance", "energy", "edp", "power"]


def model_facts(card: Any) -> dict[str, Any]:
    """What every answer says about its model."""
    return {"name": card.model, "training": dict(card.training)}


def forecasts_answer(noun: str, found: Sequence[Mapping[str, Any]], card: Any) -> dict[str, Any]:
    """One JSON object with all forecasts; of a single one, what belongs to it also by itself."""
    single = found[0] if len(found) == 1 else {}
    return {**single, noun: found, "model": model_facts(card)}


def with_verdicts(found: TimeForecast, verdicts: Sequence[Verdict | None]) -> list[dict[str, Any]]:
    """Forecasts of kernels, each with what bounds it on the recommended device."""
    return [
        {**kernel, "verdict": verdict and verdict.to_dict()}
        for kernel, verdict in zip(found.to_dict()["kernels"], verdicts, strict=True)
    ]


def launches_answer(kernels: TimeForecast, repeat: float = 1.0) -> dict[str, Any]:
    """Times of all kernels of an application, as often as they are launched, and the fastest device."""
    times = zip(kernels.devices, *(each.tolist() for each in kernels.of_all_launches(repeat)), strict=True)
    devices = [dict(zip(("device", "time_s", "low_s", "high_s"), row, strict=True)) for row in times]
    return {"devices": devices, "recommended": min(devices, key=itemgetter("time_s"))["device"]}


@dataclass(frozen=True, eq=False)
class KernelChoices:
    """A kernel, what is predicted of it, and what is chosen under each cap."""

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

    A slowdown is that over the first of the sample configurations.
    """
    from crosscast.prediction.configuration.choice import choice_of

    space = trained.predictor.space
    words: dict[str, Any] = {"objective": objective, "confidence": cap_probability, "level": level}
    words |= {"max_slowdown": max_slowdown, "baseline": int(trained.card.numbers[0])}
    found = []
    for kernel in kernels:
        forecast = trained.predictor.forecast(kernel.observed)
        choices = [choice_of(forecast, space, cap, **words) for cap in caps]
        found.append(KernelChoices(kernel, forecast, choices))
    return found


def choices_answer(found: Sequence[KernelChoices], trained: TrainedConfigurationModel) -> dict[str, Any]:
    """All choices, and what belongs to the first one also by itself."""
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
        for one in found
        for choice in one.choices
    ]
    return {
        **listed[0],
        "choices": listed,
        "model": {**model_facts(trained.card), "errors": dict(trained.card.errors)},
    }
