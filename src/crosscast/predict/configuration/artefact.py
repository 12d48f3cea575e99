"""The card of a model of configurations: what one may choose from, what to run first, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import (
    CONFIGURATION,
    STORED,
    Part,
    State,
    StoredArrays,
    part_of,
    read_card,
    required_count,
    required_table,
    required_text,
    stored_name,
    write_folder,
)
from crosscast.predict.configuration.data import Observed, Space, Totals
from crosscast.predict.configuration.forecast import ConfigurationPredictor, SurfaceForecast

_MOST_CONFIGURATIONS = 100_000


@dataclass(frozen=True)
class ConfigurationCard:
    """What belongs to a fitted model besides its arrays."""

    model: str  # Name of the model
    seed: int  # Start of the random numbers of its fit
    space: Space  # The configurations
    samples: tuple[int, ...]  # Numbers of those at which a new kernel is run first
    # Domain whose power the model was trained on; `None` where it is the device's by default
    power_domain: str | None
    totals: Totals  # For each device the sets of domains that together are that power
    domains: tuple[str, ...]  # Names of the domains and of the counters that the training data has
    counters: tuple[str, ...]
    # Data that it was fitted to, for people: where from, how many of what, names, a hash
    training: Mapping[str, Any]
    errors: Mapping[str, Any]  # Honest errors; see `crosscast.decide.training.train_chooser`

    @property
    def sample_configurations(self) -> tuple[Configuration, ...]:
        """Where a new kernel is run first."""
        return tuple(self.space.configurations[number] for number in self.samples)

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "target": CONFIGURATION,
            "model": self.model,
            "seed": self.seed,
            "training": dict(self.training),
            "samples": [each.to_dict() for each in self.sample_configurations],
            "power": {
                "domain": self.power_domain,
                "totals": {device: [list(names) for names in sets] for device, sets in self.totals.items()},
            },
            "domains": list(self.domains),
            "counters": list(self.counters),
            "errors": dict(self.errors),
            "configurations": [each.to_dict() for each in self.space.configurations],
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> ConfigurationCard:
        """Read a card; what it holds besides does not matter."""
        fields = Fields(card, where)
        space = _space(fields)
        samples = tuple(_place(space, each) for each in fields.tables("samples"))
        if not samples or len(set(samples)) < len(samples):
            raise InputError(
                f"{where}: samples: expected at least one configuration, and each once, found {len(samples)}"
            )
        power = required_table(fields, "power")
        return cls(
            required_text(fields, "model"),
            required_count(fields, "seed"),
            space,
            samples,
            power.text("domain"),
            _totals(required_table(power, "totals"), space),
            fields.texts("domains"),
            fields.texts("counters"),
            dict(required_table(fields, "training").items()),
            dict(required_table(fields, "errors").items()),
        )


def _space(fields: Fields) -> Space:
    listed = fields.tables("configurations")
    if not 0 < len(listed) <= _MOST_CONFIGURATIONS:
        raise InputError(
            f"{fields.where}: configurations: expected 1 to {_MOST_CONFIGURATIONS}, found {len(listed)}"
        )
    try:
        return Space(tuple(_configuration(each) for each in listed))
    except InputError as error:
        if str(error).startswith(fields.where):
            raise
        raise InputError(f"{fields.where}: {error}") from error


def _configuration(fields: Fields) -> Configuration:
    device = required_text(fields, "device")
    settings = dict(required_table(fields, "settings").items())
    try:
        return Configuration(device, settings)
    except InputError as error:
        raise InputError(f"{fields.where}: {error}") from error


def _place(space: Space, fields: Fields) -> int:
    configuration = _configuration(fields)
    try:
        return space.number_of(configuration)
    except InputError as error:
        raise InputError(f"{fields.where}: {error}") from error


def _totals(fields: Fields, space: Space) -> Totals:
    found = {}
    for device in space.devices:
        sets = fields.take(device) or []
        texts = isinstance(sets, list) and all(
            isinstance(names, list) and names and all(isinstance(name, str) for name in names)
            for names in sets
        )
        if not texts:
            raise fields.fail(device, "lists of names of domains")
        found[device] = tuple(tuple(names) for names in sets)
    return found


CONFIGURATION_KINDS = tuple(name for name, place in STORED.items() if ".configuration." in place)
"""Names of the kinds of models of configurations."""


@dataclass(frozen=True)
class TrainedConfigurationModel:
    """A model that was read from an artefact; a `ConfigurationPredictor` itself."""

    folder: Path  # Where it is
    card: ConfigurationCard  # What it was trained on, and how good it was
    kind: str  # Kind of the model, by which its class is found
    arrays: StoredArrays  # Its arrays, which are read when the first forecast is asked for

    @property
    def space(self) -> Space:
        """The configurations that it predicts."""
        return self.card.space

    @property
    def samples(self) -> tuple[int, ...]:
        """Where a new kernel is run first."""
        return self.card.samples

    @cached_property
    def predictor(self) -> ConfigurationPredictor:
        """What predicts."""
        return self.arrays.made_into(self._made)

    def _made(self, arrays: State) -> ConfigurationPredictor:
        if self.kind not in CONFIGURATION_KINDS:
            raise InputError(
                f"model: kind: expected one of {', '.join(CONFIGURATION_KINDS)}, found {self.kind!r}"
            )
        found: ConfigurationPredictor = part_of(self.kind, arrays)
        if found.space != self.space or tuple(found.samples) != self.samples:
            raise InputError(
                f"model: expected the {len(self.space)} configurations and samples of its card, found others"
            )
        return found

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict one kernel everywhere; see `ConfigurationPredictor.forecast`."""
        return self.predictor.forecast(observed)


def save_configuration_model(
    predictor: ConfigurationPredictor, folder: str | Path, card: ConfigurationCard
) -> None:
    """Write an artefact, in the place of the one that is there."""
    if not isinstance(predictor, Part):
        raise InputError(
            f"model: expected one that can be kept ({', '.join(CONFIGURATION_KINDS)}), found {card.model}"
        )
    kept: Mapping[str, object] = {**card.to_dict(), "kind": stored_name(predictor)}
    write_folder(Path(folder), kept, predictor.state())


def load_configuration_model(folder: str | Path) -> TrainedConfigurationModel:
    """Read the card of an artefact and check it; arrays are read when they are needed."""
    folder = Path(folder)
    card = read_card(folder, CONFIGURATION)
    kind = required_text(card, "kind")
    found = ConfigurationCard.from_dict(dict(card.items()), card.where)
    return TrainedConfigurationModel(
        folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder)
    )
