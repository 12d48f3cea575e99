"""A cache of what functions fit, for all tests, processes and sessions.

Each is a function of its arguments, and tests fit the same thousands of times. A key is all arguments, the
sources of all models, the versions of the numerical libraries, and this machine's CPU. `make test-full` does
without the cache.
"""

import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
import pytest

from crosscast import prediction
from crosscast.prediction.configuration import bailey2014
from crosscast.prediction.configuration import process as configuration
from crosscast.prediction.corun import models, moolchandani2022
from crosscast.prediction.relative import models as relative
from crosscast.prediction.relative import nichols2024
from crosscast.prediction.time import models as time_models
from crosscast.prediction.time import physical, unseen
from support.compile_cache import cached

_FITS: tuple[tuple[Any, str], ...] = (
    (physical, "fit_coefficients"),
    (relative, "_random_trees"),
    (relative, "_prices_of"),
    (nichols2024.VectorBoosting, "boost"),
    (nichols2024.PublishedVectorForest, "fit"),
    (time_models.PublishedForest, "fit"),
    (unseen, "fit_similarity"),
    (models.Process, "fit"),
    (moolchandani2022, "fit_regressor"),
    (bailey2014.PublishedModel, "fit"),
    (configuration, "fit_covariance"),
)


def install(patch: pytest.MonkeyPatch) -> None:
    """Let models be fitted only to what is not in the cache."""
    for owner, name in _FITS:
        patch.setattr(owner, name, _without_repetition(getattr(owner, name)))


@functools.cache
def _tools() -> bytes:
    names = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "xgboost-cpu")]
    names += [llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()]
    digest = hashlib.sha256("\n".join(names).encode())
    for path in sorted(Path(prediction.__path__[0]).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def _without_repetition(fit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fit)
    def fitted(*args: Any, **options: Any) -> Any:
        if None in sys.modules.values():  # a test that hides a library
            return fit(*args, **options)
        given = pickle.dumps((args, options))
        kind = f"{fit.__module__}.{fit.__qualname__}"
        (result,) = cached(_tools(), kind, None, [given], lambda: [pickle.dumps(fit(*args, **options))])
        return pickle.loads(result)

    return fitted
