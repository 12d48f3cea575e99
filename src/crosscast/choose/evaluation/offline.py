"""The published offline stage on all programs of a machine: its clusters and its tree, for people to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosscast.choose.evaluation.sampler import Sampler
from crosscast.choose.named_samples import sample_numbers
from crosscast.choose.samples import two_samples
from crosscast.configuration import Configuration
from crosscast.predict.configuration.published.model import PublishedModel, PublishedPredictor
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["OfflineStage", "offline_stage"]


@dataclass(frozen=True, eq=False)
class OfflineStage:
    """What the published model finds in all programs; no number of an evaluation comes from it.

    Parameters
    ----------
    samples
        The sample configurations.
    predictor
        The published model, fitted to all programs.
    """

    samples: tuple[int, ...]
    predictor: PublishedPredictor

    def to_dict(self) -> dict[str, Any]:
        """The clusters and the tree as an object of JSON; no clusters where there is nothing to cluster."""
        found = self.predictor.clusters
        groups = [] if found.nothing_to_cluster else [[str(each) for each in of] for of in found.members]
        return {
            "note": found.note,
            "nothing_to_cluster": found.nothing_to_cluster,
            "least_correlation": found.least_correlation,
            "most_correlation": found.most_correlation,
            "pairs_without_correlation": found.undefined,
            "clusters": groups,
            "tree": None if found.nothing_to_cluster else self.predictor.tree.text(),
        }


def offline_stage(
    surfaces: Surfaces,
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    seed: int = 0,
) -> OfflineStage:
    """Fit the published model to all programs (Bailey et al. 2014, section III-B).

    Parameters
    ----------
    surfaces
        Times and powers of one machine.
    samples
        The sample configurations, or what chooses them by all kernels.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If no kernel ran at all sample configurations, or one of these is not known or named twice.
    """
    numbers = samples(surfaces, seed) if callable(samples) else sample_numbers(surfaces.space, samples)
    return OfflineStage(numbers, PublishedModel().fit(surfaces, numbers, seed))
