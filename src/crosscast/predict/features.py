"""What models that know no physics see of a profile: logarithms of amounts, and what they stand for.

Amounts enter as ``log(1 + amount)``, since many of them may be 0. All features are finite for every sound
profile, so none of them needs a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.grid import Profiles, metric
from crosscast.predict.state import kept_names

__all__ = ["FEATURES", "Feature", "Features"]

_LARGEST = 1e30


@dataclass(frozen=True)
class Feature:
    """One feature.

    Parameters
    ----------
    name
        Its name in artefacts.
    meaning
        Why it should tell something about time.
    needs
        Metrics that it is made of.
    formula
        Makes it from these metrics, each of shape ``(n,)``.
    """

    name: str
    meaning: str
    needs: tuple[str, ...]
    formula: Callable[..., Reals]


def _log(amount: Reals) -> Reals:
    return np.log1p(amount)


def _log_ratio(amount: Reals, other: Reals) -> Reals:
    return np.log1p(amount) - np.log1p(other)


def _log_each(amount: Reals, items: Reals) -> Reals:
    return np.log1p(amount / np.maximum(items, 1.0))


def _steps_on(lanes: int) -> Callable[[Reals, Reals], Reals]:
    """Logarithm of the steps that `lanes` lanes take if each works on a work-item at a time."""

    def steps(instructions: Reals, items: Reals) -> Reals:
        return np.log1p(instructions) - np.log(np.clip(items, 1.0, lanes))

    return steps


def _same(amount: Reals) -> Reals:
    return amount


def _difference(more: Reals, less: Reals) -> Reals:
    return more - less


def _log_sum(one: Reals, other: Reals) -> Reals:
    return np.log1p(one + other)


def _sum_ratio(one: Reals, other: Reals, whole: Reals) -> Reals:
    return np.log1p(one + other) - np.log1p(whole)


_WORK = ("total_instruction_count", "work_items")
_ALL_BITS = "global_memory_address_entropy"
_LINES = "local_memory_address_entropy_6"
_KIBIBYTES = "local_memory_address_entropy_10"

FEATURES: tuple[Feature, ...] = (
    Feature("instructions", "work, as one lane sees it", ("total_instruction_count",), _log),
    *(
        Feature(
            f"steps_on_{lanes}", f"work, as {lanes} lanes see it that few work-items leave idle", _WORK, f
        )
        for lanes, f in ((lanes, _steps_on(lanes)) for lanes in (16, 256, 4096, 65536))
    ),
    Feature("instructions_per_item", "work, as endless lanes see it", _WORK, _log_ratio),
    Feature("work_items", "how much can be done at once", ("work_items",), _log),
    Feature("work_groups", "what is handed out to compute units", ("work_groups",), _log),
    Feature("imbalance", "work that the longest work-item has more", ("load_imbalance",), _log),
    Feature("barriers_per_item", "how often lanes wait", ("total_barriers_hit", "work_items"), _log_each),
    Feature("between_barriers", "work between waits", ("median_itb",), _log),
    Feature("simd_width", "elements that an instruction makes", ("mean_simd_width",), _same),
    Feature("footprint", "data that has to come from memory once", ("total_memory_footprint",), _log),
    Feature(
        "footprint_per_instruction",
        "data for the work that is done on it",
        ("total_memory_footprint", "total_instruction_count"),
        _log_ratio,
    ),
    Feature(
        "footprint_per_item",
        "data of a work-item; where it is much, neighbours are far apart",
        ("total_memory_footprint", "work_items"),
        _log_ratio,
    ),
    Feature("hot_share", "how even accesses are", ("footprint_90", "total_memory_footprint"), _log_ratio),
    Feature("accesses", "loads and stores", ("total_reads", "total_writes"), _log_sum),
    Feature(
        "accesses_per_instruction",
        "loads and stores among the work",
        ("total_reads", "total_writes", "total_instruction_count"),
        _sum_ratio,
    ),
    Feature("local_accesses", "what local memory serves", ("local_accesses",), _log),
    Feature(
        "address_entropy", "bits of addresses: how much is accessed, and how evenly", (_ALL_BITS,), _same
    ),
    Feature("within_lines", "bits of it within 64 B", (_ALL_BITS, _LINES), _difference),
    Feature("within_kibibytes", "bits of it between 64 B and 1 KiB", (_LINES, _KIBIBYTES), _difference),
    Feature("branches", "places where lanes may part", ("unique_branches",), _log),
    Feature("branch_entropy", "how unlike branches go", ("yokota_branch_entropy",), _same),
    Feature("opcodes", "kinds of instructions", ("opcode",), _log),
)
"""All features, in the order in which they are shown to models."""

_BY_NAME = {each.name: each for each in FEATURES}
_NAMES = tuple(each.name for each in FEATURES)


@dataclass(frozen=True)
class Features:
    """The features that can be had of all kernels of a training grid, in the order of `FEATURES`.

    Published profiles know about half of the metrics, so what models see depends on what they are fitted to.

    Parameters
    ----------
    names
        Names of the ``f`` features.
    """

    names: tuple[str, ...]

    @classmethod
    def fit(cls, profiles: Profiles, among: Collection[str] = _NAMES) -> Features:
        """Choose those whose metrics all kernels have, among some.

        Raises
        ------
        InputError
            If there is none.
        """
        sound = {name: bool(_sound(metric(profiles, name)).all()) for name in _needed(among)}
        names = tuple(
            each.name for each in FEATURES if each.name in among and all(sound[need] for need in each.needs)
        )
        if not names:
            lacking = ", ".join(name for name in sound if not sound[name])
            raise InputError(
                f"profiles: expected metrics that all kernels have, found some without {lacking}"
            )
        return cls(names)

    def matrix(self, profiles: Profiles) -> Reals:
        """Features of ``n`` profiles, of shape ``(n, f)``; finite.

        Raises
        ------
        InputError
            If a profile lacks a metric.
        """
        metrics = {name: metric(profiles, name) for name in _needed(self.names)}
        for name, values in metrics.items():
            _check(profiles, name, values)
        chosen = [_BY_NAME[name] for name in self.names]
        return np.column_stack([each.formula(*(metrics[need] for need in each.needs)) for each in chosen])

    def places(self, names: Collection[str]) -> list[int]:
        """Columns of the features with these names, as far as they are there."""
        return [place for place, name in enumerate(self.names) if name in names]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {"features": np.array(self.names)}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Features:
        """Make them from their arrays.

        Raises
        ------
        InputError
            If the names are not those of features.
        """
        names = kept_names(state, "features")
        unknown = sorted(set(names) - set(_NAMES))
        if unknown or not names or len(set(names)) != len(names):
            found = ", ".join(unknown or names) or "none"
            raise InputError(
                f"model: features: expected some of {', '.join(_NAMES)}, each once, found {found}"
            )
        return cls(names)


def _needed(names: Collection[str]) -> tuple[str, ...]:
    """Metrics of which features of these names are made, each once."""
    return tuple(dict.fromkeys(need for each in FEATURES if each.name in names for need in each.needs))


def _sound(values: Reals) -> Flags:
    # Not a number is neither; larger ones would not fit into single precision once they are multiplied.
    return (values >= 0) & (values <= _LARGEST)


def _check(profiles: Profiles, name: str, values: Reals) -> None:
    sound = _sound(values)
    if sound.all():
        return
    row = int(np.argmin(sound))
    kernel = "/".join((profiles.application[row], profiles.kernel[row], profiles.size[row]))
    found = "none" if np.isnan(values[row]) else f"{values[row]:g}"
    raise InputError(
        f"profile of {kernel}: {name}: expected a number from 0 to {_LARGEST:g}, which the model needs, "
        f"found {found}"
    )
