"""``crosscast models``: the models that have a name."""

from __future__ import annotations

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Output

__all__ = ["models"]


@runs(lambda: commands.models.models)
def models(name: str | None = None, /, *, output: Output = OUTPUT) -> None:
    """List the models that come with Crosscast and your own, or say all about one.

    Your own are folders in `XDG_DATA_HOME/crosscast/models`, by default `~/.local/share/crosscast/models`.

    Parameters
    ----------
    name
        Say what this one was trained on, how good it is on unseen applications, its licence and citation.
    """
