"""``crosscast evaluate --protocol leave-benchmark-out``: how well methods choose under power caps."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.configuration_text import configurations_named
from crosscast.cli.fits import FitStatus
from crosscast.cli.option_names import option_names
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.configuration import Configuration
    from crosscast.decide.cases import Sampler
    from crosscast.decide.evaluation import ChoiceStudy
    from crosscast.decide.training import OfflineStage
    from crosscast.predict.configuration.data import Surfaces
    from crosscast.tables.dataset import Dataset

__all__ = ["CHOICES", "ChoiceOptions", "evaluate_choices_of"]

CHOICES = "leave-benchmark-out"
"""The protocol that compares methods of choosing."""


@dataclass(frozen=True)
class ChoiceOptions:
    """What was typed; ``None`` or false where nothing was.

    Parameters
    ----------
    methods, samples, together, devices, power_domain, budget, confidence, programs
        As `crosscast.cli.evaluate.evaluate` has them.
    """

    methods: str | None = None
    samples: str | None = None
    together: str | None = None
    devices: str | None = None
    power_domain: str | None = None
    budget: int | None = None
    confidence: float | None = None
    programs: bool = False

    def given(self) -> list[str]:
        """Options that were typed."""
        found = {
            "--methods": self.methods,
            "--samples": self.samples,
            "--together": self.together,
            "--devices": self.devices,
            "--power-domain": self.power_domain,
            "--budget": self.budget,
            "--confidence": self.confidence,
            "--programs": self.programs or None,
        }
        return [option for option, value in found.items() if value is not None]


def evaluate_choices_of(
    dataset: Dataset,
    options: ChoiceOptions,
    *,
    seed: int,
    jobs: int,
    cache: Path | None,
    figures: Path | None,
    json: bool,
) -> list[Path]:
    """Evaluate, print and draw.

    Parameters
    ----------
    dataset
        Runs on several configurations.
    options
        What to evaluate.
    seed, jobs, cache, figures, json
        As `crosscast.cli.evaluate.evaluate` has them.

    Returns
    -------
    list of Path
        Pictures and tables that were written.

    Raises
    ------
    InputError
        If something of the options or the dataset is not as expected, or a file cannot be written.
    """
    from crosscast.decide.evaluation import study_choices
    from crosscast.decide.policies import CONFIDENCE, methods_of
    from crosscast.decide.samples import two_samples
    from crosscast.decide.training import offline_stage
    from crosscast.report.choices import print_choices

    with FitStatus() as status, option_names():
        machines = _machines(dataset, options)
        names = _methods(options.methods, machines)
        confidence = CONFIDENCE if options.confidence is None else options.confidence
        samples: Sequence[Configuration] | Sampler = two_samples
        if options.samples is not None:
            samples = _samples(options.samples, machines)
        study = study_choices(
            dataset.label,
            machines,
            lambda space: methods_of(space, names, confidence),
            samples=samples,
            together=_groups(options.together),
            budget=options.budget,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=jobs,
        )
        stages = [offline_stage(each, samples=samples, seed=seed) for each in machines]
    paths = []
    if figures is not None:
        from crosscast.report.choice_figures.all_figures import write_choice_figures

        paths = write_choice_figures(study, stages, figures)
    if json:
        print(json_format.dumps(_listed(study, stages), allow_nan=False))
    else:
        print_choices(study, stages, sys.stdout, programs=options.programs)
    return paths


def _machines(dataset: Dataset, options: ChoiceOptions) -> tuple[Surfaces, ...]:
    from crosscast.predict.configuration.data import machines_of
    from crosscast.tables.configured import configured

    devices = None if options.devices is None else words_of("--devices", options.devices)
    return machines_of(configured(dataset, domain=options.power_domain), dataset.label, devices)


def _methods(text: str | None, machines: Sequence[Surfaces]) -> list[str] | None:
    """Names of the methods, checked; ``None`` for the main ones."""
    from crosscast.decide.policies import check_method_names, method_names

    if text is None:
        return None
    spaces = [machine.space for machine in machines]
    if text == "all":
        return list(dict.fromkeys(name for space in spaces for name in method_names(space)))
    names = words_of("--methods", text)
    check_method_names(names, spaces)
    return names


def _samples(text: str, machines: Sequence[Surfaces]) -> list[Configuration]:
    if len(machines) > 1:
        found = "; ".join(", ".join(machine.space.devices) for machine in machines)
        raise InputError(
            f"--samples: expected one machine, found {len(machines)} ({found}): say which with --devices"
        )
    return configurations_named("--samples", text, machines[0].space.devices)


def _groups(text: str | None) -> list[list[str]]:
    """Programs that are left out together: ``a+b,c+d``."""
    groups = [] if text is None else [word.split("+") for word in words_of("--together", text)]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError(
                f"--together: expected groups such as a+b,c+d of programs, found {'+'.join(group)!r}"
            )
    return groups


def _listed(study: ChoiceStudy, stages: Sequence[OfflineStage]) -> dict[str, object]:
    """Everything, with what the published model finds in all programs of each machine."""
    found = study.to_dict()
    machines = [
        {**machine, "published_model": stage.to_dict()}
        for machine, stage in zip(found["machines"], stages, strict=True)
    ]
    return {"protocol": CHOICES, **found, "machines": machines}
