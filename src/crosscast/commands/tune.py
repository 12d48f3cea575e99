"""``crosscast tune``, the best variants of a kernel on devices, and ``evaluate tune``, how good they are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.evaluate import EvaluateTune
from crosscast.cli.options import share_in
from crosscast.cli.predict import Tune
from crosscast.commands.output import TaskStatus, check_writable, show, tell, warn
from crosscast.data.dataset import dataset_named
from crosscast.data.files import atomic_file, make_folder
from crosscast.devices.device_files import read_device
from crosscast.errors import InputError
from crosscast.prediction.time.datasets import read_training
from crosscast.report.tuning import evaluation_figures, evaluation_report, ranking_figures, ranking_report
from crosscast.results import rows_of
from crosscast.tuning.evaluation import evaluate_tuning
from crosscast.tuning.ranking import Ranking
from crosscast.tuning.space_files import read_space, t1_of, t4_of
from crosscast.tuning.tune import tune as ranked

if TYPE_CHECKING:
    from crosscast.device import Device


def tune(options: Tune) -> None:
    """Run ``crosscast tune``."""
    if options.out is not None:
        check_writable("--out", options.out)
    share = share_in("--within", options.within, "2% or 0.02", end=1)
    if options.on is not None and not options.measure:
        raise InputError.of(where="--on", expected="it beside --measure", found="it alone")

    devices: list[str | Device] = [*(options.devices or ()), *map(read_device, options.device_file)]
    with TaskStatus("variants") as status:
        ranking = ranked(
            options.file,
            options.space,
            devices,
            kernel=options.kernel,
            model=options.model,
            profiles=options.profiles,
            measure=options.measure,
            within=share,
            on=options.on,
            progress=status,
            begin=status.begin,
        )
    if options.out is not None:
        write_results(ranking, options.out)
    show(
        options.output,
        lambda: answer_of(ranking),
        lambda: ranking_report(ranking),
        lambda: ranking_figures(ranking),
    )


def evaluate(options: EvaluateTune) -> None:
    """Run ``crosscast evaluate tune``."""
    spaces = list(map(read_space, options.space))
    tables = None if options.training is None else read_training(options.training)
    with TaskStatus("variants") as status:
        evaluation = evaluate_tuning(
            dataset_named(options.dataset),
            spaces,
            training=tables,
            model=options.model,
            devices=options.devices,
            profiles=options.profiles,
            strategies=options.strategies or (),
            progress=status,
            begin=status.begin,
            tell=tell,
        )
    show(
        options.output,
        evaluation.to_dict,
        lambda: evaluation_report(evaluation),
        lambda: evaluation_figures(evaluation),
    )


def answer_of(ranking: Ranking) -> dict[str, object]:
    """Return the object that ``--json`` prints: facts about the ranking, and a row for each variant."""
    names = list(ranking.variants.names)
    return {
        "kernel": ranking.space.rule.kernel,
        "space": ranking.space.where,
        "variants": len(ranking),
        "drawn": ranking.variants.drawn,
        "profiled": int(ranking.profiled.sum()),
        "level": ranking.level,
        "count_error": dict(zip(ranking.devices, ranking.count_error.tolist(), strict=True)),
        "not_profiled": dict(ranking.failed),
        "not_run": {ranking.variants.labels[row]: reason for row, reason in ranking.not_run.items()},
        "notes": list(ranking.notes),
        "ranking": [
            {name: cell for name, cell in row.items() if name not in names}
            | {"parameters": {name: row[name] for name in names}}
            for row in rows_of(ranking.plain_columns())
        ],
    }


def write_results(ranking: Ranking, folder: Path) -> None:
    """Write the ranking, and space and results as Kernel Tuner does; of what was measured no forecast."""
    make_folder(folder, "--out")
    order = ranking.order(ranking.devices[0]).tolist()
    rows = [*ranking.measured, *ranking.not_run] if ranking.measured else order
    forecasts = [
        {
            f"forecast_{key}": math.exp(ranking.log_time[row, column])
            for column, key in enumerate(ranking.devices)
            if math.isfinite(ranking.log_time[row, column]) and row not in ranking.measured
        }
        for row in rows
    ]
    results = t4_of(
        [ranking.variants[row] for row in rows],
        {number: [ranking.measured[row]] for number, row in enumerate(rows) if row in ranking.measured},
        {number: "runtime" for number, row in enumerate(rows) if row in ranking.not_run},
        forecasts,
    )
    contents = {"ranking": answer_of(ranking), "t4": results}
    try:
        contents["t1"] = t1_of(ranking.space, ranking.space.rule.kernel)
    except InputError as error:
        warn(f"t1.json is left out ({error})")
    for name, content in contents.items():
        path = folder / f"{name}.json"
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        tell(f"wrote {path}")
