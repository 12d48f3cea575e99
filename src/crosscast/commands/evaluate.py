"""``crosscast evaluate``: scores of models on data that was held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from crosscast import api
from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types
from crosscast.commands.data import data_named
from crosscast.commands.options import (
    FigureOutput,
    Output,
    RunOptions,
    print_json,
    tell,
    warn,
)
from crosscast.commands.output import (
    check_file,
    check_output,
    check_run,
    fitting,
    show,
)
from crosscast.commands.status import TaskStatus
from crosscast.data.dataset import dataset_named
from crosscast.errors import InputError
from crosscast.evaluation.corun.options import CoRunFolds
from crosscast.evaluation.relative.options import RelativeFolds
from crosscast.evaluation.relative.question import held_out_work
from crosscast.evaluation.time.options import TimeFolds
from crosscast.prediction.registry import QuestionName
from crosscast.prediction.time.training_times import read_training
from crosscast.report import configuration_evaluation, configuration_figures, corun_evaluation, time_figures
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report import tuning as tuning_report
from crosscast.studies.moolchandani2022 import CoRunStudy
from crosscast.studies.nichols2024 import RelativeStudy
from crosscast.tuning.evaluation import evaluate_tuning
from crosscast.tuning.space_files import read_space


def time(
    dataset: Path,
    /,
    *,
    folds: TimeFolds,
    models: list[str] | None,
    probes: list[int] | None,
    level: float,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast evaluate time``."""
    if probes is not None and folds == "leave-device-out":
        raise InputError(f"--probes: with {folds} all other devices are measured; leave the option out")
    found = _evaluate(dataset, "time", models, folds, run, output, probes=probes or [0], level=level)

    show(
        output,
        found.to_dict,
        lambda: time_report.evaluation_report(found),
        lambda: time_figures.evaluation_figures(found),
    )


def relative(
    dataset: Path,
    /,
    *,
    folds: RelativeFolds,
    models: list[str] | None,
    devices: list[str] | None,
    sources: list[str] | None,
    weights: Literal["rows", "kernels", "applications"] | None,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast evaluate relative``."""
    found = _evaluate(
        dataset,
        "relative",
        models,
        folds,
        run,
        output,
        devices=devices,
        sources=sources,
        weights=weights,
        note=warn,
    )
    show(
        output,
        RelativeStudy(found).to_dict,
        lambda: relative_report.evaluation_report(found),
        lambda: relative_report.evaluation_figures(found),
    )


def configuration(
    dataset: Path,
    /,
    *,
    methods: list[str] | None,
    samples: str | None,
    group: str | None,
    devices: list[str] | None,
    power_domain: str | None,
    max_retunes: int | None,
    cap_probability: float | None,
    programs: bool,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast evaluate configuration``."""
    found = _evaluate(
        dataset,
        "configuration",
        methods,
        None,
        run,
        output,
        samples=samples,
        groups=_groups(group),
        devices=devices,
        power_domain=power_domain,
        max_retunes=max_retunes,
        cap_probability=cap_probability,
    )
    show_configuration(found, output, programs=programs)


def corun(
    dataset: Path,
    /,
    *,
    folds: CoRunFolds,
    models: list[str] | None,
    device: str | None,
    probes: list[int] | None,
    level: float,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast evaluate corun``."""
    found = _evaluate(
        dataset, "corun", models, folds, run, output, device=device, probes=probes or [0], level=level
    )
    show(
        output,
        CoRunStudy(found).to_dict,
        lambda: corun_evaluation.evaluation_report(found),
        lambda: corun_evaluation.evaluation_figures(found),
    )


def tune(
    dataset: Path,
    /,
    *,
    space: tuple[Path, ...],
    training: Path | None,
    model: str | None,
    devices: list[str] | None,
    profiles: int,
    strategies: list[str] | None,
    seed: int,
    output: FigureOutput,
) -> None:
    """Run ``crosscast evaluate tune``."""
    check_output(output)

    spaces = [read_space(each) for each in space]
    tables = None
    if training is not None:
        tables = read_training(training)
    with TaskStatus("variants") as status:
        found = evaluate_tuning(
            dataset_named(dataset),
            spaces,
            training=tables,
            model=model,
            devices=devices,
            profiles=profiles,
            strategies=strategies or (),
            seed=seed,
            progress=status,
            tell=tell,
        )
    show(
        output,
        found.to_dict,
        lambda: tuning_report.evaluation_report(found),
        lambda: tuning_report.evaluation_figures(found),
    )


def jobs(
    dataset: Path,
    /,
    *,
    out: Path,
    folds: RelativeFolds,
    model: str | None,
    devices: list[str] | None,
    sources: list[str] | None,
    job_seconds: float | None,
    job_procs: list[int] | None,
    job_source: str | None,
    gpu_applications: list[str] | None,
    run: RunOptions,
    json: bool,
) -> None:
    """Run ``crosscast evaluate jobs``."""
    check_file("--out", out)
    if out.suffix != ".parquet":
        raise InputError.of(where="--out", expected="a file name with .parquet", found=repr(out.name))
    shape = JobShape(
        job_procs=job_procs, job_s=job_seconds, gpu_applications=gpu_applications, job_source=job_source
    )
    check_run(run)
    with fitting(run) as how:
        held_out = held_out_work(
            dataset_named(dataset),
            model,
            folds,
            devices=devices,
            sources=sources,
            check=shape.check,
            note=warn,
            **how,
        )
    types = held_out_jobs(held_out, shape)
    write_job_types(types, out)
    if json:
        print_json({"out": str(out), "types": len(types), "model": held_out.model})
    else:
        tell(f"wrote {out} ({len(types):,} types of jobs, predicted by {held_out.model})")


def _evaluate(
    folder: Path,
    question: QuestionName,
    models: list[str] | None,
    folds: str | None,
    run: RunOptions,
    output: Output,
    **options: Any,
) -> Any:
    check_output(output)
    check_run(run)
    dataset = data_named(folder, question)
    with fitting(run) as how:
        return api.evaluate(dataset, question, models, folds, **how, **options)


def _groups(text: str | None) -> list[list[str]]:
    """Programs that are held out together: ``a+b,c+d``."""
    groups = [] if text is None else [word.strip().split("+") for word in text.split(",")]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError.of(
                where="--group", expected="groups such as a+b,c+d of programs", found=repr("+".join(group))
            )
    return groups


def show_configuration(
    found: Any,
    output: FigureOutput,
    draw: Callable[[Any], Mapping[str, Any]] = configuration_figures.evaluation_figures,
    *,
    programs: bool = False,
) -> None:
    """Print and draw an evaluation of methods that choose, and write the longest frontiers."""
    show(
        output,
        found.to_dict,
        lambda: configuration_evaluation.evaluation_report(found, programs=programs),
        lambda: draw(found),
    )
    for path in (
        [] if output.figures is None else configuration_figures.write_frontiers(found, output.figures)
    ):
        tell(f"wrote {path}")
