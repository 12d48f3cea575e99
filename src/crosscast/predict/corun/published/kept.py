"""Fitted regressors as numbers: predicted with numpy alone, as scikit-learn would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_names, kept_reals
from crosscast.predict.trees import Trees

__all__ = ["Grown", "Kernels", "Linear", "Network", "Regressor", "kept_regressor"]


class Regressor(Protocol):
    """A fitted function of rows of features."""

    @property
    def form(self) -> str:
        """What it is kept as."""
        ...

    def predict(self, rows: Reals) -> Reals:
        """What it predicts of rows, of shape ``(r, f)``: of shape ``(r,)``."""
        ...

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `kept_regressor` makes it again."""
        ...


@dataclass(frozen=True, eq=False)
class Grown:
    """A decision tree, a forest or boosted trees: a sum of trees with one output."""

    trees: Trees
    form: ClassVar[str] = "trees"

    def predict(self, rows: Reals) -> Reals:
        """Sum of the trees."""
        total: Reals = self.trees.sum(rows)[:, 0]
        return total

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        return {"form": np.array([self.form]), **self.trees.state()}


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function: ``slopes`` of shape ``(f,)``, and the value where all features are 0."""

    slopes: Reals
    level: float
    form: ClassVar[str] = "linear"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        values: Reals = rows @ self.slopes + self.level
        return values

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        return {"form": np.array([self.form]), "slopes": self.slopes, "level": np.array([self.level])}


@dataclass(frozen=True, eq=False)
class Network:
    """A perceptron with one hidden layer of ``h`` logistic units.

    Parameters
    ----------
    hidden, bias
        Weights of the features, of shape ``(f, h)``, and biases of the units, of shape ``(h,)``.
    output
        A linear function of the units.
    """

    hidden: Reals
    bias: Reals
    output: Linear
    form: ClassVar[str] = "network"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        # The logistic function, without an exponential that might overflow.
        return self.output.predict(0.5 + 0.5 * np.tanh(0.5 * (rows @ self.hidden + self.bias)))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        own = {"form": np.array([self.form]), "hidden": self.hidden, "bias": self.bias}
        return {**self.output.state(), **own}


@dataclass(frozen=True, eq=False)
class Kernels:
    """A linear function of how near rows are to ``m`` support vectors, by a Gaussian of the distance.

    Parameters
    ----------
    vectors
        Of shape ``(m, f)``.
    output
        A linear function of the nearness to each.
    gamma
        How fast nearness falls with the squared distance.
    """

    vectors: Reals
    output: Linear
    gamma: float
    form: ClassVar[str] = "kernels"

    def predict(self, rows: Reals) -> Reals:
        """Its values."""
        sums = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        squares = np.maximum(sums - 2.0 * (rows @ self.vectors.T), 0.0)
        return self.output.predict(np.exp(-self.gamma * squares))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays."""
        own = {
            "form": np.array([self.form]),
            "vectors": self.vectors,
            "gamma": np.array([self.gamma]),
        }
        return {**self.output.state(), **own}


def kept_regressor(state: Mapping[str, npt.NDArray[Any]], features: int) -> Regressor:
    """Make a regressor of so many features from its arrays.

    Raises
    ------
    InputError
        If an array is missing or damaged, or they do not fit each other.
    """
    form = kept_names(state, "form")
    if form == ("trees",):
        trees = Trees.from_state(state, features)
        _check("leaf_value", trees.value.shape[1:], (1,))
        return Grown(trees)
    slopes, level = kept_reals(state, "slopes", 1), kept_reals(state, "level", 1)
    _check("level", level.shape, (1,))
    output = Linear(slopes, float(level[0]))
    if form == ("linear",):
        _check("slopes", slopes.shape, (features,))
        return output
    if form == ("network",):
        hidden, bias = kept_reals(state, "hidden", 2), kept_reals(state, "bias", 1)
        _check("hidden", hidden.shape, (features, len(slopes)))
        _check("bias", bias.shape, slopes.shape)
        return Network(hidden, bias, output)
    if form == ("kernels",):
        vectors, gamma = kept_reals(state, "vectors", 2), kept_reals(state, "gamma", 1)
        _check("vectors", vectors.shape, (len(slopes), features))
        _check("gamma", gamma.shape, (1,))
        return Kernels(vectors, output, float(gamma[0]))
    raise InputError(f"model: form: expected trees, linear, network or kernels, found {', '.join(form)}")


def _check(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found != expected:
        raise InputError(f"model: {name}: expected shape {expected}, found {found}")
