"""The card of a model of configurations: what one may choose from, what to run first, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.card_file import CONFIGURATION
from crosscast.predict.configuration.power_totals import Totals
from crosscast.predict.configuration.space import Space
from crosscast.predict.required import required_count, required_table, required_text

__all__ = ["ConfigurationCard"]

_MOST_CONFIGURATIONS = 100_000


@dataclass(frozen=True)
class ConfigurationCard:
    """What belongs to a fitted model besides its arrays.

    Parameters
    ----------
    model
        Name of the model.
    seed
        Start of the random numbers of its fit.
    space
        The configurations.
    samples
        Numbers of those at which a new kernel is run first.
    power_domain
        Domain whose power the model was trained on; ``None`` where it is the device's by default.
    totals
        For each device the sets of domains that together are that power.
    domains, counters
        Names of the domains and of the counters that the training data has.
    training
        Data that it was fitted to, for people: where from, how many of what, names, a hash.
    errors
        Honest errors; see `crosscast.choose.training.train_chooser`.
    """

    model: str
    seed: int
    space: Space
    samples: tuple[int, ...]
    power_domain: str | None
    totals: Totals
    domains: tuple[str, ...]
    counters: tuple[str, ...]
    training: Mapping[str, Any]
    errors: Mapping[str, Any]

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
        """Read a card; what it holds besides does not matter.

        Parameters
        ----------
        card
            The JSON object.
        where
            Its file, for messages.

        Raises
        ------
        InputError
            If something is missing or wrong; the message names the field.
        """
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
