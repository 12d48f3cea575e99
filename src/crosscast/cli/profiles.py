"""The commands about kernels: their profiles and bounds, recorded programs, and comparisons."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast.cli import options
from crosscast.cli.options import command


@command("characterize.characterize")
class Characterize:
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
    """

    file: Path
    """File to characterize."""
    more: options.Paths = ()
    """Further files, whose launches follow."""
    _: KW_ONLY
    launch: options.ShownLaunch = options.LAUNCH
    launches: options.Flag = False
    """List the launches in the host code of a CUDA or HIP program, with the parts that are known from its
    constants. Without `--grid` and `--block`, launches that are fully known are profiled."""
    all: options.Flag = False
    """Print all metrics and counts, not a summary alone."""
    json: options.Flag = False
    """Print one JSON object a launch, each on a line."""
    csv: options.Flag = False
    """Print one CSV row a launch."""
    parquet: Path | None = None
    """Write the profiles to this Parquet file."""
    plot: Path | None = None
    """Draw a Kiviat picture to this file (.png, .svg or .pdf)."""
    html: Path | None = None
    """Also write the tables and the Kiviat picture as one HTML page."""
    aiwc: Path | None = None
    """Folder for the published tool's `aiwc_<kernel>_<n>.csv` files, with its conventions."""
    check_bounds: options.Flag = False
    """Check each access against its buffer, and say which one is out of bounds."""
    threads: options.Whole | None = None
    """Threads that run work-groups; the profile does not depend on it."""
    timeout: float = 600.0
    """Longest run of a kernel, in seconds."""
    memory_limit: options.Bytes | None = None
    """Most memory of the process that runs the kernel, such as `4G`."""


@command("capture.capture")
class Capture:
    """Run a program, unchanged, and record its kernel launches and transfers.

    The program comes after two hyphens, `crosscast capture -- ./app --size 1000`. Its input, output and exit
    code are its own. `crosscast report`, `characterize` and `predict` take the folder of the trace
    (docs/capture.md).
    """

    command: Annotated[tuple[str, ...], Parameter(allow_leading_hyphen=True, show_default=False)] = ()
    """The program and its arguments."""
    _: KW_ONLY
    out: Path = Path("crosscast-trace")
    """Folder of the trace, new or empty."""
    select: str = "spread"
    """Launches whose memory is kept, so that they can be characterized: `spread` (the 1st, 2nd, 3rd, 5th,
    9th, ... of a kernel and its sizes), `all`, `none` (times only), `first:N` or `every:N`."""
    max_bytes: Annotated[options.Bytes, Parameter(show_default=lambda _: "4 GiB")] = 4 << 30
    """Most memory of launches that is kept."""
    max_seconds: options.Whole = 60
    """Most time that the program waits for its memory to be read."""
    check: options.Flag = False
    """Also keep what these launches leave in memory, so that `crosscast report` compares."""
    runs: options.Whole = 1
    """2 runs the program twice: first for undisturbed times, then for memory."""
    perfetto: Path | None = None
    """Also write a timeline for ui.perfetto.dev."""


@command("capture.report")
class WriteReport:
    """Report on a recorded program, or write a page about a dataset and how well its times are predicted.

    Of the trace of `crosscast capture`: where the time goes, profiles, and how long the program takes on
    other devices. Of a dataset, a page: its contents, predictions for each held-out application, recommended
    devices and what they cost, and how to read the scores. docs/reporting.md shows one.
    """

    folder: Path
    """Folder of a trace or dataset, or `bundled` for the dataset that comes with Crosscast."""
    _: KW_ONLY
    models: options.Names | None = None
    """Models, separated by commas, or `all`; by default the one that `crosscast train` takes. The page shows
    the one with the least error, beside the baselines."""
    application: str | None = None
    """Application that is shown in detail; by default the one with the median error."""
    devices: options.Names | None = None
    """Devices of the forecast of a recorded program, separated by commas; by default all of the model."""
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("characterize.embed")
class Embed:
    """Write the profiles of a kernel's launches into its source as a comment, and into a SPIR-V module.

    FILE is a launch file (`.toml`, `.sim`), or a source with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, ...), whose launches are characterized; or, with `--profiles`, a launch
    file or the source itself (OpenCL C), and nothing is run.

    For `k.cl`, the files `k.profiled.cl` and, compiled from it, `k.profiled.spv` are written beside it. It
    stays as it is, unless `--in-place` is given. Profiles that a file holds already are replaced.
    `crosscast predict` reads them from either file (docs/embedding.md).
    """

    file: Path
    """Launch file, or source."""
    _: KW_ONLY
    profiles: Path | None = None
    """Table with profiles of this source (.parquet, .csv), as `crosscast characterize` writes it."""
    spirv: Path | None = None
    """Module of this kernel that gets the profiles, instead of one compiled from the source; or `none`."""
    out: Path | None = None
    """File for the source with its profiles."""
    in_place: options.Flag = False
    """Write them into the source, and the module given with `--spirv`, themselves."""
    launch: options.OfLaunch = options.LAUNCH
    json: options.JsonFlag = False


@command("predict.explain")
class Explain:
    """Say what bounds a kernel on a device: memory, compute, launch or latency; why, and what to try.

    The bound follows from the profile and the device's data sheet alone (docs/verdicts.md). Beside it
    stand the forecast and what its time is spent on, as `crosscast predict` makes them. FILE is what that
    takes.
    """

    file: Path
    """File to explain."""
    more: options.Paths = ()
    """Further files."""
    _: KW_ONLY
    devices: Annotated[options.Names | None, Parameter(show_default=False)] = None
    """Devices of the catalogue, separated by commas (`crosscast devices --catalogue`); by default h100-sxm,
    rtx4090 and epyc-9654."""
    device_file: options.Paths = ()
    """Data sheet (TOML) of a further device; may be repeated."""
    application: options.Application = None
    launch: options.OfLaunch = options.LAUNCH
    output: options.Output = options.OUTPUT


@command("catalogues.compare")
class Compare:
    """Compare two profiles, datasets, models or schedules, and fail where a change is too large.

    FIRST and SECOND are of one kind: files of profiles; launch files, or programs with the launch options of
    `crosscast characterize` (`--global`, `--arg`, `-D`, ...), which are characterized now; folders of
    datasets or models, or their names; or schedules (`.swf`, or the `.csv` of `crosscast simulate --out`).

    Exit codes: 0 if no condition of `--fail-on` holds, 3 if one does, 2 for wrong input.

    Example, in continuous integration: `crosscast compare before.json kernel.toml
    --fail-on 'total_instruction_count>+5%' --fail-on missing`
    """

    first: Path
    """Reference of the comparison; changes are relative to it."""
    second: Path
    """Input to compare."""
    _: KW_ONLY
    fail_on: options.Texts = ()
    """A change that is too large: `METRIC>+5%` or `METRIC<-5%` of the first, or `METRIC>10` in the metric's
    unit; `missing` for what only one of the two has. May be repeated."""
    launch: options.OfLaunch = options.LAUNCH
    output: options.Output = options.OUTPUT
