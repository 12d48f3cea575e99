"""All studies of an evaluation of co-running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.evaluate.corun.studies.clusters import Clusters, cluster_bags
from crosscast.evaluate.corun.studies.combinations import (
    CombinationStudy,
    performance_combinations,
    power_combinations,
)
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.evaluate.corun.studies.paths import PathStudy, performance_paths, power_paths
from crosscast.evaluate.corun.studies.sizes import SizeStudy, sizes_study
from crosscast.evaluate.corun.studies.translations import TranslationStudy, translation_studies
from crosscast.evaluate.processes import Progress
from crosscast.predict.corun.model import CoRunModel
from crosscast.predict.corun.published.model import Published
from crosscast.predict.corun.registry import BASELINES, MODELS, models_named
from crosscast.tables.corun.view import CoRuns

__all__ = ["CoRunStudies", "make_studies"]


@dataclass(frozen=True, eq=False)
class CoRunStudies:
    """What paper 004 looks at besides, or why it could not be.

    Parameters
    ----------
    clusters
        Figures 4 and 5.
    performance, power
        Combinations of features: figures 7 and 8, and table 7.
    performance_paths, power_paths
        Figures 9 and 10.
    sizes
        Section 8.
    translations
        Section 9, to each other device.
    """

    clusters: Clusters | NotMade
    performance: CombinationStudy | NotMade
    power: CombinationStudy | NotMade
    performance_paths: PathStudy | NotMade
    power_paths: PathStudy | NotMade
    sizes: SizeStudy | NotMade
    translations: tuple[TranslationStudy, ...] | NotMade

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON; what could not be made says why."""
        return {
            name: [one.to_dict() for one in each] if isinstance(each, tuple) else each.to_dict()
            for name, each in vars(self).items()
        }


def make_studies(
    co_runs: CoRuns,
    chosen: CoRuns,
    models: Sequence[CoRunModel],
    seed: int,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunStudies:
    """Make all studies that a dataset allows.

    Parameters
    ----------
    co_runs
        Bags of all devices.
    chosen
        Those of the device that is looked at.
    models
        Models that were asked for. Their predictions of larger bags are compared with those of the published
        decision tree and of models that are not published; the times of the first are translated.
    seed, progress, cache, jobs
        As `evaluate_corun` has them.

    Raises
    ------
    InputError
        If a model cannot be fitted, or the cache cannot be written.
    """
    way: dict[str, Any] = {"progress": progress, "cache": cache, "jobs": jobs}
    tree = Published("decision-tree")
    # What is not published may predict any size.
    others = models_named([name for name in MODELS if name not in BASELINES])
    asked = [tree, *models, *(each for each in others if not isinstance(each, Published))]
    compared = list({model.name: model for model in asked}.values())
    return CoRunStudies(
        clusters=cluster_bags(chosen.bags, seed),
        performance=performance_combinations(chosen, seed, **way),
        power=power_combinations(chosen, seed, **way),
        performance_paths=performance_paths(chosen, seed),
        power_paths=power_paths(chosen, seed),
        sizes=sizes_study(chosen, compared, seed, **way),
        translations=translation_studies(
            co_runs, chosen.bags[0].device, models[0] if models else tree, seed, **way
        ),
    )
