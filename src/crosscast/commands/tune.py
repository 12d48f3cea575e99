"""``crosscast tune``: the best variants of a kernel on devices, and what measuring some of them adds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.decide import TuneOptions
from crosscast.commands.output import check_folder, check_output, show
from crosscast.commands.status import TaskStatus, tell
from crosscast.data.files import made, whole_file
from crosscast.devices.device_files import read_device
from crosscast.errors import InputError
from crosscast.report.tuning import ranking_figures, ranking_report
from crosscast.tuning.exchange import t1_of, t4_of
from crosscast.tuning.ranking import Ranking
from crosscast.tuning.tune import tune as ranked

if TYPE_CHECKING:
    from crosscast.device import Device


def tune(file: Path, /, *, options: TuneOptions) -> None:
    """Run ``crosscast tune``."""
    check_output(options.output)
    check_folder("--out", options.out)
    share = _share(options.within)
    if options.on is not None and not options.measure:
        raise InputError.of(where="--on", expected="it beside --measure", found="it alone")

    asked: list[str | Device] = [*(options.devices or ()), *map(read_device, options.device_file)]
    with TaskStatus("variants") as status:
        found = ranked(
            file,
            options.space,
            asked,
            kernel=options.kernel,
            model=options.model,
            profiles=options.profiles,
            measure=options.measure,
            within=share,
            on=options.on,
            progress=status,
        )
    if options.out is not None:
        _write(found, options.out)
    show(
        options.output,
        lambda: answer_of(found),
        lambda: ranking_report(found),
        lambda: ranking_figures(found),
    )


def _share(text: str) -> float:
    """A share such as ``2%`` or ``0.02``."""
    number, percent = text.strip().removesuffix("%").strip(), text.strip().endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise InputError.of(where="--within", expected="a share such as 2% or 0.02", found=repr(text))
    return share


def answer_of(found: Ranking) -> dict[str, object]:
    """What ``--json`` prints: how the ranking was made, and a row for each variant and device."""
    columns = found.plain_columns()
    names = list(found.variants.names)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    others = [name for name in columns if name not in names]
    return {
        "kernel": found.space.rule.kernel,
        "space": found.space.where,
        "variants": len(found),
        "drawn": found.variants.drawn,
        "profiled": int(found.ran.sum()),
        "level": found.level,
        "count_error": dict(zip(found.devices, found.count_error.tolist(), strict=True)),
        "not_profiled": dict(found.failed),
        "not_run": {found.variants.labels[row]: why for row, why in found.tried.items()},
        "notes": list(found.notes),
        "ranking": [
            {
                **{name: row[name] for name in others},
                "parameters": {name: row[name] for name in names},
            }
            for row in rows
        ],
    }


def _write(found: Ranking, folder: Path) -> None:
    made(folder, "--out")
    order = found.order(found.devices[0]).tolist()
    rows = [*found.measured, *found.tried] if found.measured else order
    forecasts = [
        {
            f"forecast_{key}": math.exp(found.log_time[row, place])
            for place, key in enumerate(found.devices)
            if math.isfinite(found.log_time[row, place])
        }
        for row in rows
    ]
    results = t4_of(
        [found.variants[row] for row in rows],
        {number: [found.measured[row]] for number, row in enumerate(rows) if row in found.measured},
        {number: "runtime" for number, row in enumerate(rows) if row in found.tried},
        forecasts,
    )
    contents = {
        "ranking": answer_of(found),
        "t1": t1_of(found.space, found.space.rule.kernel),
        "t4": results,
    }
    for name, content in contents.items():
        path = folder / f"{name}.json"
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        tell(f"wrote {path}")
