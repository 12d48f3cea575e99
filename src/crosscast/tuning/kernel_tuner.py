"""Crosscast as a search strategy of Kernel Tuner, and Kernel Tuner's strategies on known times.

Kernel Tuner: B. van Werkhoven, Kernel Tuner: A search-optimizing GPU code auto-tuner (2019).
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import importing
from crosscast.tuning.search import Candidates, Search
from crosscast.tuning.spaces import Variants, label_of

_PURPOSE = "Kernel Tuner"
_STEPS = ("compile", "verification", "benchmark", "strategy", "framework")


class Strategy:
    """Crosscast's forecasts and search as a strategy of Kernel Tuner.

    Pass it as ``strategy`` to ``kernel_tuner.tune_kernel``. It measures the variants that are most likely to
    be the fastest given the forecast and the runs so far, until ``strategy_options["max_fevals"]`` were run
    or none is likely to be faster by more than `within`.

    Parameters
    ----------
    variants
        The kernel's variants.
    candidates
        Their forecasts on the device.
    within
        Share of the time, such as 0.02.
    """

    def __init__(self, variants: Variants, candidates: Candidates, within: float = 0.02) -> None:
        self.variants, self.candidates, self.within = variants, candidates, within

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
        """Measure variants, and return the results; called by Kernel Tuner."""
        with importing("tune", _PURPOSE):
            from kernel_tuner.strategies.common import CostFunc
            from kernel_tuner.util import StopCriterionReached

        rows = {label: row for row, label in enumerate(self.variants.labels)}
        configurations = {}
        for each in searchspace.list:
            named = dict(zip(searchspace.param_names, each, strict=True))
            row = rows.get(label_of({name: named[name] for name in self.variants.names}))
            if row is not None:
                configurations[row] = tuple(each)
        evaluate = CostFunc(searchspace, tuning_options, runner, scaling=False, snap=False)
        search = Search(self.candidates)
        search.failed |= set(range(len(self.variants))) - set(configurations)
        most = tuning_options.get("max_fevals") or len(configurations)
        with contextlib.suppress(StopCriterionReached):
            while search.log_times.keys() | search.failed != set(range(len(self.variants))):
                if len(search.log_times) >= most or search.is_over(self.within):
                    break
                (row,) = search.next().tolist()
                seconds = float(evaluate(configurations[row], check_restrictions=False)) * 1e-3
                search.add({row: seconds if 0 < seconds < 1e15 else None})
        return evaluate.results


def simulated(variants: Variants, time_s: Reals, strategy: str | Strategy, runs: int, seed: int) -> Reals:
    """Return the least time after each run of a strategy of Kernel Tuner, in its simulation mode.

    A variant that a strategy chooses again is not another run, as Kernel Tuner counts runs.
    """
    with importing("tune", _PURPOSE):
        import kernel_tuner

    known = dict(zip(variants.labels, time_s.tolist(), strict=True))
    names = variants.names

    def is_known(variant: Any) -> bool:
        return label_of({name: variant[name] for name in names}) in known

    with _cache(variants, time_s) as cache, _seeded(seed), _quiet():
        results, _ = kernel_tuner.tune_kernel(
            "kernel",
            "void kernel() {}",
            (1,),
            [],
            {name: list(values) for name, values in zip(names, variants.values, strict=True)},
            restrictions=is_known,
            strategy=strategy,
            strategy_options={"max_fevals": min(runs, len(variants))},
            simulation_mode=True,
            cache=str(cache),
            block_size_names=[],
            verbose=False,
            quiet=True,
            lang="C",
        )
    times_ms = {label_of({name: each[name] for name in names}): each["time"] for each in results}
    times = [1e-3 * each for each in times_ms.values() if isinstance(each, int | float)]
    return np.minimum.accumulate(np.array(times[:runs], dtype=np.float64))


@contextlib.contextmanager
def _cache(variants: Variants, time_s: Reals) -> Iterator[Path]:
    """Write known times to a temporary cache file of Kernel Tuner."""
    entries = {}
    for row, seconds in enumerate(time_s.tolist()):
        variant = dict(variants[row])
        milliseconds = 1e3 * seconds
        entries[",".join(map(str, variant.values()))] = {
            **variant,
            "time": milliseconds,
            "times": [milliseconds],
            **{f"{what}_time": 0 for what in _STEPS},
            "timestamp": "2024-01-01 00:00:00+00:00",
        }
    content = {
        "device_name": "known times",
        "kernel_name": "kernel",
        "problem_size": [1],
        "tune_params_keys": list(variants.names),
        "tune_params": {name: list(v) for name, v in zip(variants.names, variants.values, strict=True)},
        "objective": "time",
        "cache": entries,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        yield path


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Kernel Tuner, which prints its steps and warns that the simulated kernel has no arguments."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random generators, from which Kernel Tuner draws, and restore them afterwards."""
    before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
