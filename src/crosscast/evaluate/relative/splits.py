"""Which runs a model learns from, and which it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from crosscast.arrays import Flags, Integers
from crosscast.errors import InputError
from crosscast.predict.relative.observations import Observations

__all__ = ["FOLDS", "PUBLISHED", "SPLITS", "TEST_SHARE", "RelativeFold", "RelativeSplit", "split_named"]

PUBLISHED = "published"
"""The split of paper 003: rows at random, whatever they are of."""

TEST_SHARE = 0.1
"""Share of the rows that `PUBLISHED` tests with (section VI-A)."""

FOLDS = 5
"""Folds within the others (section VI-A), and of ``leave-configuration-out``."""


@dataclass(frozen=True, eq=False)
class RelativeFold:
    """One way to hold rows out.

    Parameters
    ----------
    held_out
        What it is, for people.
    train, test
        Rows that models learn from, and those that they predict.
    """

    held_out: str
    train: Integers
    test: Integers


@dataclass(frozen=True)
class RelativeSplit:
    """A way to hold groups out, each once.

    Parameters
    ----------
    name
        Its name on the command line.
    noun
        What is held out, in the plural.
    group
        Name of the group of each row, of length ``r``.
    folds
        Into how many folds groups are dealt at random; ``None`` for a fold a group.
    resampled
        Name of the group of each row that a bootstrap draws, of length ``r``.
    reported
        Name of the group of each row that scores are told of, of length ``r``.
    """

    name: str
    noun: str
    group: Callable[[Observations], Sequence[str]]
    folds: int | None
    resampled: Callable[[Observations], Sequence[str]]
    reported: Callable[[Observations], Sequence[str]]

    def folds_of(self, observations: Observations, seed: int) -> tuple[RelativeFold, ...]:
        """The folds; each row is tested in one of them, except with `PUBLISHED`, which tests some rows.

        Parameters
        ----------
        observations
            All rows.
        seed
            Start of the random numbers that deal.

        Raises
        ------
        InputError
            If there are fewer than two groups.
        """
        groups = np.array(self.group(observations))
        names = np.unique(groups)
        if len(names) < 2:
            found = f"{len(names)} ({names[0]})" if len(names) else "none"
            raise InputError(f"{self.name}: expected at least 2 {self.noun} to split by, found {found}")
        if self.name == PUBLISHED:
            return _published(len(observations), seed)
        if self.folds is None:
            return tuple(_fold(str(name), groups == name) for name in names)
        dealt = np.random.default_rng(seed).permutation(len(names))
        count = min(self.folds, len(names))
        return tuple(
            _fold(f"fold {place + 1}", np.isin(groups, names[dealt[place::count]])) for place in range(count)
        )


def _fold(name: str, held_out: Flags) -> RelativeFold:
    return RelativeFold(name, np.flatnonzero(~held_out), np.flatnonzero(held_out))


def _published(rows: int, seed: int) -> tuple[RelativeFold, ...]:
    """The test, and after it the folds of the cross-validation within the rows that are left."""
    order = np.random.default_rng(seed).permutation(rows).astype(np.int64)
    held_out = max(1, round(TEST_SHARE * rows))
    test, rest = order[:held_out], order[held_out:]
    count = min(FOLDS, len(rest))
    within = [
        RelativeFold(
            f"validation {place + 1}",
            np.sort(np.concatenate([rest[other::count] for other in range(count) if other != place])),
            np.sort(rest[place::count]),
        )
        for place in range(count if count > 1 else 0)
    ]
    return (RelativeFold("test", np.sort(rest), np.sort(test)), *within)


def _rows(observations: Observations) -> Sequence[str]:
    return [str(row) for row in range(len(observations))]


def _applications(observations: Observations) -> Sequence[str]:
    return observations.application


def _kernels(observations: Observations) -> Sequence[str]:
    return _joined(observations.application, observations.kernel)


def _works(observations: Observations) -> Sequence[str]:
    return _joined(observations.application, observations.kernel, observations.size)


def _scales(observations: Observations) -> Sequence[str]:
    return observations.scale


def _sources(observations: Observations) -> Sequence[str]:
    return observations.source


def _joined(*names: Sequence[str]) -> list[str]:
    return ["/".join(each) for each in zip(*names, strict=True)]


SPLITS: Mapping[str, RelativeSplit] = MappingProxyType(
    {
        split.name: split
        for split in (
            RelativeSplit(PUBLISHED, "rows", _rows, None, _works, _applications),
            RelativeSplit("leave-configuration-out", "kernels at a size", _works, FOLDS, _works, _kernels),
            RelativeSplit(
                "leave-application-out", "applications", _applications, None, _applications, _applications
            ),
            RelativeSplit("leave-kernel-out", "kernels", _kernels, None, _kernels, _kernels),
            RelativeSplit("leave-machine-out", "devices with counters", _sources, None, _kernels, _sources),
            RelativeSplit("leave-scale-out", "scales", _scales, None, _kernels, _scales),
        )
    }
)
"""The splits by name."""


def split_named(name: str) -> RelativeSplit:
    """A split.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {name!r}")
    return SPLITS[name]
