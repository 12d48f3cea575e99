"""``crosscast choose``: the best configuration under a power cap, for a kernel that was run twice."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.decide.power_cap import Choice
    from crosscast.decide.samples import SampledKernel
    from crosscast.predict.configuration.artefact import TrainedConfigurationModel
    from crosscast.predict.configuration.forecast import SurfaceForecast

__all__ = ["choose"]

Objective = Literal["performance", "energy", "edp"]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A kernel, what is predicted of it, and what is chosen under each cap."""

    kernel: SampledKernel
    forecast: SurfaceForecast
    choices: list[Choice]


def choose(
    *,
    model: Path,
    samples: Path | None = None,
    power_cap: str | None = None,
    objective: Objective = "performance",
    confidence: float | None = None,
    level: float = 0.9,
    kernel: str | None = None,
    plot: Path | None = None,
    template: Path | None = None,
    json: Flag = False,
) -> None:
    """Choose device, clocks, caps or threads for a kernel under a power cap, from two runs of it.

    Without `--samples`, it says at which configurations the kernel has to be run. With them, it predicts time
    and power at every other configuration, and takes the best one that keeps to the cap (docs/choosing.md).

    Parameters
    ----------
    model
        Folder that `crosscast train --target configuration` wrote.
    samples
        Runs of the kernel: CSV with a row for each, or a history of `crosscast.profiled`.
    power_cap
        Most power, in watts; several, separated by commas, for a choice under each.
    objective
        What is to be best: `performance`, `energy`, or `edp` (energy times time).
    confidence
        Probability with which the cap must be kept, such as 0.9; by default what is best on average is taken.
    level
        Probability that the intervals are to hold.
    kernel
        Choose for this kernel alone, where the file has several.
    plot
        Picture (`.png`, `.svg`, `.pdf`) of all configurations, the predicted frontier and what is chosen.
    template
        Write a new CSV file to be filled in with the runs, and say no more.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.predict.configuration.artefact import load_configuration_model

    if plot is not None:
        _prepare(plot)
    trained = load_configuration_model(model)
    if template is not None or samples is None:
        _check_alone(samples, template, power_cap, plot)
        _say_samples(trained, template, json)
        return
    with option_names():
        caps = _caps(power_cap)
        found = _chosen(trained, samples, kernel, caps, objective, confidence, level)
    if plot is not None:
        _draw(found, trained, plot)
    impossible = [each.reason for one in found for each in one.choices if each.chosen is None]
    if len(impossible) < len(found) * len(caps) or len(impossible) > 1:
        _print(found, trained, json)
    if impossible:
        with option_names():
            raise InputError(_joined(impossible))


def _joined(reasons: Sequence[str]) -> str:
    """All reasons in one sentence, which names an option once where they are about the same one."""
    field = f"{reasons[0].partition(': ')[0]}: "
    return "; ".join([reasons[0], *(each.removeprefix(field) for each in dict.fromkeys(reasons[1:]))])


def _check_alone(samples: Path | None, template: Path | None, cap: str | None, plot: Path | None) -> None:
    if samples is not None:
        raise InputError(f"--template: expected no --samples beside it, found {samples}")
    for option, value in (("--power-cap", cap), ("--plot", plot)):
        if value is not None:
            missing = "--samples" if template is None else "no --template"
            raise InputError(f"{option}: expected {missing} beside it, found {value} alone")


def _prepare(plot: Path) -> None:
    """Refuse a picture that cannot be drawn or written, before the work."""
    from crosscast.report.canvas import require_matplotlib
    from crosscast.report.kiviat import check_format

    require_matplotlib()
    check_format(plot)
    if not plot.absolute().parent.is_dir():
        raise InputError(f"--plot: the folder {plot.absolute().parent} does not exist")


def _say_samples(trained: TrainedConfigurationModel, template: Path | None, json: bool) -> None:
    from crosscast.decide.samples import template_columns, write_template
    from crosscast.report.choosing import print_samples_to_run

    card = trained.card
    if template is not None:
        write_template(template, card)
        print(f"wrote {template}", file=sys.stderr)
    if json:
        listed = [each.to_dict() for each in card.sample_configurations]
        print(json_format.dumps({"samples": listed, "columns": list(template_columns(card))}))
    elif template is None:
        print_samples_to_run(card, template_columns(card), sys.stdout)


def _caps(text: str | None) -> list[float]:
    if text is None:
        raise InputError("--power-cap is missing, expected watts, such as --power-cap 150 or 120,150")
    caps = []
    for word in dict.fromkeys(map(str.strip, text.split(","))):
        try:
            caps.append(float(word))
        except ValueError:
            raise InputError(f"--power-cap: expected watts such as 150, found {word!r}") from None
    return caps


def _chosen(
    trained: TrainedConfigurationModel,
    samples: Path,
    name: str | None,
    caps: Sequence[float],
    objective: Objective,
    confidence: float | None,
    level: float,
) -> list[_Chosen]:
    from crosscast.decide.power_cap import choice_of
    from crosscast.decide.samples import read_samples

    read = read_samples(samples, trained.card)
    for note in read.notes:
        print(f"crosscast: note: {note}", file=sys.stderr)
    found = []
    for kernel in _named(read.kernels, name):
        forecast = trained.forecast(kernel.observed)
        choices = [
            choice_of(forecast, trained.space, cap, objective=objective, confidence=confidence, level=level)
            for cap in caps
        ]
        found.append(_Chosen(kernel, forecast, choices))
    return found


def _named(kernels: Sequence[SampledKernel], name: str | None) -> list[SampledKernel]:
    if name is None:
        return list(kernels)
    found = [kernel for kernel in kernels if name in kernel.names]
    if not found:
        known = ", ".join(kernel.name for kernel in kernels)
        raise InputError(f"--kernel: expected one of {known}, found {name!r}")
    return found


def _draw(found: Sequence[_Chosen], trained: TrainedConfigurationModel, plot: Path) -> None:
    from crosscast.report.choice_figure import write_choice_figure

    if len(found) > 1:
        names = ", ".join(one.kernel.name for one in found)
        raise InputError(f"--plot: expected one kernel, found {names}: say which with --kernel")
    (one,) = found
    write_choice_figure(one.kernel.name, one.forecast, trained.space, one.choices, plot)
    print(f"wrote {plot}", file=sys.stderr)


def _print(found: Sequence[_Chosen], trained: TrainedConfigurationModel, json: bool) -> None:
    from crosscast.report.choosing import print_chosen

    if json:
        print(json_format.dumps(_answer(found, trained), allow_nan=False))
        return
    for place, one in enumerate(found):
        if place:
            print()
        print_chosen(one.kernel, one.choices, trained.card, sys.stdout)


def _answer(found: Sequence[_Chosen], trained: TrainedConfigurationModel) -> dict[str, Any]:
    """All choices, and what belongs to the first one also by itself."""
    card = trained.card
    listed = [
        {
            "kernel": one.kernel.name,
            "samples": [
                {**configuration.to_dict(), "time_s": time_s, "power_w": power_w, "runs": runs}
                for configuration, time_s, power_w, runs in zip(
                    one.kernel.configurations(card),
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
        "model": {"name": card.model, "training": dict(card.training), "errors": dict(card.errors)},
    }
