"""An evaluation of models of co-running, with the studies of paper 004 if they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.evaluate.corun.protocol import CoRunEvaluation, evaluate_corun
from crosscast.evaluate.corun.studies.all_studies import CoRunStudies, make_studies
from crosscast.evaluate.corun.training import of_one_device
from crosscast.evaluate.processes import Progress
from crosscast.predict.corun.model import CoRunModel
from crosscast.tables.corun.view import CoRuns

__all__ = ["CoRunStudy", "study_corun"]


@dataclass(frozen=True, eq=False)
class CoRunStudy:
    """An evaluation with what belongs beside it.

    Parameters
    ----------
    evaluation
        The evaluation.
    studies
        The studies of paper 004; ``None`` if they were not asked for.
    """

    evaluation: CoRunEvaluation
    studies: CoRunStudies | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        evaluation = self.evaluation
        co_runs = evaluation.co_runs
        told = {
            "dataset": co_runs.label,
            "target": "corun",
            "protocol": evaluation.split,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "device": co_runs.bags[0].device,
            "configuration": co_runs.bags[0].configuration,
            "bags": len(co_runs.bags),
            "failed_bags": sum(bag.failed for bag in co_runs.bags),
            "applications": list(co_runs.applications),
            "results": [result.to_dict() for result in evaluation.results],
        }
        return told if self.studies is None else {**told, "studies": self.studies.to_dict()}


def study_corun(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    split: str,
    *,
    baselines: Sequence[CoRunModel] = (),
    device: str | None = None,
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    studies: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunStudy:
    """Evaluate models on the bags of one device, and make the studies.

    Parameters
    ----------
    co_runs
        Bags of any devices.
    baselines
        Models that others are compared with.
    device
        Key of the device; the one with the most bags by default.
    studies
        Whether to make the studies too.
    models, split, probes, level, seed, progress, cache, jobs
        As `evaluate_corun` has them.

    Raises
    ------
    InputError
        As there; and if there are no bags on the device.
    """
    chosen = of_one_device(co_runs, device)
    evaluation = evaluate_corun(
        chosen,
        [*models, *baselines],
        split,
        baselines=[each.name for each in baselines],
        probes=probes,
        level=level,
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    if not studies:
        return CoRunStudy(evaluation)
    return CoRunStudy(
        evaluation,
        make_studies(co_runs, chosen, models, seed, progress=progress, cache=cache, jobs=jobs),
    )
