"""``crosscast evaluate``: how well models predict what they have not seen."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.datasets import dataset_named
from crosscast.cli.evaluate_choices import CHOICES, ChoiceOptions, evaluate_choices_of
from crosscast.cli.evaluate_corun import ONLY_CORUN, evaluate_corun_of, is_corun
from crosscast.cli.evaluate_jobs import JobOptions
from crosscast.cli.evaluate_options import LEVEL, Effort, Typed
from crosscast.cli.evaluate_relative import RelativeOptions, Weights, evaluate_relative_of, is_relative
from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.flag import Flag
from crosscast.cli.model_names import models_named
from crosscast.cli.option_names import option_names
from crosscast.cli.places import cache_folder, check_place
from crosscast.cli.whole import Whole
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["evaluate"]

Protocol = Literal[
    "leave-application-out",
    "leave-kernel-out",
    "leave-device-out",
    "leave-device-and-application-out",
    "leave-bag-out",
    "leave-benchmark-out",
    "leave-configuration-out",
    "leave-machine-out",
    "leave-scale-out",
    "published",
    "random-80-20",
]
Target = Literal["time", "relative", "corun"]


def evaluate(
    folder: Path,
    /,
    *,
    protocol: Protocol = "leave-application-out",
    models: str | None = None,
    probes: str | None = None,
    level: float = LEVEL,
    seed: Whole = 0,
    jobs: Whole | None = None,
    cache: Path | None = None,
    no_cache: Flag = False,
    figures: Path | None = None,
    effort: Effort = "usual",
    methods: str | None = None,
    samples: str | None = None,
    together: str | None = None,
    devices: str | None = None,
    power_domain: str | None = None,
    budget: Whole | None = None,
    confidence: float | None = None,
    programs: Flag = False,
    target: Target | None = None,
    sources: str | None = None,
    weights: Weights | None = None,
    studies: Flag = False,
    write_jobs: Path | None = None,
    job_seconds: float | None = None,
    job_procs: str | None = None,
    job_source: str | None = None,
    gpu_applications: str | None = None,
    json: Flag = False,
) -> None:
    """Say how well models predict what they have not seen.

    Each application (or kernel, or device) is left out in turn; the models are fitted, tuned and chosen with
    the others alone, and predict it. Beside them stand trivial baselines, the spread of single runs, and
    intervals from a bootstrap over applications. docs/evaluation.md says what each number means.

    `leave-benchmark-out` compares methods that choose a configuration under a power cap, on runs at many
    configurations; docs/choosing-evaluation.md says what each of its numbers means.

    `published` repeats the published study of 2018 instead, on its data: its tables and figures, beside what
    the same quantities are in real time.

    Of a dataset with bags, which are applications that share a device, models of their slowdowns, times and
    powers are evaluated: benchmarks (applications), bags, or a fifth of the bags at random are left out.
    docs/corun-evaluation.md says what each of these numbers means.

    Of a dataset with counters of runs and no profiles, or with `--target relative`, models of times on
    devices relative to each other are evaluated: applications, kernels, kernels at a size (configurations),
    devices that counted (machines) or scales are left out, or runs at random as published.
    docs/relative-evaluation.md says what each of these numbers means.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast.
    protocol
        What is left out.
    models
        Names, separated by commas, or `all` (some ten minutes on the published data); by default the one that
        `crosscast train` takes. The baselines are always there.
    probes
        On how many devices a kernel is measured before the others are predicted, such as `0,2`; by default
        0. Where a device is left out, each kernel's times on all others are known. Of bags: how many with the
        benchmark that is left out are measured before.
    level
        Probability that the intervals are to hold.
    seed
        Start of all random numbers.
    jobs
        Processes that work at the same time; by default one for each processor.
    cache
        Folder that keeps the forecasts of finished folds, so that an evaluation that was cut off goes on
        where it was; by default one in the user's folder for caches.
    no_cache
        Keep and use no forecasts.
    figures
        Folder for pictures.
    effort
        Of `published`: how much work, from minutes to hours.
    methods
        Of `leave-benchmark-out`: names, separated by commas, or `all`; by default the main ones.
    samples
        Of `leave-benchmark-out`: configurations at which a kernel is run first, such as
        `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default two that the training
        kernels suggest.
    together
        Of `leave-benchmark-out`: programs that are nearly the same, such as `a+b,c+d`, besides those whose
        names say so.
    devices
        Devices, separated by commas: of `leave-benchmark-out` those to choose from, by default all; of
        relative performance those to compare, by default those that have the most times in common; of bags
        the one that they share, by default the one with the most bags.
    power_domain
        Of `leave-benchmark-out`: domain whose power is capped; by default that of the node, or all there are.
    budget
        Of `leave-benchmark-out`: most changes of configuration after the first choice; by default no limit.
    confidence
        Of `leave-benchmark-out`: probability with which methods that know how sure they are keep to caps; by
        default 0.9.
    programs
        Of `leave-benchmark-out`: print a table by program for each method, and the longest frontier, as well.
    target
        What is predicted; by default times where the dataset has profiles and the protocol is one for times,
        and bags where the dataset has bags and no records.
    sources
        Of relative performance: devices whose counters are taken, separated by commas; by default those that
        are compared.
    weights
        Of relative performance: what counts the same; by default rows, and kernels where these are left out.
    studies
        Of relative performance: study sources, scales, applications and features as well. Of bags: study
        clusters, combinations of features, decision paths and sizes of bags.
    write_jobs
        Of relative performance: Parquet file for what was held out as types of jobs, with measured times and
        what the first model predicted, for `crosscast schedule`.
    job_seconds
        Repeat each kernel so often that a job takes so long at the geometric mean over devices; by default a
        job is one invocation.
    job_procs
        Nodes that jobs occupy, such as `1,1,2` for a third of them to be twice as wide; by default those that
        runs were set to, or 1.
    job_source
        Of profiles: device on which a job's time is known, for the placement `completion`.
    gpu_applications
        Applications that users know to run on GPUs, separated by commas; by default all.
    json
        Print everything as one JSON object.
    """
    choices = ChoiceOptions(
        methods, samples, together, devices, power_domain, budget, confidence, bool(programs)
    )
    jobs_written = JobOptions(write_jobs, job_seconds, job_procs, job_source, gpu_applications)
    relative = RelativeOptions(sources, weights, bool(studies), jobs_written)
    dataset = dataset_named(folder)
    of_corun = is_corun(dataset, target)
    of_relative = not of_corun and is_relative(dataset, protocol, target, relative)
    typed = Typed(models, probes, level, effort, choices, relative)
    if of_corun:
        typed.check_corun()
    else:
        if protocol in ONLY_CORUN:
            raise InputError(f"--protocol: {dataset.label} has no bags, which {protocol} leaves out")
        typed.check(protocol, relative=of_relative)
    if figures is not None:
        _prepare(figures)
    kept = cache_folder(cache, no_cache)
    processes = processors() if jobs is None else jobs
    if of_corun:
        _tell(
            evaluate_corun_of(
                dataset,
                # What is left out of bags where nobody says.
                "leave-benchmark-out" if protocol == "leave-application-out" else protocol,
                models=models,
                devices=devices,
                probes=_probes(probes, protocol),
                level=level,
                studies=bool(studies),
                seed=seed,
                jobs=processes,
                cache=kept,
                figures=figures,
                json=json,
            )
        )
        return
    if of_relative:
        _tell(
            evaluate_relative_of(
                dataset,
                protocol,
                relative,
                models=models,
                devices=devices,
                seed=seed,
                jobs=processes,
                cache=kept,
                figures=figures,
                json=json,
            )
        )
        return
    if protocol == "published":
        _print_published(dataset, effort, seed, kept, processes, figures, json)
        return
    if protocol == CHOICES:
        _tell(
            evaluate_choices_of(
                dataset, choices, seed=seed, jobs=processes, cache=kept, figures=figures, json=json
            )
        )
        return
    from crosscast.evaluation.time_study import study
    from crosscast.predict.time.models import DEFAULT_MODEL
    from crosscast.report.evaluation import print_evaluation

    with FitStatus() as status, option_names():
        found = study(
            dataset,
            models_named(DEFAULT_MODEL if models is None else models),
            protocol,
            probes=_probes(probes, protocol),
            seed=seed,
            level=level,
            progress=status,
            cache=kept,
            jobs=processes,
        )
    if figures is not None:
        from crosscast.report.evaluation_figures import write_figures

        _tell(write_figures(found, figures))
    if json:
        print(json_format.dumps(found.to_dict(), allow_nan=False))
    else:
        print_evaluation(found, sys.stdout)


def _probes(text: str | None, protocol: str) -> list[int]:
    if text is None:
        return [0]
    if protocol == "leave-device-out":
        raise InputError(f"--probes: with {protocol} all other devices are measured; leave the option out")
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--probes: expected numbers such as 0,2, found {text!r}") from None


def _prepare(folder: Path) -> None:
    """Refuse pictures that cannot be drawn or written, before a long run rather than after it."""
    from crosscast.report.canvas import require_matplotlib
    from crosscast.tables.whole_file import make_folder

    require_matplotlib()
    make_folder("--figures", folder)
    check_place("--figures", folder)


def _tell(paths: list[Path]) -> None:
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def _print_published(
    dataset: Dataset,
    effort: Effort,
    seed: int,
    cache: Path | None,
    jobs: int,
    figures: Path | None,
    json: bool,
) -> None:
    from crosscast.report.johnston2018 import print_study
    from crosscast.studies.johnston2018 import PRESETS, reproduce

    with FitStatus("parts") as status, option_names():
        found = reproduce(
            dataset,
            preset=PRESETS[{"quick": "quick", "usual": "default", "thorough": "paper"}[effort]],
            seed=seed,
            progress=status,
            cache=cache,
            jobs=jobs,
        )
    if figures is not None:
        from crosscast.report.johnston2018_figures import write_figures

        _tell(write_figures(found, figures))
    if json:
        print(json_format.dumps(found.to_dict(), allow_nan=False))
    else:
        print_study(found, sys.stdout)
