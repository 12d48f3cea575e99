"""``crosscast colocate``: which jobs should share a device, and which must run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Flag, Level, Model, Output, Repeated, Whole

__all__ = ["colocate"]


@runs(lambda: commands.colocate.colocate)
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
