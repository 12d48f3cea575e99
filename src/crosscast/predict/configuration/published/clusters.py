"""What the offline stage found: the clusters, their members, and whether there was anything to cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import KernelAt
from crosscast.predict.state import kept_integers, kept_names, kept_reals

__all__ = ["Clusters", "clusters_of"]

_MANY = 1 << 31


@dataclass(frozen=True)
class Clusters:
    """Clusters of training kernels.

    Parameters
    ----------
    members
        The kernels of each cluster.
    asked
        How many clusters were asked for; None where the number was chosen inside the training data.
    least_correlation, most_correlation
        Range of the rank correlations of two kernels' frontiers; None where no two share two configurations.
    undefined
        How many pairs of kernels share fewer than two configurations.
    """

    members: tuple[tuple[KernelAt, ...], ...]
    asked: int | None
    least_correlation: float | None
    most_correlation: float | None
    undefined: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of kernels of each."""
        return tuple(len(each) for each in self.members)

    @property
    def nothing_to_cluster(self) -> bool:
        """Whether the frontiers of all kernels have the same order: tau is 1 throughout."""
        return self.least_correlation == 1 and not self.undefined

    @property
    def note(self) -> str:
        """One sentence for people."""
        if self.nothing_to_cluster:
            return "nothing to cluster: Kendall's tau is 1 for every pair of kernels, so there is one cluster"
        count = len(self.members)
        sizes = ", ".join(str(each) for each in self.sizes)
        start = f"{count} cluster{'s' if count != 1 else ''} of {sizes} kernels"
        if self.asked is None:
            return f"{start}, as many as predict best inside the training data"
        if self.asked == count:
            return f"{start}, as many as asked for"
        return f"{start} instead of the {self.asked} asked for, as there are no more kernels"

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        kernels = [each for of in self.members for each in of]
        known = [each for each in (self.least_correlation, self.most_correlation) if each is not None]
        return {
            "member_application": np.array([each.application for each in kernels], np.str_),
            "member_kernel": np.array([each.kernel for each in kernels], np.str_),
            "member_size": np.array([each.size for each in kernels], np.str_),
            "cluster_sizes": np.array(self.sizes, np.int64),
            "clusters_asked": np.array([] if self.asked is None else [self.asked], np.int64),
            "correlation_range": np.array(known, np.float64),
            "correlations_undefined": np.array([self.undefined], np.int64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Clusters:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        columns = [kept_names(state, f"member_{name}") for name in ("application", "kernel", "size")]
        sizes = kept_integers(state, "cluster_sizes", 1, (1, _MANY))
        if {len(each) for each in columns} != {int(sizes.sum())} or not len(sizes):
            raise InputError(
                f"model: cluster_sizes: expected those of {len(columns[0])} kernels, found a sum of "
                f"{sizes.sum()}"
            )
        asked = kept_integers(state, "clusters_asked", 1, (1, _MANY))
        between = kept_reals(state, "correlation_range", 1)
        undefined = kept_integers(state, "correlations_undefined", 1, (0, _MANY))
        if len(asked) > 1 or len(between) not in (0, 2) or len(undefined) != 1:
            raise InputError(
                f"model: correlation_range: expected two numbers or none, found {len(between)}, and "
                f"{len(asked)} and {len(undefined)} numbers of clusters and pairs"
            )
        kernels = [KernelAt(*each) for each in zip(*columns, strict=True)]
        ends = np.cumsum(sizes)
        return cls(
            tuple(tuple(kernels[end - size : end]) for end, size in zip(ends, sizes, strict=True)),
            int(asked[0]) if len(asked) else None,
            float(between[0]) if len(between) else None,
            float(between[1]) if len(between) else None,
            int(undefined[0]),
        )


def clusters_of(
    kernels: tuple[KernelAt, ...], clusters: Integers, correlations: Reals, asked: int | None
) -> Clusters:
    """What was found, for ``n`` kernels.

    Parameters
    ----------
    kernels
        The kernels.
    clusters
        ``(n,)`` Their clusters.
    correlations
        ``(n, n)`` Rank correlations of their frontiers.
    asked
        How many clusters were asked for, if that was said.
    """
    pairs = correlations[np.triu_indices(len(kernels), 1)]
    known = pairs[np.isfinite(pairs)]
    members = tuple(
        tuple(kernels[row] for row in np.flatnonzero(clusters == number))
        for number in range(int(clusters.max()) + 1)
    )
    return Clusters(
        members,
        asked,
        float(known.min()) if known.size else None,
        float(known.max()) if known.size else None,
        len(pairs) - len(known),
    )
