"""``crosscast models``: the models that have a name."""

from __future__ import annotations

from importlib.metadata import entry_points

from crosscast.cli.options import Output
from crosscast.commands.output import check_output, show
from crosscast.errors import InputError
from crosscast.prediction.named_models import PLUGINS, load_model, named_models
from crosscast.report.catalogues import model_report, models_report


def models(name: str | None, /, *, output: Output) -> None:
    """Run ``crosscast models``."""
    check_output(output)
    found = {each.name: each for each in named_models()}
    if name is None:
        plugged = {each.name: each.dist.name if each.dist else "" for each in entry_points(group=PLUGINS)}
        show(
            output,
            lambda: {"models": [each.to_dict() for each in found.values()], "of_packages": plugged},
            lambda: models_report(list(found.values()), plugged),
        )
        return
    if name not in found:
        raise InputError.of(where="NAME", expected=f"one of {', '.join(found)}", found=repr(name))
    trained = load_model(found[name].folder)
    show(
        output,
        lambda: {**found[name].to_dict(), "card": trained.card.to_dict()},
        lambda: model_report(found[name], trained.card),
    )
