"""An evaluation of models of relative performance, with the studies of paper 003 if they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.evaluate.confidence import DRAWS, SHARE
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.relative.by_source import BySource, by_source
from crosscast.evaluate.relative.importances import Importances, importances
from crosscast.evaluate.relative.protocol import RelativeEvaluation, evaluate_relative
from crosscast.evaluate.relative.selection import Selection, selection
from crosscast.evaluate.relative.weighting import Weighting
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.observations import Vectors

__all__ = ["HONEST", "RelativeStudies", "RelativeStudy", "study_relative"]

HONEST = ("leave-application-out", "leave-kernel-out")
"""Splits of studies where the protocol is none: the first that has something to split by."""


@dataclass(frozen=True, eq=False)
class RelativeStudies:
    """Studies of section VIII.

    Parameters
    ----------
    by_source
        Models by the device that counted (Figures 4 and 5); ``None`` with a single one.
    by_scale
        Each scale held out (Figure 6); ``None`` with a single one.
    by_application
        Each application held out (Figure 7); ``None`` with a single one.
    importances
        Of features (Figure 8).
    selection
        Fewer features (section VI-B).
    """

    by_source: BySource | None
    by_scale: RelativeEvaluation | None
    by_application: RelativeEvaluation | None
    importances: Importances
    selection: Selection

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON; what there is not is null."""
        return {
            "by_source": None if self.by_source is None else self.by_source.to_dict(),
            "by_scale": _listed(self.by_scale),
            "by_application": _listed(self.by_application),
            "importances": self.importances.to_dict(),
            "selection": self.selection.to_dict(),
        }


def _listed(found: RelativeEvaluation | None) -> list[dict[str, Any]] | None:
    return None if found is None else [result.to_dict() for result in found.results]


@dataclass(frozen=True, eq=False)
class RelativeStudy:
    """An evaluation with what belongs beside it.

    Parameters
    ----------
    label
        Which dataset.
    evaluation
        The evaluation.
    studies
        The studies, if they were asked for.
    """

    label: str
    evaluation: RelativeEvaluation
    studies: RelativeStudies | None

    @property
    def counts(self) -> dict[str, int]:
        """How much there was to evaluate with."""
        rows = self.evaluation.vectors.observations
        return {
            "rows": len(rows),
            **rows.counts,
            "sources": len(set(rows.source)),
            "devices": len(self.evaluation.vectors.devices),
            "counters": len(rows.names),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        evaluation = self.evaluation
        return {
            "dataset": self.label,
            "target": "relative",
            "protocol": evaluation.split.name,
            "seed": evaluation.seed,
            "devices": list(evaluation.vectors.devices),
            "sources": sorted(set(evaluation.vectors.observations.source)),
            "counts": self.counts,
            "folds": len(evaluation.folds),
            "repeated_share": evaluation.repeated,
            "bootstrap": {"draws": DRAWS, "share": SHARE},
            "results": [result.to_dict() for result in evaluation.results],
            "studies": None if self.studies is None else self.studies.to_dict(),
        }


def study_relative(
    label: str,
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    weighting: Weighting | None = None,
    studies: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> RelativeStudy:
    """Evaluate models, and make the studies.

    Studies by source, importances and selection hold out what the protocol holds out if that is one of
    `HONEST`, and else the first of these that has something to split by. All but selection and importances,
    which are of XGBoost, are of the models that are evaluated.

    Parameters
    ----------
    label
        Which dataset.
    studies
        Whether to make the studies too.
    vectors, models, split, weighting, seed, progress, cache, jobs
        As `evaluate_relative` has them.

    Raises
    ------
    InputError
        As there; and if studies are asked for, and there is a single kernel.
    """

    def evaluated(name: str, way: Weighting | None = None) -> RelativeEvaluation:
        return evaluate_relative(
            vectors, models, name, weighting=way, seed=seed, progress=progress, cache=cache, jobs=jobs
        )

    whole = evaluated(split, weighting)

    def left_out(name: str) -> RelativeEvaluation:
        return whole if name == split else evaluated(name)

    if not studies:
        return RelativeStudy(label, whole, None)
    rows = vectors.observations
    several = {name: len(set(getattr(rows, name))) > 1 for name in ("source", "scale", "application")}
    honest = split if split in HONEST else HONEST[0 if several["application"] else 1]
    sources: BySource | None = None
    if several["source"]:
        sources = by_source(vectors, models, honest, seed=seed, progress=progress, cache=cache, jobs=jobs)
    return RelativeStudy(
        label,
        whole,
        RelativeStudies(
            sources,
            left_out("leave-scale-out") if several["scale"] else None,
            left_out("leave-application-out") if several["application"] else None,
            importances(vectors, honest, seed=seed),
            selection(vectors, honest, seed=seed, progress=progress, cache=cache, jobs=jobs),
        ),
    )
