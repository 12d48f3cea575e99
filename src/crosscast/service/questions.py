"""The endpoints of the service and their answers, with the numbers of the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from crosscast.characterization.embedding import profile_of
from crosscast.data.configuration import Objective
from crosscast.data.corun import profile_from
from crosscast.data.fields import decode
from crosscast.decide.colocation import LARGEST_GROUP, choose_colocation
from crosscast.decide.samples import SampledKernel, kernels_of_rows
from crosscast.decide.selector import choices_answer, choices_for
from crosscast.devices.roofline import Verdict
from crosscast.errors import InputError
from crosscast.forecasting import launches_answer, verdicts_beside, with_verdicts
from crosscast.prediction.configuration.choice import NO_CAP
from crosscast.prediction.named_models import named_devices
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.trained import forecasts_answer
from crosscast.service.models import ServedLaunches, ServedModel, ServiceState, UnknownName, named_runs

_Level = Annotated[float, Meta(gt=0, lt=1, description="Probability that the intervals are to hold.")]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Model = Annotated[_Name | None, Meta(description="Name of the model; by default the first that fits.")]
Answer = TypeVar("Answer")
_Above0 = Annotated[float, Meta(gt=0, le=1e12)]


class Predict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How long kernels take on each device: `profile` or `profiles`, as ``crosscast predict``."""

    profile: Annotated[_Name | None, Meta(description="A name that /v1/profiles lists.")] = None
    profiles: Annotated[
        # `Any`, as of other types that are anything msgspec gives no JSON schema.
        Annotated[list[Any], Meta(min_length=1, max_length=1000)] | None,
        Meta(description="Profiles, as crosscast characterize --json prints them."),
    ] = None
    model: _Model = None
    devices: Annotated[
        Annotated[list[_Name], Meta(min_length=1, max_length=200)] | None,
        Meta(description="Devices of the model or of the catalogue; by default those of the model."),
    ] = None
    probes: Annotated[
        dict[str, _Above0], Meta(description="Measured times of the one kernel in seconds, by device.")
    ] = {}
    kernel: Annotated[_Name | None, Meta(description="Predict this kernel alone.")] = None
    level: _Level = 0.9
    invocations: Annotated[
        Annotated[int, Meta(ge=1, le=10**12)] | None,
        Meta(description="How often a kernel is launched in a run; by default as often as in the profiles."),
    ] = None
    repeat: Annotated[
        _Above0 | None, Meta(description="Answer also how long so many runs of all kernels take, as a job.")
    ] = None


class Choose(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The best configuration under a power cap, from `profile` or `runs`, as ``crosscast choose``."""

    power_cap_w: Annotated[
        _Above0 | None, Meta(description="Power cap in watts; may be left out for another objective.")
    ] = None
    profile: Annotated[_Name | None, Meta(description="A kernel of the service's sample runs.")] = None
    runs: Annotated[
        Annotated[list[dict[_Name, str | float]], Meta(min_length=1, max_length=10_000)] | None,
        Meta(description="Runs of one kernel, each with the columns of docs/choosing.md."),
    ] = None
    model: _Model = None
    objective: Objective = "performance"
    cap_probability: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(description="Probability of keeping to the cap; by default the best on average, over it none."),
    ] = None
    max_slowdown: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Share by which it may be slower than the first sample configuration."),
    ] = None
    level: _Level = 0.9


_MOST_IN_GROUPS = 100
"""Jobs of which groups of more than two are searched, which takes a second for 100 and five for 200."""


class Colocate(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which jobs should share a device, as ``crosscast colocate``."""

    jobs: Annotated[
        list[Any],
        Meta(
            min_length=2,
            max_length=200,
            description="Names that /v1/profiles lists, or what crosscast corun profile writes.",
        ),
    ]
    model: _Model = None
    max_slowdown: Annotated[float, Meta(ge=1, le=1e6)] | None = None
    conservative: Annotated[
        bool, Meta(description="Apply max_slowdown to the upper end of each slowdown's interval.")
    ] = False
    memory_bytes: Annotated[int, Meta(ge=1)] | None = None
    lengths_s: Annotated[
        list[_Above0] | None, Meta(description="Time of each job alone; by default that of its run.")
    ] = None
    group_size: Annotated[int, Meta(ge=2, le=LARGEST_GROUP)] = 2
    level: _Level = 0.9


def predict(state: ServiceState, request: Predict) -> dict[str, object]:
    """Forecast times as ``crosscast predict --json`` does; with `repeat` also those of a job."""
    profiled = _profiled(state, request)
    recorded = state.catalogue.recorded if request.profiles is None else {}

    def predicted(served: ServedModel) -> tuple[TimeForecast, list[Verdict | None]]:
        devices = {device.key: device for device in served.trained.devices}
        chosen = None if request.devices is None else named_devices(request.devices, list(devices))
        forecast: TimeForecast = served.trained.predict(
            profiled.batch, chosen, probes=request.probes, level=request.level
        )
        devices |= {each.key: each for each in chosen or () if not isinstance(each, str)}
        # Before the verdicts, as the recommendation of a forecast is computed once.
        forecast = forecast.with_recorded(recorded)
        return forecast, verdicts_beside(forecast, profiled.launches, devices)

    served, (forecast, verdicts) = _first(state, "time", request.model, predicted)
    answer = forecasts_answer("kernels", with_verdicts(forecast, verdicts), served.trained.card)
    answer["model"] = served.facts()
    answer["assumed"] = [each.to_dict() for each in forecast.assumed]
    if request.repeat is not None:
        answer["job"] = {"repeat": request.repeat} | launches_answer(forecast, request.repeat)
    return answer


def _profiled(state: ServiceState, request: Predict) -> ServedLaunches:
    _check_one(request.profile, request.profiles, "profiles")
    if request.profiles is None:
        named = state.catalogue.profile(str(request.profile))
        if request.kernel is None and request.invocations is None:
            return named
        launches = named.launches
    else:
        launches = tuple(profile_of(each, number) for number, each in enumerate(request.profiles))
    if request.kernel is not None:
        of_kernel = tuple(each for each in launches if each.kernel == request.kernel)
        if not of_kernel:
            known = ", ".join(dict.fromkeys(each.kernel for each in launches))
            raise InputError.of(field="kernel", expected=f"one of {known}", found=repr(request.kernel))
        launches = of_kernel
    return ServedLaunches.of(launches, request.invocations)


def choose(state: ServiceState, request: Choose) -> dict[str, object]:
    """Choose a configuration as ``crosscast choose configuration --json`` does."""
    _check_one(request.profile, request.runs, "runs")
    if request.power_cap_w is None and request.objective == "performance":
        expected = "watts above 0, or another objective"
        raise InputError.of(field="power_cap_w", expected=expected, found="neither")

    def chosen(served: ServedModel) -> dict[str, object]:
        choices = choices_for(
            served.trained,
            [_sampled(served, request)],
            [NO_CAP if request.power_cap_w is None else request.power_cap_w],
            objective=request.objective,
            confidence=request.cap_probability,
            level=request.level,
            max_slowdown=request.max_slowdown,
        )
        return choices_answer(choices, served.trained)

    served, answer = _first(state, "configuration", request.model, chosen)
    answer["model"] = {**served.facts(), "errors": dict(served.trained.card.errors)}
    return answer


def _sampled(served: ServedModel, request: Choose) -> SampledKernel:
    if request.runs is None:
        # Samples name a kernel "APPLICATION SIZE", profiles "APPLICATION/SIZE".
        profile = str(request.profile)
        name = profile if profile in served.samples else profile.replace("/", " ")
        if name not in served.samples:
            raise UnknownName.of(
                field="profile", expected="a kernel that /v1/profiles lists", found=repr(request.profile)
            )
        return served.samples[name]
    rows = ((f"runs[{number}]", row) for number, row in enumerate(request.runs))
    kernels = kernels_of_rows(rows, Path("runs"), served.trained.card).kernels
    if len(kernels) > 1:
        found = ", ".join(each.name for each in kernels)[:200]
        raise InputError.of(field="runs", expected="those of one kernel", found=found)
    return kernels[0]


def colocate(state: ServiceState, request: Colocate) -> dict[str, object]:
    """Plan which jobs share a device as ``crosscast colocate --json`` does."""
    if request.group_size > 2 and len(request.jobs) > _MOST_IN_GROUPS:
        expected = f"2 for more than {_MOST_IN_GROUPS} jobs, as the search for larger groups takes seconds"
        raise InputError.of(field="group_size", expected=expected, found=request.group_size)
    names, given = [], {}
    for number, job in enumerate(request.jobs):
        if isinstance(job, str):
            names.append(job)
        else:
            given[number] = profile_from(job, f"jobs[{number}]").isolated_run

    def planned(served: ServedModel) -> dict[str, object]:
        named = iter(named_runs(names, state.catalogue.isolated, served.trained.card.runs))
        isolated_runs = [
            given[number] if number in given else next(named) for number in range(len(request.jobs))
        ]
        plan = choose_colocation(
            isolated_runs,
            served.trained,
            lengths=request.lengths_s,
            max_slowdown=request.max_slowdown,
            sure=request.conservative,
            memory_bytes=request.memory_bytes,
            group_size=request.group_size,
            level=request.level,
        )
        labels = [
            job if isinstance(job, str) else f"jobs[{number}]" for number, job in enumerate(request.jobs)
        ]
        return plan.to_dict(labels)

    served, plan = _first(state, "corun", request.model, planned)
    return {**plan, "model": served.facts()}


def _check_one(name: str | None, given: object, field: str) -> None:
    if (name is None) == (given is None):
        found = "neither" if name is None else "both"
        raise InputError.of(field="profile", expected=f"either profile or {field}", found=found)


def _first(
    state: ServiceState, question: str, name: str | None, use: Callable[[ServedModel], Answer]
) -> tuple[ServedModel, Answer]:
    """Return the first model that can answer, with its answer."""
    models: Sequence[ServedModel] = state.models_for(question, name)
    if len(models) == 1:
        return models[0], use(models[0])
    refusals = []
    for served in models:
        try:
            return served, use(served)
        except InputError as error:
            refusals.append(error)
    raise refusals[0]


@dataclass(frozen=True)
class Endpoint:
    """A path of the service, with the type and the function of its requests."""

    path: str
    request_type: type[msgspec.Struct]
    answer: Callable[[ServiceState, Any], dict[str, object]]
    example: Mapping[str, object]  # A request

    @property
    def about(self) -> str:
        """The summary of the endpoint."""
        return (self.request_type.__doc__ or "").replace("`", "")

    def answered(self, state: ServiceState, request: object) -> dict[str, object]:
        """Decode a request and return its answer."""
        return self.answer(state, decode(self.request_type, request, "request"))


QUESTIONS = (
    Endpoint("/v1/predict", Predict, predict, {"profile": "srad/small", "devices": ["gtx1080", "knl"]}),
    Endpoint(
        "/v1/choose",
        Choose,
        choose,
        {
            "power_cap_w": 30,
            "runs": [
                {"device": "pi3", "cores": 4, "time_s": 95.0, "power_w": 4.1},
                {"device": "xeon", "cores": 1, "time_s": 31.0, "power_w": 92.0},
            ],
        },
    ),
    Endpoint("/v1/colocate", Colocate, colocate, {"jobs": ["bfs/small", "fft/small", "kmeans/small"]}),
)
"""The endpoints, each with an example of a request."""
