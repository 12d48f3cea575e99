"""Machines of a cluster, as a scheduler sees them: names and numbers of processors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.errors import InputError

__all__ = ["Machine", "check_machines"]


@dataclass(frozen=True)
class Machine:
    """A machine with a pool of equal processors (or nodes: whatever its jobs are counted in).

    Parameters
    ----------
    name
        Its name.
    procs
        How many it has; at least 1.
    has_gpu
        Whether users take it for a GPU machine.
    device
        Device of the dataset whose times jobs have here; by default the one of its name.
    """

    name: str
    procs: int
    has_gpu: bool = False
    device: str | None = None


def check_machines(machines: Sequence[Machine]) -> None:
    """Refuse machines that cannot be told apart, or have no processors.

    Raises
    ------
    InputError
        If there are none, two of one name, or one without processors.
    """
    if not machines:
        raise InputError("machines: expected at least one, found none")
    names = [machine.name for machine in machines]
    for machine in machines:
        if machine.procs < 1:
            raise InputError(f"machines: {machine.name}: procs: expected at least 1, found {machine.procs}")
        if names.count(machine.name) > 1:
            raise InputError(f"machines: expected each name once, found {machine.name!r} more than once")
