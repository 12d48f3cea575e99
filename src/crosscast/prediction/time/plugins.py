"""Models of times of other packages: entry points of the group ``crosscast.time_models``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.named_models import PLUGINS
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time.card import Probes, Range, Suggestion, TimeCard, TrainedTimes
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.profile import Profile


@runtime_checkable
class TimeModel(Protocol):
    """A model of a package: an entry point is a function without arguments that returns one."""

    @property
    def about(self) -> str:
        """One line on what the model predicts."""

    @property
    def devices(self) -> Sequence[Device]:
        """The default devices of predictions."""

    def predict(
        self, profiles: Sequence[Profile], devices: Sequence[Device], level: float
    ) -> tuple[Reals, Reals, Reals]:
        """Seconds of each of ``n`` launches on ``d`` devices, of shape ``(n, d)``: medians, and the lower and
        upper limits of intervals that hold the time with a probability of `level`.
        """


@dataclass(frozen=True, eq=False)
class PluggedTimeModel(TrainedTimes[TimeModel]):
    """A model of another package, with the interface of Crosscast's models."""

    @classmethod
    def of(cls, name: str, package: str, model: TimeModel) -> PluggedTimeModel:
        """The model of a package by its name."""
        card = TimeCard(
            model=name,
            seed=0,
            training={"about": model.about, "package": package},
            toolchains=(),
            devices=tuple(model.devices),
            metrics=(),
            time_s=Range(0.0, float("inf")),
            errors={},
        )
        return cls(card, model)

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> TimeModel:
        """Raise InputError: the model is in its package."""
        raise InputError.of(where=stored.folder, expected="a model of Crosscast", found=card.model)

    def arrays(self) -> Arrays:
        """Raise InputError: the model's state is in its package."""
        raise InputError.of(where="model", expected="one that can be kept", found=self.card.model)

    def _predict(
        self, batch: ProfileBatch, devices: Sequence[Device], probes: Probes | None, level: float
    ) -> TimeForecast:
        """Predict times, means over the launches of each kernel."""
        if probes is not None:
            raise InputError.of(field="probe", problem=f"the model {self.card.model} takes no measured times")
        if not batch.launches:
            raise InputError.of(where="profiles", expected="whole profiles", found="metrics alone")
        launches = [launch for group in batch.launches for launch in group]
        answers = self.fitted.predict(launches, devices, level)
        centre, low, high = self._checked(answers, (len(launches), len(devices)))
        middle, least, most = map(batch.mean_of_launches, (centre, low, high))
        keys = tuple(each.key for each in devices)
        return TimeForecast(batch, keys, middle, least, most, level, warnings=((),) * len(batch))

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Raise InputError: such a model takes no measured times."""
        raise InputError(f"suggest-probes: the model {self.card.model} takes no measured times")

    def _checked(self, answers: Sequence[Reals], shape: tuple[int, int]) -> list[Reals]:
        arrays = [np.asarray(each, dtype=np.float64) for each in answers]
        if [each.shape for each in arrays] != [shape] * 3:
            shapes = ", ".join(str(each.shape) for each in arrays)
            raise InputError(
                f"model {self.card.model}: expected three arrays of shape {shape}, found {shapes}"
            )
        centre, low, high = arrays
        ordered = (low > 0) & (low <= centre) & (centre <= high) & np.isfinite(high)
        if not ordered.all():
            raise InputError(
                f"model {self.card.model}: expected finite seconds above 0, each median between its limits"
            )
        return arrays


def plugged_model(name: str) -> PluggedTimeModel:
    """Load a model of another package: its code runs.

    Raises
    ------
    InputError
        If it cannot be imported, or is no model of times.
    """
    entry = {each.name: each for each in metadata.entry_points(group=PLUGINS)}[name]
    package = entry.dist.name if entry.dist else ""
    try:
        model = entry.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise InputError(f"model {name}: {entry.value} of {package} cannot be loaded ({error})") from error
    if not isinstance(model, TimeModel):
        raise InputError(
            f"model {name}: expected {entry.value} to return a model with about, devices and predict, "
            f"found {type(model).__name__}"
        )
    return PluggedTimeModel.of(name, package, model)
