"""``crosscast measure`` with its stressors, and how people name what is measured."""

from __future__ import annotations

from typing import Literal

import cyclopts

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.launch_options import LAUNCH, OfLaunch
from crosscast.commands.options import OUTPUT, JsonFlag, Output, Whole


@runs(lambda: commands.measure.measure)
def measure(
    what: str,
    /,
    *,
    device: str | None = None,
    size: Literal["tiny", "small", "medium", "large"] | None = None,
    min_runs: Whole = 50,
    min_time: float = 2.0,
    warmups: Whole = 2,
    repeats: Whole = 1,
    sensor: str = "auto",
    timeout: float = 600.0,
    against_forecast: str | None = None,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Measure the kernels of WHAT on an OpenCL device, in repeated runs.

    WHAT is a launch file (`.toml`, `.sim`), or a program with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, ...); or with `--size` an application: one of the suite (bfs, cfd, crc, csr,
    dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat) or a folder of your own (docs/suite.md). A run
    writes the buffers and launches the kernels; runs are repeated until there are enough of them and enough
    time has passed. Times are those of the device's own timer.

    Parameters
    ----------
    what
        Launch file, or name or folder of an application.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    size
        Size of the application's problem.
    min_runs
        Minimum number of recorded runs.
    min_time
        Minimum total time of the recorded runs, in seconds.
    warmups
        Warm-up runs before the recorded ones.
    repeats
        Number of processes that repeat the measurement, one after another.
    sensor
        Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Time limit of a process, in seconds.
    against_forecast
        Name of this device in a model or the catalogue (`crosscast devices --catalogue`), or of one that was
        calibrated: its times are forecast first, and shown beside the measured ones.
    """


@runs(lambda: commands.measure.stressor)
def stressor(
    level: str, /, *, seconds: float = 10.0, image: str | None = None, json: JsonFlag = False
) -> None:
    """Run a stressor, a microbenchmark that contends for memory, on one core of the CPU, without OpenCL.

    For applications that Crosscast does not start itself: run one beside them for each core to be kept busy,
    and divide their time beside it by their time in isolation.

    Parameters
    ----------
    level
        `low`, `medium` or `high`, by the misses of the last-level cache.
    seconds
        How long it runs, from when it prints `ready`.
    image
        Bytes of each of its four images, such as `32MiB`; by default those of the last-level cache.
    """


app = cyclopts.App(name="measure")
app.default(measure)
app.command(stressor)
