"""Every method of choosing that is compared, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from crosscast.choose.methods.fixed import Fixed
from crosscast.choose.methods.knob_limiter import knob_limiters
from crosscast.choose.methods.limited import Limited, limited
from crosscast.choose.methods.limiter import Limiter
from crosscast.choose.methods.oracle import Oracle
from crosscast.choose.methods.selected import SelectedModel
from crosscast.choose.methods.steered import Steered
from crosscast.choose.selection import TOLERANCE, check_confidence
from crosscast.choose.walk import Method
from crosscast.errors import InputError
from crosscast.predict.configuration.baselines.gaussian_process import GaussianProcess
from crosscast.predict.configuration.baselines.nearest import NearestKernels
from crosscast.predict.configuration.baselines.regression import GlobalRegression
from crosscast.predict.configuration.model import ConfigurationModel
from crosscast.predict.configuration.process.model import ProcessModel
from crosscast.predict.configuration.published.model import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.predict.configuration.space import Space

__all__ = ["CONFIDENCE", "MAIN", "check_method_names", "method_names", "methods_of"]

CONFIDENCE = 0.9
"""Probability with which methods that know how sure they are keep to caps, unless another is asked for."""

_Maker = Callable[[float], Method]


def _baseline(model: ConfigurationModel) -> Method:
    return SelectedModel(model, model.name, baseline=True)


def _published(clusters: int | None = None, *, logarithms: bool = False) -> Method:
    return _baseline(PublishedModel(clusters, logarithms))


_MAKERS: Mapping[str, _Maker] = MappingProxyType(
    {
        "fixed": lambda _: Fixed(),
        "limiter": lambda _: Limiter(),
        "limiter-returns": lambda _: Limited(
            Limiter(), ups=False, name="limiter-returns", baseline=True, returns=True
        ),
        "published": lambda _: _published(),
        "published+fl": lambda _: limited(_published()),
        f"published-{PUBLISHED_CLUSTERS}": lambda _: _published(PUBLISHED_CLUSTERS),
        f"published-{PUBLISHED_CLUSTERS}+fl": lambda _: limited(_published(PUBLISHED_CLUSTERS)),
        "published-log": lambda _: _published(logarithms=True),
        "published-log+fl": lambda _: limited(_published(logarithms=True)),
        "nearest": lambda _: _baseline(NearestKernels()),
        "nearest+fl": lambda _: limited(_baseline(NearestKernels())),
        "nearest+steps": lambda _: limited(_baseline(NearestKernels()), ups=True),
        "regression": lambda _: _baseline(GlobalRegression()),
        "regression+fl": lambda _: limited(_baseline(GlobalRegression())),
        "gaussian-process": lambda _: _baseline(GaussianProcess()),
        "gaussian-process+fl": lambda _: limited(_baseline(GaussianProcess())),
        "model": lambda _: SelectedModel(ProcessModel(), "model", tolerance=TOLERANCE),
        "model-strict": lambda _: SelectedModel(ProcessModel(), "model-strict"),
        "model-confident": lambda confidence: SelectedModel(
            ProcessModel(), "model-confident", confidence=confidence
        ),
        "model+fl": lambda _: Steered(),
        "oracle": lambda _: Oracle(),
    }
)
"""Each made for a confidence, which those that do not know how sure they are pass over."""

_AFTER = "fixed"
"""The limiters of single knobs, which depend on the machine, come after this one."""

MAIN: tuple[str, ...] = (
    "fixed",
    "limiter",
    "limiter-returns",
    "published",
    "published+fl",
    "nearest",
    "nearest+fl",
    "nearest+steps",
    "model",
    "model-strict",
    "model-confident",
    "model+fl",
    "oracle",
)
"""Those that are compared unless others are named, besides the limiters of single knobs."""


def method_names(space: Space) -> tuple[str, ...]:
    """Names of all methods for the configurations of a machine, in the order of tables.

    Parameters
    ----------
    space
        The configurations, whose knobs and devices have limiters of their own.
    """
    own = [each.name for each in knob_limiters(space)]
    place = list(_MAKERS).index(_AFTER) + 1
    names = list(_MAKERS)
    return (*names[:place], *own, *names[place:])


def check_method_names(names: Sequence[str], spaces: Sequence[Space]) -> None:
    """Refuse names that no machine has.

    Parameters
    ----------
    names
        Names of methods.
    spaces
        The configurations of each machine.

    Raises
    ------
    InputError
        If there is no method of a name, or a name is there twice.
    """
    known = tuple(dict.fromkeys(name for space in spaces for name in method_names(space)))
    for place, name in enumerate(names):
        if name not in known:
            raise InputError(f"methods: expected all or some of {', '.join(known)}, found {name!r}")
        if name in names[:place]:
            raise InputError(f"methods: expected each once, found {name} twice")


def methods_of(
    space: Space, names: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> tuple[Method, ...]:
    """Methods for the configurations of a machine, in the order of tables.

    Parameters
    ----------
    space
        The configurations.
    names
        Which ones; by default `MAIN` with the limiters of single knobs. Names that the machine does not have
        are passed over, as they may be of another one: see `check_method_names`.
    confidence
        Probability with which methods that know how sure they are keep to caps.

    Raises
    ------
    InputError
        If the confidence is no probability.
    """
    check_confidence(confidence)
    own = {each.name: each for each in knob_limiters(space)}
    wanted = {*MAIN, *own} if names is None else set(names)
    return tuple(
        own[name] if name in own else _MAKERS[name](confidence)
        for name in method_names(space)
        if name in wanted
    )
