"""Clusters of bags by fairness and misses, and how tight they are (paper 004, figures 4 and 5).

The paper finds three clusters, which three microbenchmarks stand for, with a silhouette score of 0.75. It has
the misses of the bags themselves. Here a bag's share of misses is taken as the mean of its members' alone.
Where there are no counters, what its members do to the microbenchmark High, their traffic, or how much of the
device they use, all summed, stands in for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import MissingExtraError
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.tables.corun.bag import Bag

__all__ = ["COUNTS", "TIGHT", "Cluster", "Clusters", "cluster_bags"]

COUNTS = range(2, 9)
"""Numbers of clusters that are tried."""

PUBLISHED = 3
"""Clusters of the paper."""

TIGHT = 0.7
"""Silhouette score above which the paper calls clusters tightly bound."""

_FAIRNESS = "fairness"
_MOST = 2000
"""Bags that are clustered: silhouettes take the distances of all pairs."""

_SHARES = {"llc_miss": "LLC misses", "l1_miss": "L1 misses"}
_SUMS = {
    "inflicted_high": "slowdown of High, summed",
    "bandwidth_bytes_per_s": "bandwidth in bytes/s, summed",
    "memory_utilisation": "memory utilisation, summed",
    "utilisation": "utilisation, summed",
}
_PLACES: tuple[tuple[str, ...], ...] = (
    ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s", "memory_utilisation"),
    ("l1_miss", "bandwidth_bytes_per_s", "utilisation"),
)
"""What may be the second and the third feature, the published one first."""


@dataclass(frozen=True)
class Cluster:
    """One of the three clusters.

    Parameters
    ----------
    bags
        How many there are.
    means
        Mean of each feature.
    application, share
        The application most of whose bags are in this cluster, and the share of its bags that are.
    """

    bags: int
    means: Mapping[str, float]
    application: str
    share: float


@dataclass(frozen=True, eq=False)
class Clusters:
    """What k-means finds.

    Parameters
    ----------
    features
        What the bags were clustered by.
    values
        Features of ``n`` bags, of shape ``(n, f)``.
    labels
        Cluster of each, of three, by descending mean of the second feature, of shape ``(n,)``.
    silhouettes
        Silhouette of each among three clusters, of shape ``(n,)``.
    scores
        Mean silhouette by number of clusters.
    clusters
        The three.
    """

    features: tuple[str, ...]
    values: Reals
    labels: Integers
    silhouettes: Reals
    scores: Mapping[int, float]
    clusters: tuple[Cluster, ...]

    @property
    def best(self) -> int:
        """Number of clusters with the highest score."""
        return max(self.scores, key=lambda count: self.scores[count])

    @property
    def as_published(self) -> bool:
        """Whether three is best."""
        return self.best == PUBLISHED

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "features": list(self.features),
            "bags": len(self.values),
            "silhouette": {str(count): score for count, score in self.scores.items()},
            "best": self.best,
            "three_is_best": self.as_published,
            "clusters": [dict(vars(each)) for each in self.clusters],
        }


def cluster_bags(bags: Sequence[Bag], seed: int) -> Clusters | NotMade:
    """Cluster bags of any sizes, each feature scaled to 0 to 1, by k-means.

    Parameters
    ----------
    bags
        Bags; measurements of the same bag count once.
    seed
        Start of all random numbers.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    found = _different(bags)
    if len(found) <= COUNTS[-1]:
        return NotMade(f"clusters take more than {COUNTS[-1]} different bags with slowdowns")
    chosen: list[str] = []
    for names in _PLACES:
        counts = {name: _told(found, name) for name in names if name not in chosen}
        best = max(counts, key=lambda name: counts[name])
        if counts[best]:
            chosen.append(best)
    kept = [bag for bag in found if all(_value(bag, name) is not None for name in chosen)]
    if not chosen or len(kept) <= COUNTS[-1]:
        return NotMade("clusters take misses, bandwidth or utilisation of applications, and none is known")
    if len(kept) > _MOST:
        places = np.random.default_rng(seed).choice(len(kept), _MOST, replace=False)
        kept = [kept[place] for place in sorted(places.tolist())]
    values = np.array([[_value(bag, name) for name in (_FAIRNESS, *chosen)] for bag in kept], np.float64)
    span = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    if len(np.unique(scaled, axis=0)) <= COUNTS[-1]:
        return NotMade(f"clusters take more than {COUNTS[-1]} bags that differ in what is known of them")
    names = (_FAIRNESS, *({**_SHARES, **_SUMS}[name] for name in chosen))
    return _clusters(kept, names, values, scaled, seed)


def _clusters(
    bags: Sequence[Bag], names: tuple[str, ...], values: Reals, scaled: Reals, seed: int
) -> Clusters:
    try:
        from sklearn.cluster import KMeans
        from sklearn.metrics import silhouette_samples
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", "clustering") from error
    scores, three, silhouettes = {}, np.zeros(len(values), np.int64), np.zeros(len(values))
    with threadpool_limits(1):
        for count in COUNTS:
            labels = KMeans(count, n_init=10, random_state=seed % 2**31).fit_predict(scaled)
            each = silhouette_samples(scaled, labels)
            scores[count] = float(each.mean())
            if count == PUBLISHED:
                three, silhouettes = labels.astype(np.int64), each
    order = np.argsort([-values[three == label, 1].mean() for label in range(PUBLISHED)], kind="stable")
    three = np.argsort(order)[three]
    clusters = tuple(_cluster(bags, names, values, three == label, three) for label in range(PUBLISHED))
    return Clusters(names, values, three, silhouettes, scores, clusters)


def _cluster(
    bags: Sequence[Bag], names: Sequence[str], values: Reals, here: Any, labels: Integers
) -> Cluster:
    of_application: dict[str, list[bool]] = {}
    for bag, inside in zip(bags, here.tolist(), strict=True):
        for name in sorted(bag.applications):
            of_application.setdefault(name, []).append(inside)
    shares = {name: sum(flags) / len(flags) for name, flags in sorted(of_application.items())}
    most = max(shares, key=lambda name: shares[name])
    means = dict(zip(names, values[here].mean(axis=0).tolist(), strict=True))
    return Cluster(int(here.sum()), means, most, shares[most])


def _different(bags: Sequence[Bag]) -> list[Bag]:
    first: dict[tuple[tuple[str, str], ...], Bag] = {}
    for bag in bags:
        if not bag.failed and all(member.slowdown for member in bag.members):
            first.setdefault(tuple(sorted((solo.application, solo.size) for solo in bag.solos)), bag)
    return list(first.values())


def _value(bag: Bag, name: str) -> float | None:
    """A feature of a bag; ``None`` where it is not known."""
    if name == _FAIRNESS:
        slowdowns = [member.slowdown for member in bag.members if member.slowdown]
        return min(slowdowns) / max(slowdowns)
    known = [solo.features[name] for solo in bag.solos if name in solo.features]
    if len(known) < len(bag.members):
        return None
    return sum(known) / len(known) if name in _SHARES else sum(known)


def _told(bags: Sequence[Bag], name: str) -> int:
    """Of how many bags a feature is known; none if it is the same of all."""
    known = [value for bag in bags if (value := _value(bag, name)) is not None]
    return len(known) if len(set(known)) > 1 else 0
