"""Evaluation and training of models and methods that choose configurations.

Its options stand here, where the command line reads them without the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from crosscast.data.configuration import Configuration

ConfigurationFolds = Literal["leave-benchmark-out"]
"""Names of the folds."""


@dataclass(frozen=True)
class ConfigurationEvaluationOptions:
    """Options of `crosscast.evaluate` for ``configuration``."""

    devices: str | Sequence[str] | None = None  # Keys of one machine's devices; by default all
    power_domain: str | None = None  # The capped one; by default the node, or the sum of all domains
    # Where a new kernel is run first, as configurations or as the text of `parse_configurations`; by default
    # the two most informative ones
    samples: Sequence[Configuration] | str | None = None
    groups: Sequence[
        Sequence[str]
    ] = ()  # Programs that are held out together, besides those of similar names
    max_retunes: int | None = None  # Most changes after the first choice; by default no limit
    cap_probability: float | None = None  # With which choices keep to the cap; by default 0.9


@dataclass(frozen=True)
class ConfigurationTrainingOptions:
    """Options of `crosscast.train` for ``configuration``."""

    devices: str | Sequence[str] | None = None
    power_domain: str | None = None
    samples: Sequence[Configuration] | str | None = None
    held_out: Sequence[str] | None = None  # Applications that are held out in turn; by default all
