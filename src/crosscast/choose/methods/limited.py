"""Any choice followed by limiting: steps from it by the measured power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crosscast.arrays import Flags
from crosscast.choose.limit import GUARD, within_cap
from crosscast.choose.steps import step_down, step_up
from crosscast.choose.walk import Chooser, Method, Walk
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Limited", "limited"]


@dataclass(frozen=True)
class Limited:
    """A method whose first choice is corrected by what is measured: see `limited`.

    With `returns`, the last change that is left is spent on the fastest that was measured within the cap, if
    any was: that is better than a step down where the first choice is far above the cap, and worse where it
    is near.
    """

    inner: Method
    ups: bool
    name: str
    confidence: float | None = None
    baseline: bool = False
    returns: bool = False

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the method that is limited; see `Method.fit`."""
        chooser = self.inner.fit(surfaces, samples, seed)
        return _LimitedChooser(chooser, surfaces.space, self.ups, self.returns, self.ups or self.returns)


def limited(method: Method, ups: bool = False) -> Limited:
    """Add limiting to a method that chooses once (Model+FL of Bailey et al. 2014, section V-A).

    It starts at the method's choice and steps down, as `step_down` does with all knobs, while the measured
    power is over the cap. In the end it takes the fastest of all configurations that were measured within
    the cap, the samples included.

    Parameters
    ----------
    method
        The method; of its walk only the first configuration is taken.
    ups
        Whether to step up as well. While the power is under the cap: the first knob, until a step of it takes
        too much or brings nothing; then the next one. A step is only taken if there is a change left to go
        back. And if the power is over the cap with all knobs at their minimum: the last knob first, as long
        as that costs no power beyond noise, as a knob that does not bind changes nothing but the noise.

    Returns
    -------
    Limited
        The method ``NAME+fl``, or ``NAME+steps`` with `ups`.
    """
    return Limited(
        method,
        ups,
        f"{method.name}+{'steps' if ups else 'fl'}",
        getattr(method, "confidence", None),
        getattr(method, "baseline", False),
    )


@dataclass(frozen=True)
class _LimitedChooser:
    inner: Chooser
    space: Space
    ups: bool
    returns: bool
    uses_budget: bool

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        first = self.inner.walk(observed, power_cap, available, 0)
        number = next(first)
        first.close()
        path = _Path(self.space, available, power_cap, number, budget)
        path.add(observed)
        path.add((yield number))
        yield from _down(path, self.returns)
        if self.ups:
            yield from _up(path) if path.within(path.number) else _sideways(path)
        best = path.best()
        if best is not None and best != path.number:
            yield best


@dataclass
class _Path:
    """Where a walk is, what it has measured, and how many changes are left."""

    space: Space
    available: Flags
    power_cap: float
    number: int
    left: int
    time_s: dict[int, float] = field(default_factory=dict)
    power_w: dict[int, float] = field(default_factory=dict)

    def add(self, runs: Observed) -> None:
        numbers = runs.numbers.tolist()
        self.time_s.update(zip(numbers, runs.time_s.tolist(), strict=True))
        self.power_w.update(zip(numbers, runs.power_w.tolist(), strict=True))

    def take(self, number: int) -> Walk:
        self.number, self.left = number, self.left - 1
        self.add((yield number))

    def within(self, number: int) -> bool:
        return within_cap(self.power_w[number], self.power_cap)

    def best(self) -> int | None:
        """The fastest of those within the cap; of several the first measured."""
        inside = [number for number in self.time_s if self.within(number)]
        return min(inside, key=self.time_s.__getitem__, default=None)


def _down(path: _Path, returns: bool) -> Walk:
    """Step down while over the cap."""
    while not path.within(path.number):
        if returns and path.left == 1 and path.best() is not None:
            return
        down = step_down(path.space, path.number, path.available, path.space.knobs)
        if down is None:
            return
        yield from path.take(down)


def _sideways(path: _Path) -> Walk:
    """While over the cap at the bottom: step up what costs no power."""
    bottom = path.number
    for knob in reversed(path.space.knobs):
        base = bottom
        while path.left > 0 and not path.within(path.number):
            up = step_up(path.space, base, path.available, (knob,))
            if up is None or path.power_w[base] > path.power_w[bottom] * (1 + GUARD):
                break
            if up not in path.power_w:
                yield from path.take(up)
            base = up


def _up(path: _Path) -> Walk:
    """While under the cap: step up what makes it faster, as long as there is a change left to go back."""
    base = path.number
    for knob in path.space.knobs:
        while path.left >= 2 and path.within(base):
            up = step_up(path.space, base, path.available, (knob,))
            if up is None:
                break
            if up not in path.time_s:
                yield from path.take(up)
            if not path.within(up) or path.time_s[up] >= path.time_s[base]:
                break
            base = up
