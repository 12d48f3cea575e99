"""``crosscast models``: the models that have a name."""

from __future__ import annotations

from importlib.metadata import entry_points

from crosscast.cli.options import OUTPUT, Output
from crosscast.errors import InputError

__all__ = ["models"]


def models(name: str | None = None, /, *, output: Output = OUTPUT) -> None:
    """List the models that come with Crosscast and your own, or say all about one.

    Your own are folders in `XDG_DATA_HOME/crosscast/models`, by default `~/.local/share/crosscast/models`.

    Parameters
    ----------
    name
        Say what this one was trained on, how good it is on unseen applications, its licence and citation.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.prediction.named_models import PLUGINS, load_model, named_models
    from crosscast.report.models import model_report, models_report

    output.check()
    found = {each.name: each for each in named_models()}
    if name is None:
        plugged = {each.name: each.dist.name if each.dist else "" for each in entry_points(group=PLUGINS)}
        output.show(
            lambda: {"models": [each.to_dict() for each in found.values()], "of_packages": plugged},
            lambda: models_report(list(found.values()), plugged),
        )
        return
    if name not in found:
        raise InputError(f"NAME: expected one of {', '.join(found)}, found {name!r}")
    trained = load_model(found[name].folder)
    output.show(
        lambda: {**found[name].to_dict(), "card": trained.card.to_dict()},
        lambda: model_report(found[name], trained.card),
    )
