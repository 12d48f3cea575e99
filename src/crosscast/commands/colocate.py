"""``crosscast colocate``: which jobs should share a device, and which must run alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from crosscast.answers import model_facts
from crosscast.cli.decide import ColocateOptions
from crosscast.commands.output import check_output, show
from crosscast.commands.predict_corun import isolated_runs, with_probes
from crosscast.commands.status import tell, warn_of
from crosscast.decide.colocation import ColocationPlan, choose_colocation
from crosscast.errors import InputError
from crosscast.forecasting import first_fit, models_for
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.probes import SuggestedMixes
from crosscast.report.corun import colocation_report
from crosscast.units import parse_bytes


def colocate(jobs: Path, /, *more: Path, options: ColocateOptions) -> None:
    """Run ``crosscast colocate``."""
    check_output(options.output)
    models = models_for(options.model, "corun")
    files = (jobs, *more)
    solos = isolated_runs(files)
    if options.seed < 0:
        raise InputError.of(where="--seed", expected="a number of at least 0", found=f"{options.seed}")
    own_lengths = None if options.lengths is None else _numbers(options.lengths)
    memory_bytes = None if options.memory is None else parse_bytes(options.memory)

    def planned(trained: TrainedCoRunModel) -> tuple[ColocationPlan, SuggestedMixes | None]:
        told, suggestion = with_probes(trained, options.probe, solos), None
        if options.suggest_probes is not None:
            pairs = list(combinations(solos, 2))
            suggestion = told.suggest_probes(options.suggest_probes, pairs, among=pairs)
        plan = choose_colocation(
            solos,
            told,
            lengths=own_lengths,
            max_slowdown=options.max_slowdown,
            sure=options.conservative,
            memory_bytes=memory_bytes,
            group_size=options.group_size,
            level=options.level,
            seed=options.seed,
        )
        return plan, suggestion

    trained, (plan, suggestion) = first_fit(models, planned, tell)
    warn_of(plan.shared)
    told = {**plan.to_dict([str(each) for each in files]), "model": model_facts(trained.card)}
    if suggestion is not None:
        told["suggested_probes"] = suggestion.to_dict()
    names = _numbered([solo.name for solo in solos])
    show(options.output, lambda: told, lambda: colocation_report(plan, names, trained.card, suggestion))


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise InputError.of(
            where="--lengths", expected="numbers separated by commas", found=repr(text)
        ) from error


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of jobs, with a number for those of the same name."""
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
