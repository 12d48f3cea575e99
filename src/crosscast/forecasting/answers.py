"""JSON objects of forecasts, with facts of the model, for the commands and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from crosscast.prediction.trained import Card, model_facts

if TYPE_CHECKING:
    from crosscast.devices.roofline import Verdict
    from crosscast.prediction.time.forecast import TimeForecast


def forecasts_answer(noun: str, forecasts: Sequence[Mapping[str, object]], card: Card) -> dict[str, object]:
    """One JSON object with all forecasts; a single forecast's members are also at the top."""
    single = forecasts[0] if len(forecasts) == 1 else {}
    return {**single, noun: forecasts, "model": model_facts(card)}


def with_verdicts(forecast: TimeForecast, verdicts: Sequence[Verdict | None]) -> list[dict[str, object]]:
    """Forecasts of kernels, each with its bottleneck on the recommended device."""
    return [
        {**kernel, "verdict": verdict and verdict.to_dict()}
        for kernel, verdict in zip(forecast.kernels(), verdicts, strict=True)
    ]


def launches_answer(kernels: TimeForecast, repeat: float = 1.0) -> dict[str, object]:
    """Total times of an application's kernels, as often as they are launched, and the fastest device."""
    times = zip(kernels.devices, *(each.tolist() for each in kernels.of_all_launches(repeat)), strict=True)
    devices = [dict(zip(("device", "time_s", "low_s", "high_s"), row, strict=True)) for row in times]
    return {"devices": devices, "recommended": min(devices, key=itemgetter("time_s"))["device"]}
