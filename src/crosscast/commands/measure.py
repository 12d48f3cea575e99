"""``crosscast measure`` with its stressors, and ``calibrate``: times of kernels on a device."""

from __future__ import annotations

from pathlib import Path

from crosscast import forecasting
from crosscast.characterization.engine.child import Options
from crosscast.cli.machine import Calibrate, Measure, MeasureStressor
from crosscast.commands.launch import launch_file
from crosscast.commands.output import (
    LabelStatus,
    StatusLine,
    check_writable,
    print_json,
    say,
    show,
    tell,
    warn,
    warn_about,
)
from crosscast.data.files import make_folder
from crosscast.devices.catalogue import catalogue
from crosscast.devices.device_files import check_name, own_folder, write_device
from crosscast.errors import InputError, MissingExtraError
from crosscast.measure import host_state
from crosscast.measure.measurement import measure_times, subject_of
from crosscast.measure.microbenchmarks import Backend, HostBackend, OpenCLBackend
from crosscast.measure.microbenchmarks.bench import SECONDS, Microbenchmarks
from crosscast.measure.microbenchmarks.bench import measure as run_microbenchmarks
from crosscast.measure.microbenchmarks.cuda import PREFIX, CudaBackend
from crosscast.measure.microbenchmarks.cuda import find as find_cuda
from crosscast.measure.stressors import host_run
from crosscast.measure.subjects import characterized, expect_installed
from crosscast.prediction.named_models import models_home
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.report.devices import microbenchmark_figures, microbenchmarks_report
from crosscast.report.document import Report
from crosscast.report.measured import measurement_report
from crosscast.report.prediction import calibration_report
from crosscast.suite.application import selected
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds


def measure(options: Measure) -> None:
    """Run ``crosscast measure``."""
    what, beside = options.what, None
    with launch_file(what, options.launch) as path:
        if options.against_forecast is not None:
            # Before the measurement, so that an unknown name of a device is reported at once.
            forecast = _forecast(path, options.size, options.against_forecast, options.timeout)
        wanted = f"at least {options.min_runs} in {format_seconds(options.min_time)}"
        with StatusLine() as status:
            measurement = measure_times(
                path,
                options.device,
                size=options.size,
                min_runs=options.min_runs,
                min_time=options.min_time,
                repeats=options.repeats,
                sensor=options.sensor,
                timeout=options.timeout,
                progress=lambda runs, elapsed_s: status.show(
                    elapsed_s, lambda: f"{what}: {runs} runs in {format_seconds(elapsed_s)}, of {wanted}"
                ),
            )
    if options.against_forecast is not None:
        beside = forecasting.beside_measured(
            forecast, {kernel.kernel: kernel.median_s for kernel in measurement.kernels}
        )

    def answer() -> dict[str, object]:
        content = measurement.to_dict()
        if beside is not None:
            content["against_forecast"] = {"device": options.against_forecast, **beside.to_dict()}
        return content

    show(options.output, answer, lambda: measurement_report(measurement, beside))


def _forecast(path: str, size: str | None, device: str, timeout_s: float) -> TimeForecast:
    """Forecast the times that will be measured, for a device."""
    profiles = characterized(
        subject_of(path, size), Options(optimize=True, timeout_s=timeout_s, sample_groups="auto")
    )
    forecast = forecasting.predict(profiles, devices=[device])
    warn_about(zip(forecast.labels, forecast.warnings, strict=True))
    return forecast


_UNKNOWN_CACHE = 64 << 20


def stressor(options: MeasureStressor) -> None:
    """Run ``crosscast measure stressor``."""
    caches = host_state.caches()
    nbytes = options.image or caches.l3_bytes or caches.l2_bytes or _UNKNOWN_CACHE
    result = host_run(options.level, nbytes, options.seconds, lambda: tell("ready"))
    if options.json:
        print_json({**vars(result), "image_bytes": nbytes})
        return
    print(
        f"{result.level}: {format_bytes_per_second(result.bandwidth_bytes_per_s)} on one core for "
        f"{format_seconds(result.elapsed_s)}; 4 images of {format_bytes(nbytes)}"
    )


_HOST = "host"


def calibrate(options: Calibrate) -> None:
    """Run ``crosscast calibrate``."""
    device, minutes, name = options.device, options.minutes, options.name
    if not 0 <= minutes <= 24 * 60:
        raise InputError.of(where="--minutes", expected=f"from 0 to {24 * 60}", found=f"{minutes:g}")
    by_cuda = device is not None and device.startswith(PREFIX)
    facts_only = minutes == 0 or device == _HOST or by_cuda

    check_name(name)
    if name in catalogue():
        raise InputError.of(
            where="--name", expected="one that no device of the catalogue has", found=repr(name)
        )
    check_writable("XDG_DATA_HOME", own_folder())
    if not facts_only:
        expect_installed(selected(["all"]))
        # Imported here, as --device host needs no OpenCL.
        from crosscast.measure import calibration, opencl

        calibration.check_name(name)
        check_writable("XDG_DATA_HOME", models_home())
    backend = _backend(device)
    make_folder(own_folder(), "XDG_DATA_HOME")
    say(f"measuring what {backend.name} reaches, in about {SECONDS} s")
    with LabelStatus() as status:
        facts = run_microbenchmarks(backend, status)
    for doubt in facts.doubts:
        warn(doubt)
    path = _written(facts, name)
    reports, answer = [microbenchmarks_report(facts, path)], _facts_dict(facts, name, path)
    if by_cuda and minutes:
        say(f"kernels of the suite are OpenCL C, which CUDA does not run: {name} gets no model of its own")
    if not facts_only:
        say(f"measuring kernels for {60 * minutes:.0f} s, then fitting for some seconds")
        with LabelStatus() as status:
            result = calibration.calibrate(
                opencl.find(facts.id), name, described=facts.device(name), seconds=60 * minutes, report=status
            )
        for note in result.notes:
            say(note)
        reports.append(calibration_report(result))
        answer |= result.to_dict()
    show(
        options.output,
        lambda: answer,
        lambda: Report([part for report in reports for part in report.parts]),
        lambda: microbenchmark_figures(facts),
    )


def _backend(device: str | None) -> Backend:
    if device == _HOST:
        return HostBackend()
    if device is not None and device.startswith(PREFIX):
        return CudaBackend(find_cuda(device))
    try:
        from crosscast.measure.opencl import find
    except MissingExtraError as error:
        purpose = "calibrating OpenCL devices (--device host needs none, and --device cuda:0 the extra cuda)"
        raise MissingExtraError("opencl", purpose) from error
    return OpenCLBackend(find(device))


def _written(facts: Microbenchmarks, name: str) -> Path:
    path = own_folder() / f"{name}.toml"
    how = {key: str(value) for key, value in facts.values.items()}
    conditions = {"measured_on": facts.id, "seconds": facts.seconds, "doubts": list(facts.doubts)}
    write_device(path, facts.device(name), how=how, conditions=conditions, working_sets=facts.working_sets)
    return path


def _facts_dict(facts: Microbenchmarks, name: str, path: Path) -> dict[str, object]:
    measured = {key: {**vars(value), "spread": value.spread} for key, value in facts.values.items()}
    return {
        "device": name,
        "file": str(path),
        "measured": measured,
        "working_sets": facts.working_sets,
        "unsure": facts.unsure(),
        "doubts": list(facts.doubts),
        "microbenchmarks_s": facts.seconds,
    }
