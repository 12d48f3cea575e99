"""What is looked at of each member of a mix: how it and the others do at levels of MPS."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError

__all__ = ["feature_count", "features_of", "own_and_mean"]


def feature_count(levels: int) -> int:
    """Number of features where a mix was run at so many levels."""
    return 5 * levels + 1


def own_and_mean(levels: int) -> slice:
    """Those of them that are the member's own and the mean of the others."""
    return slice(0, 2 * levels)


def features_of(shared: Reals, judged: Flags) -> Reals:
    """Features of the members of ``n`` mixes that are judged.

    Logarithms are taken, and centred for each member, as its times are known relative to each other alone. A
    member's features do not depend on the order of the others.

    Parameters
    ----------
    shared
        Relative time of each member at each level, of shape ``(n, k, l)``, with ``k`` at least 2.
    judged
        Whether each member is judged, of shape ``(n, k)``; those that are not count among the others.

    Returns
    -------
    array
        A row for each member that is judged, in the order of mixes and members: its own centred logarithms,
        the mean, maximum, minimum and standard deviation of those of the others, and the share of the members
        that are judged; of shape ``(r, 5 l + 1)``.

    Raises
    ------
    InputError
        If the shapes differ, there are no others, or a time is not above 0.
    """
    if shared.ndim != 3 or shared.shape[1] < 2 or judged.shape != shared.shape[:2]:
        raise InputError(
            f"shared: expected the shape (n, k, l), k at least 2, and judged (n, k), found {shared.shape} "
            f"and {judged.shape}"
        )
    if not (np.isfinite(shared) & (shared > 0)).all():
        raise InputError("shared: expected times above 0, found others")
    logs = np.log(shared)
    logs -= logs.mean(axis=2, keepdims=True)
    members = [_features_of_member(logs, place) for place in range(shared.shape[1])]
    count = np.broadcast_to(judged.mean(axis=1)[:, None, None], (*judged.shape, 1))
    features: Reals = np.concatenate([np.stack(members, axis=1), count], axis=2)[judged]
    return features


def _features_of_member(logs: Reals, place: int) -> Reals:
    # Sorted, so that sums do not depend on the order in which others are.
    others = np.sort(np.delete(logs, place, axis=1), axis=1)
    return np.concatenate(
        [
            logs[:, place],
            others.mean(axis=1),
            others.max(axis=1),
            others.min(axis=1),
            others.std(axis=1),
        ],
        axis=1,
    )
