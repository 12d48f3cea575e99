"""Where a kernel at a configuration lies: its features, and the settings as they look from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.references import references
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed

__all__ = ["SettingInputs", "cap_domains", "capped_domains"]

_CAP = re.compile(r"(?:(?P<domain>\w+)_)?(?:cap|limit)_w")
_BEYOND = 0.3
"""A cap that is this far above what a kernel takes, in logarithms, is as good as none."""


def cap_domains(space: Space, domains: Sequence[str]) -> dict[str, str]:
    """Knobs that cap power, and the domain that each caps; an empty text for all power.

    Parameters
    ----------
    space
        The configurations; a knob ``cpu_cap_w`` caps the domain ``cpu``.
    domains
        Names of the domains whose power is known.
    """
    found = {}
    for knob in space.knobs:
        match = _CAP.fullmatch(knob)
        if match:
            domain = match["domain"] or ""
            found[knob] = domain if domain in domains else ""
    return found


def capped_domains(space: Space, domains: Sequence[str]) -> tuple[str, ...]:
    """Those of some domains that have a cap of their own, sorted."""
    return tuple(sorted({*cap_domains(space, domains).values()} - {""}))


@dataclass(frozen=True, eq=False)
class SettingInputs:
    """Coordinates of ``c`` configurations, some of which depend on what a kernel takes.

    Parameters
    ----------
    fixed
        ``(c, a)`` Logarithms of the knobs, and a column for each word and device; standardised.
    caps
        ``(c, b)`` Logarithm of each cap in watts; 0 where a device has none.
    has_cap
        ``(c, b)`` 1 where it has one, else 0.
    domains
        ``(b,)`` The domain that each caps; empty for all power.
    reference
        ``(c,)`` From which sample run the power without cap is read.
    """

    fixed: Reals
    caps: Reals
    has_cap: Reals
    domains: tuple[str, ...]
    reference: Integers

    @classmethod
    def of(cls, space: Space, samples: Sequence[int], domains: Sequence[str]) -> SettingInputs:
        """Those of a space.

        Parameters
        ----------
        space
            The configurations.
        samples
            Numbers of the sample configurations.
        domains
            Names of the domains whose power is known.
        """
        capped = cap_domains(space, domains)
        columns = [space.knobs.index(knob) for knob in capped]
        caps = space.matrix[:, columns]
        known = np.isfinite(caps)
        return cls(
            _standardized(_columns(space)),
            np.log(np.where(known, caps, 1.0)),
            known.astype(np.float64),
            tuple(capped.values()),
            references(space, samples),
        )

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.fixed.shape[1] + self.caps.shape[1])

    def seen_by(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(c, a + b)`` Coordinates; a cap counts by how far it is below what the kernel takes.

        Parameters
        ----------
        observed
            The kernel's runs.
        places
            Which of them are those at the samples, in the samples' order.
        """
        at = np.array(places)
        columns = [self.fixed]
        for number, domain in enumerate(self.domains):
            powers = observed.domains[domain][at] if domain in observed.domains else observed.power_w[at]
            powers = np.where(powers > 0, powers, observed.power_w[at])
            margin = self.caps[:, number] - np.log(powers)[self.reference]
            near = np.clip(margin, -1.0, _BEYOND) / _BEYOND
            columns.append((near * self.has_cap[:, number])[:, None])
        return np.hstack(columns)


def _columns(space: Space) -> Reals:
    columns = []
    for values in space.matrix.T:
        known = np.isfinite(values)
        # Knobs act by ratios: twice the clock, twice the cores.
        positive = bool((values[known] > 0).all())
        scaled = np.log(np.where(known, values, 1.0)) if positive else np.where(known, values, 0.0)
        columns.append(np.where(known, scaled, scaled[known].mean()))
    for name in space.words:
        words = np.array([str(each.settings.get(name, "")) for each in space.configurations])
        columns += [(words == word).astype(np.float64) for word in np.unique(words)[1:]]
    columns += [
        (space.device_numbers == number).astype(np.float64) for number in range(1, len(space.devices))
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(space), 0))


def _standardized(columns: Reals) -> Reals:
    spread = columns.std(axis=0)
    scaled: Reals = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled
