"""What the page about a dataset shows: the evaluation, and the model and application that it looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.description import Description, describe
from crosscast.data.schema import size_order
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.evaluation.resampling import Confidence
from crosscast.evaluation.time.results import Result, TimeEvaluation
from crosscast.evaluation.time.scores import Outcome, choices
from crosscast.prediction.time.data import Grid, devices_of
from crosscast.prediction.time.models import BASELINES


@dataclass(frozen=True)
class Subject:
    """All that the page shows."""

    dataset: Dataset  # The dataset
    description: Description  # What is in it
    study: TimeEvaluation  # How models predict it, each application left out in turn and no time known
    result: Result  # The model that is shown
    application: str  # The application that is looked at closely
    title: str  # Title of the page

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        study: TimeEvaluation,
        *,
        application: str | None = None,
        title: str | None = None,
    ) -> Subject:
        """Choose what to show."""
        result = study.best(0)
        if result is None:
            raise InputError.of(
                where=study.label, expected="a measurement point that is predicted and measured", found="none"
            )
        if application is None:
            application = _in_the_middle(result)
        else:
            check_application(study.grid, application)
        named = title if title is not None else f"Predicted kernel times: {study.label}"
        return cls(dataset, describe(dataset), study, result, application, named)

    @property
    def grid(self) -> Grid:
        """Kernels, devices and times."""
        return self.study.grid

    @property
    def devices(self) -> tuple[Device, ...]:
        """Devices of the grid."""
        return self.grid.devices

    @cached_property
    def described(self) -> Mapping[str, Device]:
        """All devices of the dataset, by key."""
        return devices_of(self.dataset)

    @property
    def confidence(self) -> Confidence:
        """How sure the scores of the model are."""
        places = {id(each): place for place, each in enumerate(self.study.results)}
        return self.study.confidences[places[id(self.result)]]

    @property
    def candidates(self) -> int:
        """Models of which the one that is shown has the least error, without the baselines."""
        return sum(each.model not in BASELINES for each in self.study.results)

    @cached_property
    def outcome(self) -> Outcome:
        """What was forecast and measured, a row for each row of the grid."""
        (found,) = self.result.outcomes
        order = np.argsort(found.rows, kind="stable")
        return replace(
            found,
            application=tuple(found.application[place] for place in order.tolist()),
            **{
                name: getattr(found, name)[order]
                for name in ("measured", "centre", "low", "high", "scored", "known", "rows")
            },
        )

    @cached_property
    def slowdown(self) -> Reals:
        """Measured time on the recommended device over the least one, for each row of the grid."""
        return choices(self.outcome)["slowdown"]

    @cached_property
    def recommended(self) -> Integers:
        """Column of the device with the least predicted time of those measured, for each row of the grid."""
        outcome = self.outcome
        found: Integers = np.argmin(np.where(np.isfinite(outcome.measured), outcome.centre, np.inf), axis=1)
        return found

    @property
    def rows(self) -> list[int]:
        """Rows of the grid that are looked at closely: by kernel, then from the least size."""
        profiles = self.grid.profiles
        found = [row for row, name in enumerate(profiles.application) if name == self.application]
        return sorted(found, key=lambda row: (profiles.kernel[row], size_order(profiles.size[row])))

    @property
    def largest(self) -> list[int]:
        """Of these, each kernel's largest size."""
        return list({self.grid.profiles.kernel[row]: row for row in self.rows}.values())

    def to_dict(self) -> dict[str, Any]:
        """What is in the page, as the object that ``--json`` prints; shares are fractions."""
        description = self.description
        return {
            "title": self.title,
            "model": self.result.model,
            "application": self.application,
            "contents": {
                "applications": list(description.applications),
                "kernels": list(description.kernels),
                "sizes": list(description.sizes),
                "devices": [_listed(self.described[key]) for key in description.devices],
                "cells": description.cells,
                "records": description.records,
                "profiles": description.profiles,
            },
            "evaluation": self.study.to_dict(),
            "cells": [cell for row in range(len(self.grid.profiles)) for cell in self._cells(row)],
        }

    def _cells(self, row: int) -> list[dict[str, Any]]:
        profiles, outcome = self.grid.profiles, self.outcome
        kernel = {
            "application": profiles.application[row],
            "kernel": profiles.kernel[row],
            "size": profiles.size[row],
        }
        slowdown = _known(self.slowdown[row])
        return [
            {
                **kernel,
                "device": device.key,
                "measured_s": _seconds(outcome.measured[row, column]),
                "predicted_s": _seconds(outcome.centre[row, column]),
                "low_s": _seconds(outcome.low[row, column]),
                "high_s": _seconds(outcome.high[row, column]),
                "recommended": bool(column == self.recommended[row]),
                "slowdown": slowdown if column == self.recommended[row] else None,
            }
            for column, device in enumerate(self.devices)
        ]


def check_application(grid: Grid, name: str) -> None:
    """Refuse an application that is not there."""
    names = grid.applications
    if name not in names:
        raise InputError.of(where="application", expected=f"one of {', '.join(names)}", found=repr(name))


def _in_the_middle(result: Result) -> str:
    """The application whose median error is the median of all; the better one of two."""
    errors = sorted(
        (scores.median_ape, name)
        for name, scores in result.applications.items()
        if scores.median_ape is not None
    )
    return errors[(len(errors) - 1) // 2][1]


def _listed(device: Device) -> dict[str, Any]:
    return {
        "device": device.key,
        "name": device.name,
        "vendor": device.vendor or None,
        "type": device.type or None,
        "series": device.series or None,
        **device.numbers,
    }


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _seconds(log_time: float) -> float | None:
    with np.errstate(over="ignore"):
        return _known(np.exp(log_time))
