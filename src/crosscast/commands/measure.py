"""``crosscast measure`` with its stressors, and how people name what is measured."""

from __future__ import annotations

from crosscast import forecasting
from crosscast.characterization.engine.child import Options
from crosscast.cli.machine import MeasureOptions
from crosscast.commands.launch import launch_file
from crosscast.commands.output import check_output, print_json, show
from crosscast.commands.status import StatusLine, tell, warn_about
from crosscast.measure import host_state
from crosscast.measure.measurement import measure_times, subject_of
from crosscast.measure.stressors import host_run
from crosscast.measure.subjects import characterized
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.report.dataset import measurement_report
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds, parse_bytes


def measure(what: str, /, *, options: MeasureOptions) -> None:
    """Run ``crosscast measure``."""
    check_output(options.output)

    beside = None
    with launch_file(what, options.launch) as path:
        if options.against_forecast is not None:
            # First, as a name that nobody knows is said before the work.
            forecast = _forecast(path, options.size, options.against_forecast, options.timeout)
        with _Status(what, options.min_runs, options.min_time) as status:
            measurement = measure_times(
                path,
                options.device,
                size=options.size,
                min_runs=options.min_runs,
                min_time=options.min_time,
                repeats=options.repeats,
                sensor=options.sensor,
                timeout=options.timeout,
                progress=status,
            )
    if options.against_forecast is not None:
        beside = forecasting.beside_measured(
            forecast, {each.kernel: each.median_s for each in measurement.kernels}
        )
    told = (
        {}
        if beside is None
        else {"against_forecast": {"device": options.against_forecast, **beside.to_dict()}}
    )
    show(
        options.output, lambda: measurement.to_dict() | told, lambda: measurement_report(measurement, beside)
    )


def _forecast(path: str, size: str | None, device: str, timeout_s: float) -> TimeForecast:
    """Times of what will be measured, forecast for a device."""
    profiles = characterized(subject_of(path, size), Options(timeout_s=timeout_s, sample_groups="auto"))
    forecast = forecasting.predict(profiles, devices=[device])
    warn_about(zip(forecast.labels, forecast.warnings, strict=True))
    return forecast


class _Status(StatusLine):
    """Shows how many runs there are."""

    def __init__(self, what: str, min_runs: int, min_time_s: float) -> None:
        super().__init__()
        self._what = what
        self._wanted = f"at least {min_runs} in {format_seconds(min_time_s)}"

    def __call__(self, runs: int, elapsed_s: float) -> None:
        """Show the state if it is time to."""
        self.show(
            elapsed_s, lambda: f"{self._what}: {runs} runs in {format_seconds(elapsed_s)}, of {self._wanted}"
        )


_UNKNOWN_CACHE = 64 << 20


def stressor(level: str, /, *, seconds: float, image: str | None, json: bool) -> None:
    """Run ``crosscast measure stressor``."""
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
