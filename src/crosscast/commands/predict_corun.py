"""``crosscast predict corun``: times and slowdowns of applications that share a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosscast.answers import model_facts
from crosscast.cli.predict import PredictCorunOptions
from crosscast.commands.output import check_output, show
from crosscast.commands.status import tell, warn_of
from crosscast.data.corun import Solo
from crosscast.data.isolated_runs import read_profile
from crosscast.errors import InputError
from crosscast.forecasting import first_fit, models_for
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.forecast import MixForecast
from crosscast.prediction.corun.probes import SuggestedMixes
from crosscast.prediction.corun.translation import read_translation, translated_forecasts
from crosscast.report.corun import corun_forecast_report


def corun(profile: Path, /, *more: Path, options: PredictCorunOptions) -> None:
    """Run ``crosscast predict corun``."""
    check_output(options.output)
    models = models_for(options.model, "corun")
    mix = tuple(isolated_runs((profile, *more)))
    if len(mix) < 2:
        raise InputError.of(where=profile, expected="the profiles of at least 2 applications", found="1")
    card = None if options.translate is None else read_translation(options.translate)

    def predicted(trained: TrainedCoRunModel) -> tuple[MixForecast, SuggestedMixes | None]:
        told, suggestion = with_probes(trained, options.probe, mix), None
        if card is None:
            (found,) = told.predict([mix], level=options.level)
        else:
            (found,) = translated_forecasts(told, card, [mix], level=options.level)
        if options.suggest_probes is not None:
            pairs = [(run, other) for run in mix for other in trained.card.runs]
            suggestion = told.suggest_probes(options.suggest_probes, [mix], among=pairs)
        return found, suggestion

    trained, (found, suggestion) = first_fit(models, predicted, tell)
    warn_of([found])
    told = {**found.to_dict(), "model": model_facts(trained.card)}
    if suggestion is not None:
        told["suggested_probes"] = suggestion.to_dict()
    if card is not None:
        told["translation"] = {"from": card.source, "to": card.target, "line": card.to_dict()["line"]}
    show(options.output, lambda: told, lambda: corun_forecast_report(found, trained.card, card, suggestion))


def with_probes(trained: TrainedCoRunModel, words: Sequence[str], runs: Sequence[Solo]) -> TrainedCoRunModel:
    """A model that knows measured mixes, which name isolated runs or those of the training."""
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
            raise InputError.of(where="--probe", expected=f"{expected}", found=repr(word))
        probes.append((mix, slowdowns))
    return trained.with_probes(probes) if probes else trained


def isolated_runs(files: Sequence[Path]) -> list[Solo]:
    """Isolated runs of applications, from files that ``crosscast corun profile`` wrote."""
    return [read_profile(file).solo for file in files]
