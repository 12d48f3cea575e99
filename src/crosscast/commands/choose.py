"""``crosscast choose``: the best configuration under a power cap, for a kernel that was run twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosscast.cli.options import share_in
from crosscast.cli.predict import ChooseConfiguration, ChooseSample
from crosscast.commands.output import check_picture, say, show, tell, warn_of
from crosscast.decide.samples import SampledKernel, read_samples, template_columns, write_template
from crosscast.decide.selector import KernelChoices, choices_answer, choices_for
from crosscast.errors import InputError
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.configuration.choice import check_choice
from crosscast.prediction.intervals import check_level
from crosscast.prediction.named_models import first_fit, models_for
from crosscast.report.configuration import choice_figure, chosen_report, samples_report
from crosscast.report.document import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sample(options: ChooseSample) -> None:
    """Run ``crosscast choose sample``."""
    card = first_fit(models_for(options.model, "configuration"), lambda trained: trained, tell)[0].card
    if options.template is not None:
        write_template(options.template, card)
        tell(f"wrote {options.template}")
    columns = template_columns(card)
    answer = {"samples": [each.to_dict() for each in card.sample_configurations], "columns": list(columns)}
    show(options.output, lambda: answer, lambda: samples_report(card, columns))


def configuration(options: ChooseConfiguration) -> None:
    """Run ``crosscast choose configuration``."""
    if options.plot is not None:
        check_picture("--plot", options.plot)
    if options.power_cap is None and options.objective == "performance":
        raise InputError.of(
            where="--power-cap", expected="watts such as 150, or another --objective", found="neither"
        )
    caps = [float("inf")] if options.power_cap is None else _caps(options.power_cap)
    check_level(options.level)
    for cap in caps:
        check_choice(cap, options.confidence)
    text = options.max_slowdown
    slowdown = None if text is None else share_in("--max-slowdown", text, "5% or 0.05")

    def chosen(trained: TrainedConfigurationModel) -> tuple[Sequence[str], list[KernelChoices]]:
        runs = read_samples(options.samples, trained.card)
        return runs.notes, choices_for(
            trained,
            _named(runs.kernels, options.kernel),
            caps,
            objective=options.objective,
            confidence=options.confidence,
            level=options.level,
            max_slowdown=slowdown,
        )

    trained, (notes, kernels) = first_fit(models_for(options.model, "configuration"), chosen, tell)
    for note in notes:
        say(f"note: {note}")
    warn_of(kernels)
    if options.plot is not None:
        if len(kernels) > 1:
            names = ", ".join(kernel.kernel.name for kernel in kernels)
            found = f"{names}: say which with --kernel"
            raise InputError.of(where="--plot", expected="one kernel", found=found)
        tell(f"wrote {save_figure(_figure(kernels[0], trained), options.plot)}")
    impossible = [
        choice.reason for kernel in kernels for choice in kernel.choices if choice.recommended is None
    ]
    if len(impossible) < len(kernels) * len(caps) or len(impossible) > 1:
        show(
            options.output,
            lambda: choices_answer(kernels, trained),
            lambda: chosen_report([(kernel.kernel, kernel.choices) for kernel in kernels], trained.card),
            lambda: {kernel.kernel.name: _figure(kernel, trained) for kernel in kernels},
        )
    if impossible:
        raise _joined(impossible)


def _joined(reasons: Sequence[str]) -> InputError:
    """Join all reasons in one sentence, in which a common option occurs once."""
    field, _, first = reasons[0].partition(": ")
    others = [reason.removeprefix(f"{field}: ") for reason in dict.fromkeys(reasons[1:])]
    return InputError.of(field=field.replace(" ", "_"), problem="; ".join([first, *others]))


def _caps(text: str) -> list[float]:
    caps = []
    for word in dict.fromkeys(map(str.strip, text.split(","))):
        try:
            cap = float(word)
        except ValueError:
            cap = math.inf
        # Without a cap, the option is left out.
        if cap == math.inf:
            raise InputError.of(where="--power-cap", expected="watts such as 150", found=repr(word))
        caps.append(cap)
    return caps


def _named(kernels: Sequence[SampledKernel], name: str | None) -> list[SampledKernel]:
    if name is None:
        return list(kernels)
    matching = [kernel for kernel in kernels if name in kernel.names]
    if not matching:
        known = ", ".join(kernel.name for kernel in kernels)
        raise InputError.of(where="--kernel", expected=f"one of {known}", found=repr(name))
    return matching


def _figure(kernel: KernelChoices, trained: TrainedConfigurationModel) -> Figure:
    return choice_figure(kernel.kernel.name, kernel.forecast, trained.predictor.space, kernel.choices)
