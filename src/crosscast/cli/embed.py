"""``crosscast embed``: profiles into the kernel's source as a comment, and into its SPIR-V module."""

from __future__ import annotations

from pathlib import Path

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.launch_options import LAUNCH, OfLaunch
from crosscast.commands.options import Flag

__all__ = ["embed"]


@runs(lambda: commands.embed.embed)
def embed(
    file: Path,
    /,
    *,
    profiles: Path | None = None,
    spirv: Path | None = None,
    no_spirv: Flag = False,
    out: Path | None = None,
    in_place: Flag = False,
    launch: OfLaunch = LAUNCH,
    json: Flag = False,
) -> None:
    """Write the profiles of a kernel's launches into its source as a comment, and into a SPIR-V module.

    FILE is a launch file (`.toml`, `.sim`), or a source with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, ...), whose launches are characterized; or, with `--profiles`, a launch
    file or the source itself (OpenCL C), and nothing is run.

    For `k.cl`, the files `k.profiled.cl` and, compiled from it, `k.profiled.spv` are written beside it. It
    stays as it is, unless `--in-place` is given. Profiles that a file holds already are replaced.
    `crosscast predict` reads them from either file (docs/embedding.md).

    Parameters
    ----------
    file
        Launch file, or source.
    profiles
        Table with profiles of this source (.parquet, .csv), as `crosscast characterize` writes it.
    spirv
        Module of this kernel that gets the profiles, instead of one compiled from the source.
    no_spirv
        Write no SPIR-V module.
    out
        File for the source with its profiles.
    in_place
        Write them into the source, and the module given with `--spirv`, themselves.
    json
        Print one JSON object.
    """
