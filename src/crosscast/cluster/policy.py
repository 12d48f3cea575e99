"""Order of the queue, and which jobs may pass its head (R1 and R2 of Lelong, Reis and Trystram 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from crosscast.errors import InputError

__all__ = ["ORDERS", "Order", "Policy", "policy_named"]

Order = Literal["fcfs", "lcfs", "shortest", "longest", "narrowest", "widest", "smallest-area", "largest-area"]
"""First or last come first; by estimated time; by processors; by their product. Ties: first come first."""

ORDERS: tuple[str, ...] = get_args(Order)


@dataclass(frozen=True)
class Policy:
    """How a queue is worked off.

    Parameters
    ----------
    queue
        Order of the queue, R1.
    backfill
        Order in which jobs behind the head are tried that do not delay it (EASY), R2; ``None`` if none may
        pass it.
    """

    queue: Order = "fcfs"
    backfill: Order | None = "fcfs"


def policy_named(name: str, queue: str | None = None, backfill: str | None = None) -> Policy:
    """The policy ``fcfs`` (nobody passes the head) or ``easy``, first come first served unless said.

    Raises
    ------
    InputError
        If there is no such policy or order, or ``fcfs`` is to backfill.
    """
    if name not in ("fcfs", "easy"):
        raise InputError(f"policy: expected fcfs or easy, found {name!r}")
    for argument, order in (("queue", queue), ("backfill", backfill)):
        if order is not None and order not in ORDERS:
            raise InputError(f"{argument}: expected one of {', '.join(ORDERS)}, found {order!r}")
    if name == "fcfs" and backfill is not None:
        raise InputError(
            f"backfill: expected policy easy, as with fcfs nobody passes the head, found {backfill!r}"
        )
    first: Order = queue or "fcfs"  # type: ignore[assignment]
    second: Order | None = (backfill or "fcfs") if name == "easy" else None  # type: ignore[assignment]
    return Policy(first, second)
