"""``crosscast colocate``: which jobs should share a device, and which must run alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from crosscast.answers import model_facts
from crosscast.cli.options import OUTPUT, Flag, Level, Model, Output, Repeated, Whole
from crosscast.cli.predict import first_fit, isolated_runs, models_for, warn_of, with_probes
from crosscast.errors import InputError
from crosscast.units import parse_bytes

if TYPE_CHECKING:
    from crosscast.decide.colocation import ColocationPlan
    from crosscast.prediction.corun.artefact import TrainedCoRunModel
    from crosscast.prediction.corun.probes import SuggestedMixes

__all__ = ["colocate"]


def colocate(
    profile: Path,
    /,
    *more: Path,
    model: Model = None,
    probe: Annotated[tuple[str, ...], Repeated] = (),
    max_slowdown: float | None = None,
    conservative: Flag = False,
    memory: str | None = None,
    lengths: str | None = None,
    group_size: Whole = 2,
    level: Level = 0.9,
    suggest_probes: Whole | None = None,
    seed: Whole = 0,
    output: Output = OUTPUT,
) -> None:
    """Recommend which jobs to co-locate on a device, for the least total time (docs/corun-pairing.md).

    Lists the jobs to run together, the predicted gain with its interval, and the jobs that must run alone.

    Parameters
    ----------
    profile
        Profile of a job, written by `crosscast corun profile`.
    more
        Those of the others; the same again for a job that is there twice.
    probe
        Measured slowdowns of the co-runners of a mix, such as `bfs/small,fft/tiny=1.3,2.1`; may be repeated.
        Names are application/size, of these profiles or of the training.
    max_slowdown
        Largest predicted slowdown of a job, such as 1.3; no limit by default.
    conservative
        Apply `--max-slowdown` to the upper end of each slowdown's interval.
    memory
        Memory of the device, such as `16GiB`; by default that of the device that the model was trained on, if
        it is known.
    lengths
        Run time of each job in isolation, in seconds, separated by commas, in the order of the files; by
        default the times in the profiles.
    group_size
        Maximum number of jobs in a group, 2 to 5. Pairs are optimal; larger groups are found by a search.
    suggest_probes
        Also name so many pairs of these jobs whose measured slowdowns would tell most of the others.
    seed
        Random seed.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.decide.colocation import choose_colocation
    from crosscast.report.corun import colocation_report

    output.check()
    models = models_for(model, "corun")
    files = (profile, *more)
    solos = isolated_runs(files)
    if seed < 0:
        raise InputError(f"--seed: expected a number of at least 0, found {seed}")
    own_lengths = None if lengths is None else _numbers(lengths)
    memory_bytes = None if memory is None else parse_bytes(memory)

    def planned(trained: TrainedCoRunModel) -> tuple[ColocationPlan, SuggestedMixes | None]:
        told, suggestion = with_probes(trained, probe, solos), None
        if suggest_probes is not None:
            pairs = list(combinations(solos, 2))
            suggestion = told.suggest_probes(suggest_probes, pairs, among=pairs)
        plan = choose_colocation(
            solos,
            told,
            lengths=own_lengths,
            max_slowdown=max_slowdown,
            sure=conservative,
            memory_bytes=memory_bytes,
            group_size=group_size,
            level=level,
            seed=seed,
        )
        return plan, suggestion

    trained, (plan, suggestion) = first_fit(models, planned)
    warn_of(plan.shared)
    told = {**plan.to_dict([str(each) for each in files]), "model": model_facts(trained.card)}
    if suggestion is not None:
        told["suggested_probes"] = suggestion.to_dict()
    names = _numbered([solo.name for solo in solos])
    output.show(lambda: told, lambda: colocation_report(plan, names, trained.card, suggestion))


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise InputError(f"--lengths: expected numbers separated by commas, found {text!r}") from error


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of jobs, with a number for those of the same name."""
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
