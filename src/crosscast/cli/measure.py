"""``crosscast measure`` with its stressors, and how people name what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import cyclopts

from crosscast.cli.launch import LAUNCH, OfLaunch, launch_file
from crosscast.cli.options import OUTPUT, JsonFlag, Output, Whole, print_json, tell
from crosscast.cli.running import StatusLine
from crosscast.errors import InputError
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds, parse_bytes

if TYPE_CHECKING:
    from crosscast.measure.subjects import LaunchFile, Settings, SuiteProblem


def subject_of(what: str, size: str | None) -> LaunchFile | SuiteProblem:
    """Find what a person names: a launch file, or an application at a size."""
    from crosscast.characterization.launchfiles.launchfile import LAUNCH_FILES
    from crosscast.measure.subjects import LaunchFile, SuiteProblem, expect_installed, fitted
    from crosscast.suite.application import working_set
    from crosscast.suite.registry import application, names

    path = Path(what)
    if path.suffix in LAUNCH_FILES and not path.is_dir():
        if size is not None:
            raise InputError(f"--size: {what} is a launch file, whose sizes are what they are")
        return LaunchFile(str(path))
    if path.is_file() and what not in names():
        raise InputError(
            f"{what}: expected an application or a launch file ({', '.join(LAUNCH_FILES)}), which names a "
            "source and says what to launch, or a launch (--global 1024 --arg ...), found neither"
        )
    kind = application(what)
    if size is None:
        raise InputError(f"{what}: an application needs --size (tiny, small, medium or large)")
    expect_installed([what])
    nbytes = working_set(size)
    return SuiteProblem(what, size, fitted(kind, nbytes), seed=0, most_bytes=nbytes)


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
    """
    output.check()
    with launch_file(what, launch) as path:
        # First, as it names the extra that applications of the suite need.
        subject = subject_of(path, size)
        # Imported here: `--help` needs no OpenCL.
        from crosscast.measure.opencl import find
        from crosscast.measure.processes import SessionJob, run_job
        from crosscast.measure.subjects import Settings
        from crosscast.report.dataset import Measurement, measurement_report

        if repeats < 1:
            raise InputError(f"--repeats: expected at least 1, found {repeats}")
        settings = Settings(min_runs, min_time, warmups, timeout, sensor)
        target = find(device)
        answers = []
        for repeat in range(repeats):
            with _Status(what, settings) as status:
                answers.append(run_job(SessionJob(subject, target.id, settings, repeat), timeout, status))
    measurement = Measurement.of(target.id, target.name, answers, sensor)
    output.show(measurement.to_dict, lambda: measurement_report(measurement))


class _Status(StatusLine):
    """Shows how many runs there are."""

    def __init__(self, what: str, settings: Settings) -> None:
        super().__init__()
        self._what = what
        self._wanted = f"at least {settings.min_runs} in {format_seconds(settings.min_time_s)}"

    def __call__(self, runs: int, elapsed_s: float) -> None:
        """Show the state if it is time to."""
        self.show(
            elapsed_s, lambda: f"{self._what}: {runs} runs in {format_seconds(elapsed_s)}, of {self._wanted}"
        )


_UNKNOWN_CACHE = 64 << 20


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
    # Imported here: `--help` needs no NumPy.
    from crosscast.measure import host_state
    from crosscast.measure.stressors import host_run

    caches = host_state.caches()
    nbytes = parse_bytes(image) if image else caches.l3 or caches.l2 or _UNKNOWN_CACHE
    found = host_run(level, nbytes, seconds, lambda: tell("ready"))
    if json:
        print_json({**vars(found), "image_bytes": nbytes})
        return
    print(
        f"{found.level}: {format_bytes_per_second(found.bandwidth_bytes_per_s)} on one core for "
        f"{format_seconds(found.elapsed_s)}; 4 images of {format_bytes(nbytes)}"
    )


app = cyclopts.App(name="measure")
app.default(measure)
app.command(stressor)
