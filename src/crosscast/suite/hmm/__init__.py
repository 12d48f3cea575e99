"""Baum-Welch training of a hidden Markov model."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from math import isqrt, prod
from typing import NamedTuple

import numpy as np

from crosscast.kernel import Local
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close, whole_groups

_GROUP = 64
_TILE = 16


class _Model(NamedTuple):
    """A hidden Markov model, in the order of `Hmm.result`."""

    pi: Array
    """``(states,)``"""

    a: Array
    """``(states, states)``: from, to"""

    b: Array
    """``(symbols, states)``"""


def _shapes(states: int, symbols: int, steps: int) -> dict[str, tuple[int, ...]]:
    pi, a, b = (states,), (states, states), (symbols, states)
    shapes: dict[str, tuple[int, ...]] = {"symbols": (steps,), "pi": pi, "a": a, "b": b}
    shapes |= dict.fromkeys(("alpha", "beta", "weighted", "gamma"), (steps, states))
    shapes |= {"scale": (steps,), "ones": (max(states, symbols, steps),), "sums": (states,)}
    return shapes | {"new_pi": pi, "new_a": a, "new_b": b}


def _parameters(states: int) -> dict[str, int]:
    # Each step costs six launches, so its number grows far slower than the model.
    return {"states": states, "symbols": max(2, states // 2), "steps": min(max(4, states // 32), 64)}


def _working_set(states: int) -> int:
    return 4 * sum(prod(shape) for shape in _shapes(**_parameters(states)).values())


class Hmm(Application):
    """One iteration of the Baum-Welch algorithm for a hidden Markov model with discrete symbols.

    From one sequence of symbols, with the forward and backward variables scaled at each step (L. R.
    Rabiner, *A tutorial on hidden Markov models*, 1989, section V.A). Dwarf: graphical models.
    """

    name = "hmm"
    kernels = (
        *("acc_b_dev", "calc_alpha_dev", "calc_beta_dev", "calc_gamma_dev", "calc_xi_dev"),
        *("est_a_dev", "est_b_dev", "est_pi_dev", "init_alpha_dev", "init_beta_dev", "init_ones_dev"),
        *("mvm_non_kernel_naive", "mvm_trans_kernel_naive", "s_dot_kernel_naive"),
        *("scale_a_dev", "scale_alpha_dev", "scale_b_dev"),
    )

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        buffers: dict[str, Array] = {
            name: np.zeros(shape, np.int32 if name == "symbols" else np.float32)
            for name, shape in _shapes(**parameters).items()
        }
        # Of exponentials, any distribution is as likely as any other: far from uniform, never zero.
        for name, axis in (("pi", 0), ("a", 1), ("b", 0)):
            random.standard_exponential(out=buffers[name], dtype=np.float32)
            buffers[name] /= buffers[name].sum(axis=axis, keepdims=True)
        symbols = parameters["symbols"]
        buffers["symbols"][:] = random.integers(0, symbols, parameters["steps"], np.int32)
        self.buffers = buffers
        self.arrays = tuple(buffers.values())
        self.model = _Model(buffers["pi"], buffers["a"], buffers["b"])
        self.result = _Model(buffers["new_pi"], buffers["new_a"], buffers["new_b"])
        self._steps = parameters["steps"]
        self._states = np.int32(parameters["states"])
        self._symbols = np.int32(symbols)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """A model with half as many symbols as states, and a step for each 32 states, 4 to 64."""
        return _parameters(bisect_right(range(isqrt(nbytes)), nbytes, key=_working_set) - 1)

    def run(self, queue: Queue) -> None:
        """Update the model once."""
        queue.write(self.buffers["symbols"], *self.model)
        self._init_ones(queue)
        self._forward(queue)
        self._backward(queue)
        self._estimate(queue)
        queue.read(*self.result)

    def check(self) -> None:
        """Compare the updated model with that of the same iteration in double precision."""
        for field, found, expected in zip(_Model._fields, self.result, self._expected, strict=True):
            # All terms are positive: relative errors grow with the states and steps that are added up.
            expect_close(field, found, expected, rtol=1e-4)

    @cached_property
    def _expected(self) -> _Model:
        pi, a, b = (array.astype(np.float64) for array in self.model)
        symbols = self.buffers["symbols"]
        emitted = b[symbols]
        alpha = np.empty_like(emitted)
        beta = np.ones_like(emitted)
        scale = np.empty(len(symbols))
        for t in range(len(symbols)):
            alpha[t] = (alpha[t - 1] @ a if t else pi) * emitted[t]
            scale[t] = alpha[t].sum()
            alpha[t] /= scale[t]
        for t in reversed(range(len(symbols) - 1)):
            beta[t] = a @ (emitted[t + 1] * beta[t + 1]) / scale[t + 1]
        gamma = alpha * beta
        xi = a * (alpha[:-1].T @ (emitted * beta / scale[:, np.newaxis])[1:])
        counts = np.zeros_like(b)
        np.add.at(counts, symbols, gamma)
        return _Model(gamma[0], xi / xi.sum(axis=1, keepdims=True), counts / counts.sum(axis=0))

    def _init_ones(self, queue: Queue) -> None:
        ones = self.buffers["ones"]
        queue.launch("init_ones_dev", _padded(ones.size), (_GROUP,), ones, np.int32(ones.size))

    def _forward(self, queue: Queue) -> None:
        symbols, pi, a, b, alpha, scale, ones = self._named("symbols pi a b alpha scale ones")
        states = self._states
        size, group = _padded(int(states)), (_GROUP,)
        for t in range(self._steps):
            here, before, step = np.int32(t * states), np.int32((t - 1) * states), np.int32(t)
            if t == 0:
                queue.launch("init_alpha_dev", size, group, pi, b, symbols, alpha, states)
            else:
                vectors = alpha, before, alpha, here
                queue.launch("mvm_trans_kernel_naive", size, group, a, states, states, *vectors)
                queue.launch("calc_alpha_dev", size, group, alpha, b, symbols, step, states)
            partial = Local(4 * _GROUP)
            queue.launch("s_dot_kernel_naive", group, group, alpha, here, ones, states, scale, step, partial)
            queue.launch("scale_alpha_dev", size, group, alpha, scale, step, states)

    def _backward(self, queue: Queue) -> None:
        symbols, a, b, beta, weighted, scale = self._named("symbols a b beta weighted scale")
        states = self._states
        size, group = _padded(int(states)), (_GROUP,)
        queue.launch("init_beta_dev", size, group, beta, np.int32(self._steps - 1), states)
        for t in reversed(range(1, self._steps)):
            here, before = np.int32(t * states), np.int32((t - 1) * states)
            queue.launch("calc_beta_dev", size, group, beta, b, symbols, scale, weighted, np.int32(t), states)
            queue.launch("mvm_non_kernel_naive", size, group, a, states, states, weighted, here, beta, before)

    def _estimate(self, queue: Queue) -> None:
        symbols, a, alpha, beta, weighted, gamma = self._named("symbols a alpha beta weighted gamma")
        sums, ones, new_pi, new_a, new_b = self._named("sums ones new_pi new_a new_b")
        states, symbol_count, steps = self._states, self._symbols, np.int32(self._steps)
        zero = np.int32(0)
        group, tile = (_GROUP,), (_TILE, _TILE)
        size = _padded(int(states))
        square, oblong = _tiled(states, states), _tiled(states, symbol_count)

        def add_up_columns(matrix: Array, rows: np.int32) -> None:
            queue.launch("mvm_trans_kernel_naive", size, group, matrix, rows, states, ones, zero, sums, zero)

        queue.launch("calc_gamma_dev", _padded(gamma.size), group, alpha, beta, gamma, np.int32(gamma.size))
        queue.launch("est_pi_dev", size, group, gamma, new_pi, states)
        queue.launch("calc_xi_dev", square, tile, alpha, a, weighted, new_a, steps, states)
        add_up_columns(gamma, np.int32(steps - 1))
        queue.launch("est_a_dev", square, tile, new_a, sums, states)
        queue.launch("mvm_non_kernel_naive", size, group, new_a, states, states, ones, zero, sums, zero)
        queue.launch("scale_a_dev", square, tile, new_a, sums, states)
        queue.launch("acc_b_dev", oblong, tile, gamma, symbols, new_b, steps, states, symbol_count)
        add_up_columns(gamma, steps)
        queue.launch("est_b_dev", oblong, tile, new_b, sums, states, symbol_count)
        add_up_columns(new_b, symbol_count)
        queue.launch("scale_b_dev", oblong, tile, new_b, sums, states, symbol_count)

    def _named(self, names: str) -> list[Array]:
        return [self.buffers[name] for name in names.split()]


def _padded(items: int) -> tuple[int]:
    return (whole_groups(items, _GROUP),)


def _tiled(columns: np.int32, rows: np.int32) -> tuple[int, int]:
    columns_up, rows_up = (whole_groups(int(extent), _TILE) for extent in (columns, rows))
    return (columns_up, rows_up)
