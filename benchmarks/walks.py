"""How many functions one question crosses: a profile through a model of times, a sample, a mix of three.

``python -m benchmarks.walks`` loads each model anew (those of ``tests/data/format1``, as format 2), asks it,
and prints how many functions of the rooms of prediction ran, each once, and in how many files. The second
walk counts: the first imports modules and reads annotations. Comprehensions, lambdas and what Python calls by
itself (``__init__``, ``__len__`` and the like) do not count. ``--list`` names the functions.

At a80dc47, before the rebuild, the same rule gives 65, 106 and 91; a reader had counted 57, 108 and 84.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import crosscast
from crosscast.data.corun import Solo
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.data import Observed
from crosscast.profile import METRICS

_MODELS = Path(__file__).parents[1] / "tests" / "data" / "format1"
_ROOMS = ("prediction", "decide", "evaluation")
_MOST = {"time-device-mean": 30, "configuration-model": 50, "corun-process": 40}


def main() -> int:
    """Count, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the functions")
    is_listed = parser.parse_args().list
    asking = (_profile, _sample, _mix)
    counts = []
    for (name, most), ask in zip(_MOST.items(), asking, strict=True):
        inputs = json.loads((_MODELS / name / "expected.json").read_text())["inputs"]
        with tempfile.TemporaryDirectory() as folder:
            crosscast.load_model(_MODELS / name).save(folder)
            ask(crosscast.load_model(folder), inputs)
            crossed = _crossed(lambda: ask(crosscast.load_model(folder), inputs))  # noqa: B023
        counts.append(len(crossed) <= most)
        print(f"{name}: {len(crossed)} functions in {len({file for file, _ in crossed})} files, {most} asked")
        if is_listed:
            print(*(f"    {file}: {function}" for file, function in crossed), sep="\n")
    return int(not all(counts))


def _profile(model: Any, inputs: Any) -> object:
    metrics = {each.name: inputs["metrics"][each.name][0] for each in METRICS}
    return model.predict(crosscast.Profile("kernel", 0, metrics, {}, {}, {"compiler": "clang 22"}, {}))


def _sample(model: Any, inputs: Any) -> object:
    domains, counters = (
        {name: np.array(values) for name, values in inputs[what].items()} for what in ("domains", "counters")
    )
    numbers, time_s, power_w = (np.array(inputs[name]) for name in ("numbers", "time_s", "power_w"))
    forecast = model.predictor.forecast(Observed(numbers, time_s, power_w, domains, counters))
    return choice_of(forecast, model.predictor.space, 250.0)


def _mix(model: Any, inputs: Any) -> object:
    solos = [Solo(**each) for mix in inputs["mixes"] for each in mix]
    return model.predict([tuple(solos[:3])])


def _crossed(walk: Callable[[], object]) -> list[tuple[str, str]]:
    """Files and functions in the order in which they are first met."""
    root = Path(crosscast.__file__).parent
    codes: dict[CodeType, None] = {}

    def meet(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes[frame.f_code] = None

    sys.setprofile(meet)
    try:
        walk()
    finally:
        sys.setprofile(None)
    found = []
    for code in codes:
        path, name = Path(code.co_filename), code.co_qualname.rpartition(".")[2]
        if path.is_relative_to(root) and not name.startswith(("<", "__")):
            file = path.relative_to(root)
            if file.parts[0] in _ROOMS:
                found.append((str(file), code.co_qualname))
    return found


if __name__ == "__main__":
    sys.exit(main())
