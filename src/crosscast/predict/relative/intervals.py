"""How wrong a model of relative vectors was on groups that it had not seen, and how far intervals reach so.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors hang together, so that each group weighs the same, however many
runs it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_names, kept_reals
from crosscast.predict.intervals import group_reach, group_weights, most_level


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of ``n`` vectors of ``d`` devices, each predicted by a model fitted without its group."""

    # Logarithm of the predicted over the true entry, both relative to the slowest device of their vector, of
    # shape `(n, d)`
    log_error: Reals
    group: Integers  # Number of the group of each, in `groups`, of shape `(n,)`
    source: Integers  # Number of the device that each was counted on, in `sources`, of shape `(n,)`
    groups: tuple[str, ...]  # Names; each of them has a vector
    sources: tuple[str, ...]

    @property
    def weights(self) -> Reals:
        """Weight of each vector: together 1, and the same for each group, of shape ``(n,)``."""
        return group_weights(self.group)

    @property
    def most_level(self) -> float:
        """The highest probability that an interval can be given: ``g / (g + 1)`` with ``g`` groups."""
        return most_level(len(self.groups))

    def of_source(self, source: str) -> HeldOut:
        """The errors of what was counted on a device; all of them if there are none."""
        if source not in self.sources:
            return self
        own = self.source == self.sources.index(source)
        present, group = np.unique(self.group[own], return_inverse=True)
        return HeldOut(
            self.log_error[own],
            group.astype(np.int64),
            np.zeros(int(own.sum()), np.int64),
            tuple(self.groups[number] for number in present),
            (source,),
        )

    def without(self, group: int) -> HeldOut:
        """The errors of the other groups."""
        kept = self.group != group
        return HeldOut(
            self.log_error[kept],
            self.group[kept] - (self.group[kept] > group),
            self.source[kept],
            tuple(name for number, name in enumerate(self.groups) if number != group),
            self.sources,
        )

    def relative_errors(self, base: int | None) -> Reals:
        """Errors of times over that on a device, of shape ``(n, d)``."""
        if base is None:
            return self.log_error
        errors: Reals = self.log_error - self.log_error[:, [base]]
        return errors

    def reach(self, level: float, base: int | None) -> Reals:
        """How far intervals reach to both sides, in logarithms, of shape ``(d,)``.

        As `crosscast.predict.intervals.group_reach` says, of absolute errors.
        """
        return group_reach(np.abs(self.relative_errors(base)), self.group, level)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "log_error": self.log_error,
            "group": self.group,
            "source": self.source,
            "groups": np.array(self.groups, dtype=np.str_),
            "sources": np.array(self.sources, dtype=np.str_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> HeldOut:
        """Make it from its arrays."""
        groups, sources = kept_names(state, "groups"), kept_names(state, "sources")
        found = cls(
            kept_reals(state, "log_error", 2),
            kept_integers(state, "group", 1, (0, len(groups))),
            kept_integers(state, "source", 1, (0, len(sources))),
            groups,
            sources,
        )
        n = len(found.log_error)
        if not n or len(found.group) != n or len(found.source) != n:
            raise InputError(
                f"model: held-out errors: expected a group and a source for each of them, found {n} errors, "
                f"{len(found.group)} groups and {len(found.source)} sources"
            )
        for name, numbers, count in (
            ("group", found.group, len(groups)),
            ("source", found.source, len(sources)),
        ):
            if len(np.unique(numbers)) < count:
                raise InputError(f"model: {name}: expected errors of each of {count} {name}s, found fewer")
        return found


@dataclass(frozen=True, eq=False)
class RelativeForecast:
    """What is predicted of ``r`` runs on ``d`` devices; times relative to one of these, where less is
    better.
    """

    devices: tuple[str, ...]  # Keys of the devices
    relative_to: str | None  # Device that times are relative to; `None` for the slowest of each run
    # Time over that on the device that it is relative to, and limits of its interval, of shape `(r, d)`. On
    # that device all are 1. Relative to the slowest, a predicted vector is scaled so that its largest entry
    # is 1, which a model need not give; and as any device may be the slowest in truth, the interval of the
    # one that is predicted so is not of width 0, but none reaches above 1
    centre: Reals
    low: Reals
    high: Reals
    level: float  # Probability that was asked for
    # Probability that intervals have, of shape `(r,)`: less than `level` where there are too few groups
    reached: Reals
    order: Integers  # Places of the devices, fastest first, of shape `(r, d)`
    # Probability that each device is the fastest, of shape `(r, d)`; their sum over a row is 1
    fastest: Reals
    same_order: Reals  # Probability that the whole order is as predicted, of shape `(r,)`
    warnings: tuple[tuple[str, ...], ...]  # What makes each doubtful; sentences without a full stop

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.centre)

    def in_order(self, row: int) -> tuple[str, ...]:
        """The devices of a run, fastest first."""
        return tuple(self.devices[place] for place in self.order[row])


def check_level(level: float) -> None:
    """Refuse what is no probability of an interval."""
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")


def forecast_of(
    devices: Sequence[str],
    predicted: Reals,
    sources: Sequence[str],
    held_out: HeldOut,
    *,
    relative_to: str | None = None,
    level: float = 0.9,
    warnings: Sequence[Sequence[str]] | None = None,
) -> RelativeForecast:
    """Put intervals and probabilities to predicted vectors.

    Intervals are conformal (see `HeldOut.reach`): relative to a device, by the errors of such ratios.
    Probabilities are shares of the held-out errors, in which groups weigh the same: each error is taken as
    the one that was made this time. For both, the errors are those of what was counted on the same device,
    if there are any.
    """
    check_level(level)
    if relative_to is not None and relative_to not in devices:
        raise InputError(f"relative_to: expected one of {', '.join(devices)}, found {relative_to!r}")
    if not (np.isfinite(predicted) & (predicted > 0)).all():
        raise InputError("model: expected it to predict numbers above 0, found others")
    base = None if relative_to is None else list(devices).index(relative_to)
    logs = np.log(predicted)
    logs -= logs.max(axis=1, keepdims=True) if base is None else logs[:, [base]]
    order = np.argsort(logs, axis=1, kind="stable").astype(np.int64)
    reach, fastest = np.empty_like(logs), np.empty_like(logs)
    same_order, reached = np.empty(len(logs)), np.empty(len(logs))
    for source in dict.fromkeys(sources):
        rows = np.flatnonzero([each == source for each in sources])
        errors = held_out.of_source(source)
        reach[rows] = errors.reach(level, base)
        reached[rows] = min(level, errors.most_level)
        for row in rows:
            fastest[row], same_order[row] = _shares(logs[row], order[row], errors)
    most = np.inf if base is not None else 1.0
    said = warnings if warnings is not None else [()] * len(logs)
    return RelativeForecast(
        devices=tuple(devices),
        relative_to=relative_to,
        centre=np.exp(logs),
        low=np.exp(logs - reach),
        high=np.minimum(np.exp(logs + reach), most),
        level=level,
        reached=reached,
        order=order,
        fastest=fastest,
        same_order=same_order,
        warnings=tuple((*one, *_too_few(level, sure)) for one, sure in zip(said, reached, strict=True)),
    )


def _shares(logs: Reals, order: Integers, errors: HeldOut) -> tuple[Reals, float]:
    """How often each device is the fastest, and the order the same, if an error is one of those."""
    truths = logs - errors.log_error
    best = truths == truths.min(axis=1, keepdims=True)
    same = (np.diff(truths[:, order], axis=1) >= 0).all(axis=1)
    shares = errors.weights @ (best / best.sum(axis=1, keepdims=True))
    return shares / shares.sum(), min(float(errors.weights @ same), 1.0)


def _too_few(level: float, reached: float) -> tuple[str, ...]:
    if reached >= level:
        return ()
    groups = round(reached / (1 - reached))
    needed = int(np.ceil(level / (1 - level) - 1e-6))
    return (
        f"the intervals are {100 * reached:.3g} % intervals: the model was tested on {groups} groups of runs "
        f"that it had not seen, and {100 * level:g} % takes {needed}",
    )
