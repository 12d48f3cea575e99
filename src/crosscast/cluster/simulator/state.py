"""What a simulation works on and what it has come to: plain arrays, so that it may pause at any point."""

from __future__ import annotations

from typing import NamedTuple

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.simulator.binding import Binding
from crosscast.cluster.simulator.heap import Heap
from crosscast.cluster.simulator.running import Running
from crosscast.cluster.simulator.trees import Trees

__all__ = ["HEAD", "INDEXED", "NEXT", "State"]

NEXT, HEAD, INDEXED = range(3)
"""Of `State.at`: the job to be submitted next; no job before this one waits, if the first come is the head;
the job to be put in the trees next."""


class State(NamedTuple):
    """A simulation of ``n`` jobs on ``m`` machines.

    Parameters
    ----------
    submit, procs
        As in `Jobs`.
    run, estimate
        Times of shape ``(n, m)``, or ``(n, 1)`` if they are the same on all machines that matter.
    choices
        Places of the machines of each job, the best first, of shape ``(n, k)``, −1 where there are no more;
        with ``k`` = 1, the one that it is bound to, if it is known yet.
    members
        Which machines each set has that jobs may run on, of shape ``(c, m)``.
    widths
        Different numbers of processors of jobs, ascending; the trees of a set of machines are by width.
    at
        Positions, see `NEXT`.
    start, end, reserved, machine
        As in `Schedule`; not a number (−1) until known.
    ends
        Running jobs by when they end.
    queue
        Waiting jobs in the order R1, and some that have passed the head.
    queue_key
        Key of each job in that order; of no rows if it is first come, first served.
    running, trees, binding
        See there; without keys in the trees nobody passes the head, and without predictions nobody is bound.
    """

    submit: Reals
    procs: Integers
    run: Reals
    estimate: Reals
    choices: Integers
    members: Integers
    widths: Integers
    at: Integers
    start: Reals
    end: Reals
    reserved: Reals
    machine: Integers
    ends: Heap
    queue: Heap
    queue_key: Reals
    running: Running
    trees: Trees
    binding: Binding
