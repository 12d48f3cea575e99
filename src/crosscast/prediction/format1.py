"""Models of format 1, made into those of format 2 as they are read.

A question that has changed its card or the names of its arrays since format 1 puts a function here, by the
name of the question; `crosscast.prediction.store.read` calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from crosscast.arrays import Arrays
from crosscast.errors import InputError

Translation = Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]
"""Makes the card and arrays of format 2 out of those of format 1; an `InputError` if they are damaged."""


def _configuration(card: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """A model of configurations: the card has the configurations, and parts have names of their own."""
    try:
        return card, _process(arrays) if card.get("kind") == "process" else _published(arrays)
    except (KeyError, IndexError, ValueError) as error:
        raise InputError(f"model: expected the arrays of format 1, found others ({error})") from error


def _process(arrays: Arrays) -> Arrays:
    names = arrays["quantities"]
    found = {"names": names, "quantities.count": np.array(len(names)), **_sample_features(arrays)}
    found |= {name: arrays[name] for name in ("domains", "time_errors", "power_errors")}
    for place, name in enumerate(names):
        part = f"quantities.{place}"
        for key in ("mean", "points", "weights", "known", "lengths", "own_lengths"):
            found[f"{part}.{key}"] = arrays[f"{name}.{key}"]
        variances = arrays[f"{name}.variances"]
        for key, value in zip(("variance", "own_variance", "noise"), variances, strict=True):
            found[f"{part}.{key}"] = np.array(value)
    plain = {name.removeprefix("plain:"): each for name, each in arrays.items() if name.startswith("plain:")}
    return found | {f"plain.{name}": each for name, each in (_process(plain) if plain else {}).items()}


def _published(arrays: Arrays) -> Arrays:
    from crosscast.prediction.configuration.features import SampleFeatures

    found = _sample_features(arrays)
    readable = SampleFeatures.from_state(
        {name.removeprefix("features."): each for name, each in found.items()}
    ).readable_names
    found["tree.names"] = np.array(readable, np.str_)
    for key in ("feature", "threshold", "left", "right", "counts"):
        found[f"tree.{key}"] = arrays[f"tree_{key}"]
    found["models.logarithms"] = arrays["logarithms"][0].astype(np.bool_)
    for key in ("performance", "power"):
        found[f"models.{key}"] = arrays[f"{key}_coefficients"]
        found[f"models.least_{key}"] = arrays[f"least_{key}"]
    for key in ("application", "kernel", "size"):
        found[f"clusters.{key}"] = arrays[f"member_{key}"]
    found["clusters.sizes"] = arrays["cluster_sizes"]
    found["clusters.undefined"] = arrays["correlations_undefined"][0]
    if arrays["clusters_asked"].size:
        found["clusters.asked"] = arrays["clusters_asked"][0]
    if arrays["correlation_range"].size:
        least, most = arrays["correlation_range"]
        found |= {"clusters.least_correlation": least, "clusters.most_correlation": most}
    return {name: np.asarray(each) for name, each in found.items()}


def _sample_features(arrays: Arrays) -> Arrays:
    found = {f"features.{name}": arrays[f"feature_{name}"] for name in ("names", "centre", "scale", "counts")}
    return found | {"features.total": np.asarray(arrays["feature_total"][0])}


def physical_arrays(arrays: Arrays) -> Arrays:
    """Arrays of the physical model of times and its correction, whatever their prefix; others stay."""
    names = {"acts": "masks", "bends": "strengths"}
    found = {}
    for name, array in arrays.items():
        prefix, dot, last = name.rpartition(".")
        last = re.sub("^(launch|work)_(centre|scale|points)$", r"\1.\2", names.get(last, last))
        found[f"{prefix}{dot}{last}"] = array.astype(np.bool_) if last == "gpu" else array
    return found


def _time(card: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    parts = card.pop("parts", None)
    kind = parts.get("point") if isinstance(parts, dict) else None
    if not isinstance(kind, str):
        raise InputError.of(field="parts.point", expected="the kind of a model", found=repr(kind))
    arrays = physical_arrays(arrays)
    if "unseen.likeness" in arrays:
        arrays["unseen.similarity"] = arrays.pop("unseen.likeness")
    return card, {**arrays, "point.kind": np.array(kind)}


_RELATIVE = {"counters": "known", "priced_devices": "prices.devices", "prices": "prices.prices"}
_SINGLE = {"base", "least", "share", "anchored", "fill"}
_FLAGS = {"anchored", "fill", "gaps"}


def _relative(card: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    kind = card.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError.of(field="kind", expected="the kind of a model", found=repr(kind))
    found = {"model.kind": np.array(kind)}
    for name, array in physical_arrays(arrays).items():
        part, _, last = name.partition(".")
        last = re.sub("^grown_", "grown.", last.removeprefix("feature_"))
        if part == "model":
            last = _RELATIVE.get(last, last)
            array = array.reshape(()) if last in _SINGLE and array.size == 1 else array
            array = array.astype(np.bool_) if last in _FLAGS else array
        found[f"{part}.{last}"] = array
    return card, found


_CORUN_NUMBERS = {
    "model.slowdowns.traits.scale": ("traits.centre", "traits.spread"),
    "model.slowdowns.scale": (
        *("scale.centre", "scale.per_log_member", "scale.spread", "scale.factor"),
        "scale.idle",
    ),
    "model.fits.numbers": ("centre", "spread", "intercept", "slope"),
    "model.power.scaled": ("centre", "spread", "weights"),
    "model.power.numbers": ("intercept", "utilisation", "low", "high"),
}
_CORUN_SINGLE = re.compile(
    r".*\.(time_factor|traits\.load|link|largest|noise|wanted|pressure|pressure_usual|members"
    r"|least|level|gamma|form)"
)
_CORUN_REGRESSOR = re.compile(
    r"(?P<target>model\.\d+\.(slowdown|time_s|power_w)\.)(?P<name>(?!columns|least).*)"
)


def _corun(card: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The kind was in the card, single numbers were arrays, and parts were flatter."""
    kind = str(card.get("kind"))
    made: Arrays = {"model.kind": np.array(kind)}
    sizes = arrays["model.sizes"].tolist() if kind == "corun-published" else []
    for name, array in arrays.items():
        place, _, own = name.rpartition(".")
        if name in _CORUN_NUMBERS:
            root = "model.slowdowns" if name.startswith("model.slowdowns") else place
            # The slowdown of idle applications was left out where there were none.
            numbers = [*array, *([np.nan] if own == "scale" and len(array) == 4 else [])]
            for part, number in zip(_CORUN_NUMBERS[name], numbers, strict=True):
                made[f"{root}.{part}"] = np.array(number)
            continue
        if name == "model.sizes":
            array = np.array(len(sizes)) if sizes else array.astype(np.int64)
            name = "model.sizes.count" if sizes else name
        elif name == "model.means":
            array = np.where(arrays["model.known"] > 0, array, np.nan)
        elif _CORUN_SINGLE.fullmatch(name) and array.shape == (1,):
            array = np.array(f"corun-{array[0]}") if own == "form" else array[0]
        if regressor := _CORUN_REGRESSOR.fullmatch(name):
            name = f"{regressor['target']}regressor.{regressor['name'].replace('form', 'kind')}"
        name = name.replace("slowdowns.link", "slowdowns.scale.link")
        name = re.sub(r"^(errors\..*)\.bag$", r"\1.mix", name)
        for number, size in enumerate(sizes):
            name = re.sub(rf"^model\.{size}\.", f"model.sizes.{number}.", name)
        made[name] = np.asarray(array)
    return card, made


FORMAT_1: dict[str, Translation] = {
    "configuration": _configuration,
    "corun": _corun,
    "relative": _relative,
    "time": _time,
}
