"""Applications that share a device: ``predict corun``, ``colocate`` and ``corun translate``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from crosscast.cli.machine import CorunTranslate
from crosscast.cli.predict import ColocateJobs, PredictCorun
from crosscast.commands.output import show, tell, warn_of
from crosscast.data.corun import CoRuns, IsolatedRun, co_runs, read_profile
from crosscast.data.dataset import dataset_named
from crosscast.decide.colocation import ColocationPlan, choose_colocation
from crosscast.errors import InputError
from crosscast.prediction.corun import MixForecast
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.probes import SuggestedMixes
from crosscast.prediction.corun.translation import (
    read_translation,
    shared_times,
    train_translation,
    translated_forecasts,
    write_translation,
)
from crosscast.prediction.named_models import first_fit, models_for
from crosscast.prediction.trained import model_facts
from crosscast.report.corun import colocation_report, corun_forecast_report, translation_report


def corun(options: PredictCorun) -> None:
    """Run ``crosscast predict corun``."""
    models = models_for(options.model, "corun")
    mix = tuple(read_profile(file).isolated_run for file in (options.profile, *options.more))
    if len(mix) < 2:
        raise InputError.of(
            where=options.profile, expected="the profiles of at least 2 applications", found="1"
        )
    card = None if options.translate is None else read_translation(options.translate)

    def predicted(trained: TrainedCoRunModel) -> tuple[MixForecast, SuggestedMixes | None]:
        conditioned, suggestion = _with_probes(trained, options.probe, mix), None
        if card is None:
            (forecast,) = conditioned.predict([mix], level=options.level)
        else:
            (forecast,) = translated_forecasts(conditioned, card, [mix], level=options.level)
        if options.suggest_probes is not None:
            pairs = [(run, other) for run in mix for other in trained.card.runs]
            suggestion = conditioned.suggest_probes(options.suggest_probes, [mix], among=pairs)
        return forecast, suggestion

    trained, (forecast, suggestion) = first_fit(models, predicted, tell)
    warn_of([forecast])
    answer = _answer(forecast.to_dict(), trained, suggestion)
    if card is not None:
        answer["translation"] = {"from": card.source, "to": card.target, "line": card.to_dict()["line"]}
    show(
        options.output,
        lambda: answer,
        lambda: corun_forecast_report(forecast, trained.card, card, suggestion),
    )


def _answer(
    content: dict[str, object], trained: TrainedCoRunModel, suggestion: SuggestedMixes | None
) -> dict[str, object]:
    suggested = {} if suggestion is None else {"suggested_probes": suggestion.to_dict()}
    return {**content, "model": model_facts(trained.card), **suggested}


def _with_probes(
    trained: TrainedCoRunModel, words: Sequence[str], runs: Sequence[IsolatedRun]
) -> TrainedCoRunModel:
    """Condition a model on measured mixes of the given isolated runs or those of the training."""
    named = {run.qualified_name: run for run in reversed(runs)}
    probes = []
    for word in words:
        names, _, numbers = word.rpartition("=")
        try:
            slowdowns = [float(number) for number in numbers.split(",")]
        except ValueError:
            slowdowns = []
        mix = [named.get(name, name) for name in names.split(",")]
        if len(slowdowns) != len(mix):
            expected = "MIX=SLOWDOWNS such as bfs/small,fft/tiny=1.3,2.1"
            raise InputError.of(where="--probe", expected=expected, found=repr(word))
        probes.append((mix, slowdowns))
    try:
        return trained.with_probes(probes) if probes else trained
    except InputError as error:
        if error.where != "mix":
            raise
        raise InputError.of(where="--probe", expected=error.expected, found=error.found) from error


def colocate(options: ColocateJobs) -> None:
    """Run ``crosscast colocate``."""
    models = models_for(options.model, "corun")
    if options.conservative and options.max_slowdown is None:
        raise InputError.of(
            where="--conservative", expected="--max-slowdown, which it makes stricter", found="it alone"
        )
    files = (options.jobs, *options.more)
    isolated_runs = [read_profile(file).isolated_run for file in files]
    lengths_s = None if options.lengths is None else _numbers(options.lengths)

    def planned(trained: TrainedCoRunModel) -> tuple[ColocationPlan, SuggestedMixes | None]:
        conditioned, suggestion = _with_probes(trained, options.probe, isolated_runs), None
        if options.suggest_probes is not None:
            pairs = list(combinations(isolated_runs, 2))
            suggestion = conditioned.suggest_probes(options.suggest_probes, pairs, among=pairs)
        plan = choose_colocation(
            isolated_runs,
            conditioned,
            lengths=lengths_s,
            max_slowdown=options.max_slowdown,
            sure=options.conservative,
            memory_bytes=options.memory,
            group_size=options.group_size,
            level=options.level,
        )
        return plan, suggestion

    trained, (plan, suggestion) = first_fit(models, planned, tell)
    warn_of(plan.shared)
    answer = _answer(plan.to_dict(list(map(str, files))), trained, suggestion)
    names = _numbered([isolated_run.name for isolated_run in isolated_runs])
    show(options.output, lambda: answer, lambda: colocation_report(plan, names, trained.card, suggestion))


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise InputError.of(
            where="--lengths", expected="numbers separated by commas", found=repr(text)
        ) from error


def _numbered(names: Sequence[str]) -> list[str]:
    """Append a number to names of jobs that occur more than once."""
    return [
        name if names.count(name) == 1 else f"{name} #{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]


def translate(options: CorunTranslate) -> None:
    """Run ``crosscast corun translate``."""
    parts = [co_runs(dataset_named(folder)) for folder in (options.dataset, *options.more)]
    joined = CoRuns(
        parts[0].label,
        tuple(isolated_run for part in parts for isolated_run in part.isolated_runs),
        tuple(mix for part in parts for mix in part.mixes),
    )
    card = train_translation(shared_times(joined, options.source, options.target))
    write_translation(card, options.out)
    show(options.output, card.to_dict, lambda: translation_report(card))
    tell(f"wrote {options.out}")
