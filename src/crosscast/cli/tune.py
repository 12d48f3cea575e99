"""``crosscast tune``: the best variants of a kernel on devices, and what measuring some of them adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import FIGURES, FigureOutput, Names, Repeated, Whole

__all__ = ["tune"]


@runs(lambda: commands.tune.tune)
def tune(
    file: Path,
    /,
    *,
    space: Path,
    kernel: str | None = None,
    devices: Annotated[Names | None, Parameter(show_default=False)] = None,
    device_file: Annotated[tuple[Path, ...], Repeated] = (),
    model: str | None = None,
    profiles: Whole = 120,
    measure: Whole = 0,
    on: str | None = None,
    within: str = "2%",
    out: Path | None = None,
    seed: Whole = 0,
    output: FigureOutput = FIGURES,
) -> None:
    """Rank the variants of a kernel by forecast time on devices, or measure the most promising here.

    Some variants are profiled, which needs no device; the counts of the others follow from theirs. With
    `--measure`, the most promising run on a device of this machine, and each teaches what to run next; an
    interrupted command goes on where it was (docs/tuning.md).

    Parameters
    ----------
    file
        The kernel's file: OpenCL C, CUDA or HIP.
    space
        Parameters with their values, constraints, and the launch: TOML, or a T1 file of Kernel Tuner.
    kernel
        Name of the kernel; by default the one that the space names.
    devices
        Devices of the model or the catalogue, separated by commas.
    device_file
        Data sheet (TOML) of a further device; may be repeated.
    model
        Folder or name of a model of launch times; by default the one that comes with Crosscast.
    profiles
        How many variants are profiled.
    measure
        Maximum number of variants that are measured; none by default.
    on
        Id of the device that measures, as `crosscast devices` shows it; by default the first.
    within
        Measuring ends when no variant is likely to be faster by this share.
    out
        Folder for `ranking.json`, and for the space (`t1.json`) and the results (`t4.json`) as Kernel Tuner
        writes them.
    seed
        Random seed.
    """
