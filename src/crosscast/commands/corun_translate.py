"""``crosscast corun translate``: times on one device from those on another."""

from __future__ import annotations

from pathlib import Path

from crosscast.commands.options import (
    Output,
    tell,
)
from crosscast.commands.output import show
from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import dataset_named
from crosscast.evaluation.corun.translation import shared_times, train_translation
from crosscast.prediction.corun.translation import write_translation
from crosscast.report.corun import translation_report


def translate(dataset: Path, /, *more: Path, from_: str, to: str, out: Path, output: Output) -> None:
    """Run ``crosscast corun translate``."""
    found = [co_runs(dataset_named(folder)) for folder in (dataset, *more)]
    together = CoRuns(
        found[0].label,
        tuple(solo for each in found for solo in each.solos),
        tuple(bag for each in found for bag in each.bags),
    )
    card = train_translation(shared_times(together, from_, to))
    write_translation(card, out)
    show(output, card.to_dict, lambda: translation_report(card))
    tell(f"wrote {out}")
