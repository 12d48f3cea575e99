"""``crosscast characterize``: launches of files, or described by options, and where their profiles go."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.launch_options import LAUNCH, ShownLaunch
from crosscast.commands.options import Flag, Whole


@runs(lambda: commands.characterize.characterize)
def characterize(
    file: Path,
    /,
    *more: Path,
    launch: ShownLaunch = LAUNCH,
    launches: Flag = False,
    all: Flag = False,
    json: Flag = False,
    csv: Flag = False,
    parquet: Path | None = None,
    plot: Path | None = None,
    html: Path | None = None,
    compat: Literal["aiwc"] | None = None,
    out: Path | None = None,
    check_bounds: Flag = False,
    threads: Whole | None = None,
    timeout: float = 600.0,
    memory_limit: str | None = None,
) -> None:
    """Profile each kernel launch of FILE, independently of any device.

    FILE is a launch file (`.toml`), a simulator file of Oclgrind (`.sim`), or a program (OpenCL C,
    CUDA `.cu`, HIP `.hip`, LLVM IR text or bitcode) whose launch the options describe.

    A launch that takes minutes: `--sample-groups 4096` runs so many of its work-groups, and says how wrong
    that may be.

    `--arg`, once for each kernel parameter in order:

    - `int=512`, `float4=1,2,3,4`: a value
    - `float:1048576`: a buffer of that many values, zeros; or filled: `float:1024:uniform:LOW:HIGH`,
      `:normal:MEAN:SD`, `:arange:START:STEP`, `:constant:VALUE` (numbers may be left out)
    - `float@data.npy`, `uint@data.bin`: a buffer with the content of a file
    - `local:1024`: local memory, in bytes
    - `null`: a null buffer
    - `image:uchar:RGBA:480x640:uniform`, `sampler:clamp:linear`: an image (height x width), a sampler

    Example: `crosscast characterize vecadd.cl --global 1048576 --arg float:1048576:uniform
    --arg float:1048576:uniform --arg float:1048576 --arg int=1048576`

    A CUDA kernel: `crosscast characterize saxpy.cu --kernel 'saxpy<float>' --grid 4096 --block 256
    --arg int=1048576 --arg float=2 --arg float:1048576:uniform --arg float:1048576`

    Parameters
    ----------
    file
        What to characterize.
    more
        Further files, whose launches follow.
    launches
        List the launches in the host code of a CUDA or HIP program: what its constants tell of each, and what
        not. Without `--grid` and `--block`, those that are wholly known are profiled.
    all
        Print all metrics and counts, not a summary alone.
    json
        Print one JSON object a launch, each on a line.
    csv
        Print one CSV row a launch.
    parquet
        Write the profiles to this Parquet file.
    plot
        Draw a Kiviat picture to this file (.png, .svg or .pdf).
    html
        Also write the tables and the Kiviat picture as one HTML page.
    compat
        `aiwc`: write the published tool's `aiwc_<kernel>_<n>.csv` files.
    out
        Folder for these; by default the working directory.
    check_bounds
        Check each access against its buffer, and say which one is out of bounds.
    threads
        Threads that run work-groups; the profile does not depend on it.
    timeout
        Longest run of a kernel, in seconds.
    memory_limit
        Most memory of the process that runs the kernel, such as `4G`.
    """
