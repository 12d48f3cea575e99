"""A small fitted model and its card, for tests of what is kept, read and asked."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from made_grids import DEVICES, lawful_grid

from crosscast.predict.time.artefact import Card, metric_ranges, save_model
from crosscast.predict.time.data import Grid, Toolchain
from crosscast.predict.time.gaussian import GaussianPredictor
from crosscast.predict.time.physical import Physical
from crosscast.predict.time.unseen import fit_unseen

TOOLCHAIN = Toolchain("clang 22")


@cache
def fitted() -> tuple[Grid, GaussianPredictor, Card]:
    """A physical model with errors that devices share, and its card."""
    known = lawful_grid()
    point = Physical().fit(known, 0)
    covariance = 0.16 * np.ones((4, 4)) + 0.04 * np.eye(4)
    quantiles = np.linspace(0, 3, 201) * np.ones((3, 1))
    predictor = GaussianPredictor(DEVICES, point, covariance, quantiles, fit_unseen(known, 0))
    times = np.exp(known.log_time)
    card = Card(
        model="physical",
        seed=0,
        devices=DEVICES,
        metrics=metric_ranges(point, known.profiles),
        time_low_s=float(times.min()),
        time_high_s=float(times.max()),
        toolchains=(TOOLCHAIN,),
        effects=(),
        training={
            "dataset": "made up",
            "cells": 192,
            "kernels_at_a_size": 48,
            "kernels": 48,
            "applications": 6,
        },
        errors={"level": 0.9, "results": [_result(0, 0.31), _result(1, 0.12)]},
    )
    return known, predictor, card


def _result(probes: int, error: float) -> dict[str, Any]:
    return {
        "model": "physical",
        "probes": probes,
        "median_ape": error,
        "slowdown_mean": 1.07,
        "coverage": 0.93,
        "coverage_worst_application": 0.8,
        "intervals": {"median_ape": [error - 0.05, error + 0.05]},
    }


def kept(folder: Path, **changed: Any) -> Path:
    """The model in a folder, with a card that says other things if asked to."""
    _, predictor, card = fitted()
    save_model(predictor, folder, replace(card, **changed))
    return folder
