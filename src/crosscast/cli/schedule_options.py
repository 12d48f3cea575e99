"""What ``crosscast schedule`` was asked: policies, and names of options in messages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosscast.cli.options import names_in
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.cluster.policy import Policy

__all__ = ["elapsed", "policies_of", "prepare_simulator", "refuse_unused"]


def policies_of(policy: str, queue: str | None, backfill: str | None) -> list[Policy]:
    """All combinations of what was typed; nothing is backfilled with ``fcfs``.

    Parameters
    ----------
    policy, queue, backfill
        Names with commas between.

    Raises
    ------
    InputError
        If a name is unknown, or orders of backfilling are given and no policy backfills.
    """
    from crosscast.cluster.policy import policy_named

    policies = names_in("--policy", policy)
    queues = [None] if queue is None else names_in("--queue", queue)
    backfills = [None] if backfill is None else names_in("--backfill", backfill)
    found = [
        policy_named(name, first, second)
        for name in policies
        for first in queues
        for second in ([None] if name == "fcfs" and "easy" in policies else backfills)
    ]
    return list(dict.fromkeys(found))


def refuse_unused(given: Mapping[str, object], reason: str) -> None:
    """Refuse options that would be passed over.

    Parameters
    ----------
    given
        Value of each option; ``None`` or false if it was not typed.
    reason
        Why there is nothing to say.

    Raises
    ------
    InputError
        If one was typed.
    """
    for option, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{option}: {reason}; leave the option out")


def prepare_simulator() -> None:
    """Have the simulator compiled, and say so where that takes a while.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    """
    from crosscast.cluster.experiment.timed import prepare

    prepare(lambda text: print(text, file=sys.stderr, flush=True))


def elapsed(option: str, text: str | None) -> float | None:
    """Read a time since the first submission, in seconds; ``None`` where nothing was typed.

    Raises
    ------
    InputError
        If it is no time.
    """
    if text is None:
        return None
    from crosscast.units import parse_elapsed

    try:
        return parse_elapsed(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error
