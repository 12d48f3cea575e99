"""``crosscast characterize``: the architecture-independent profile of each launch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole
from crosscast.errors import InputError
from crosscast.units import parse_bytes

if TYPE_CHECKING:
    from crosscast.characterization import run
    from crosscast.cli.inputs import Direct
    from crosscast.cli.outputs import Outputs

__all__ = ["characterize"]

_Repeated = Annotated[tuple[str, ...], Parameter(negative="", show_default=False, allow_leading_hyphen=True)]


def characterize(
    file: Path,
    /,
    *more: Path,
    kernel: str | None = None,
    global_size: Annotated[str | None, Parameter(name="--global")] = None,
    local_size: Annotated[str | None, Parameter(name="--local")] = None,
    offset: str | None = None,
    arg: _Repeated = (),
    seed: Whole | None = None,
    define: Annotated[
        tuple[str, ...], Parameter(name=["--define", "-D"], negative="", show_default=False)
    ] = (),
    include: Annotated[
        tuple[str, ...], Parameter(name=["--include", "-I"], negative="", show_default=False)
    ] = (),
    option: _Repeated = (),
    std: Literal["1.0", "1.1", "1.2", "2.0", "3.0"] | None = None,
    json: Flag = False,
    csv: Flag = False,
    parquet: Path | None = None,
    plot: Path | None = None,
    compat: Literal["aiwc"] | None = None,
    out: Path | None = None,
    check_bounds: Flag = False,
    threads: Whole | None = None,
    timeout: float = 600.0,
    memory_limit: str | None = None,
) -> None:
    """Profile each kernel launch of FILE, independently of any device.

    FILE is a launch file (`.toml`), a simulator file of Oclgrind (`.sim`), or a program (OpenCL C,
    LLVM IR text or bitcode) whose launch the options describe.

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

    Parameters
    ----------
    file
        What to characterize.
    more
        Further files, whose launches follow.
    kernel
        Kernel to launch; may be left out if the program has only one.
    global_size
        Work-items, such as `1024` or `512,512`.
    local_size
        Work-items of a work-group; by default a divisor of the global size, at most 64.
    offset
        Offset of the global ids.
    arg
        A kernel argument; see above.
    seed
        Random seed of the fills; 0 unless given.
    define
        Macro for the compiler, such as `N=16`.
    include
        Folder where the compiler looks for included files.
    option
        Any other compiler option, such as `-cl-fast-relaxed-math`.
    std
        Version of OpenCL C; 1.2 unless given.
    json
        Print one JSON object a launch, each on a line.
    csv
        Print one CSV row a launch.
    parquet
        Write the profiles to this Parquet file.
    plot
        Draw a Kiviat picture to this file (.png, .svg or .pdf).
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
    # Imported here: the engine brings the compiler and NumPy, which `--help` does not need.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()
    from crosscast.characterization import run
    from crosscast.cli.inputs import Direct
    from crosscast.cli.outputs import Outputs

    if json and csv:
        raise InputError("--json and --csv both want standard output: choose one")
    if out is not None and compat is None:
        raise InputError("--out is the folder of --compat aiwc: give both or none")
    if threads is not None and threads < 1:
        raise InputError(f"--threads: expected at least 1, found {threads}")
    if not timeout > 0:
        raise InputError(f"--timeout: expected more than 0 seconds, found {timeout:g}")
    outputs = Outputs(
        "json" if json else "csv" if csv else "table",
        (out or Path()) if compat else None,
        parquet,
        plot,
    )
    options = run.Options(
        threads=threads,
        check_bounds=check_bounds,
        timeout_s=timeout,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        published=compat is not None,
    )
    compiler_options = (*(f"-D{name}" for name in define), *(f"-I{folder}" for folder in include), *option)
    direct = Direct(kernel, global_size, local_size, offset, arg, seed, compiler_options, std)
    outputs.prepare()
    _run((file, *more), direct, outputs, options)


def _run(files: Sequence[Path], direct: Direct, outputs: Outputs, options: run.Options) -> None:
    """Run every launch; what is finished is shown even if a later one fails."""
    from crosscast.characterization.launchfiles.simfile import render_dumps
    from crosscast.cli.inputs import read_inputs
    from crosscast.cli.running import run_launch

    try:
        # One file after the other, as the arguments of all may be more than memory holds.
        for file in files:
            inputs = read_inputs(file, direct)
            for launch in inputs.launches:
                profile = run_launch(launch, len(outputs.profiles), options)
                outputs.add(profile, render_dumps(inputs.simfile) if inputs.simfile else None)
    finally:
        outputs.finish()
