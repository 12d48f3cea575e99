"""``crosscast corun translate``: times on one device from those on another."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.corun import CorunTranslateOptions
from crosscast.commands.output import show
from crosscast.commands.status import tell
from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import dataset_named
from crosscast.evaluation.corun.translation import shared_times, train_translation
from crosscast.prediction.corun.translation import write_translation
from crosscast.report.corun import translation_report


def translate(dataset: Path, /, *more: Path, options: CorunTranslateOptions) -> None:
    """Run ``crosscast corun translate``."""
    found = [co_runs(dataset_named(folder)) for folder in (dataset, *more)]
    together = CoRuns(
        found[0].label,
        tuple(solo for each in found for solo in each.solos),
        tuple(bag for each in found for bag in each.bags),
    )
    card = train_translation(shared_times(together, options.source, options.target))
    write_translation(card, options.out)
    show(options.output, card.to_dict, lambda: translation_report(card))
    tell(f"wrote {options.out}")
