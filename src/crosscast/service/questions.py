"""What may be asked, and the answers: the same numbers as those of the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from crosscast.characterization.embedding.payload import profile_of
from crosscast.data.fields import decode
from crosscast.data.isolated_runs import profile_from
from crosscast.decide.choices import choices_answer, choices_for
from crosscast.decide.colocation import choose_colocation
from crosscast.decide.samples import SampledKernel, kernels_of_rows
from crosscast.devices.roofline import Verdict
from crosscast.errors import InputError
from crosscast.forecasting.answers import forecasts_answer, launches_answer, with_verdicts
from crosscast.forecasting.kernels import verdicts_beside
from crosscast.prediction.first_fit import named_devices
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.service.catalogue import ServedLaunches, UnknownName, named_runs
from crosscast.service.models import ServedModel, ServiceState

_Level = Annotated[float, Meta(gt=0, lt=1, description="Probability that the intervals are to hold.")]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Model = Annotated[_Name | None, Meta(description="Name of the model; by default the first that fits.")]
Found = TypeVar("Found")
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

    power_cap_w: Annotated[_Above0, Meta(description="Power cap in watts.")]
    profile: Annotated[_Name | None, Meta(description="A kernel of the service's sample runs.")] = None
    runs: Annotated[
        Annotated[list[dict[_Name, str | float]], Meta(min_length=1, max_length=10_000)] | None,
        Meta(description="Runs of one kernel, each with the columns of docs/choosing.md."),
    ] = None
    model: _Model = None
    objective: Literal["performance", "energy", "edp"] = "performance"
    cap_probability: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(description="Probability of keeping to the cap; by default the predicted mean has to."),
    ] = None
    level: _Level = 0.9


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
    group_size: Annotated[int, Meta(ge=2, le=5)] = 2
    level: _Level = 0.9
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0


def predict(state: ServiceState, asked: Predict) -> dict[str, object]:
    """Forecast times as ``crosscast predict --json`` does; with `repeat` also those of a job."""
    profiled = _profiled(state, asked)
    recorded = state.catalogue.recorded if asked.profiles is None else {}

    def predicted(served: ServedModel) -> tuple[TimeForecast, list[Verdict | None]]:
        devices = {device.key: device for device in served.trained.devices}
        chosen = None if asked.devices is None else named_devices(asked.devices, list(devices))
        found: TimeForecast = served.trained.predict(
            profiled.batch, chosen, probes=asked.probes, level=asked.level
        )
        devices |= {each.key: each for each in chosen or () if not isinstance(each, str)}
        # First, as what is recommended is found out once for each forecast.
        found = found.with_recorded(recorded)
        return found, verdicts_beside(found, profiled.launches, devices)

    served, (found, verdicts) = _first(state, "time", asked.model, predicted)
    answer = forecasts_answer("kernels", with_verdicts(found, verdicts), served.trained.card)
    answer["model"] = served.facts()
    answer["assumed"] = [each.to_dict() for each in found.assumed]
    if asked.repeat is not None:
        answer["job"] = {"repeat": asked.repeat} | launches_answer(found, asked.repeat)
    return answer


def _profiled(state: ServiceState, asked: Predict) -> ServedLaunches:
    _check_one(asked.profile, asked.profiles, "profiles")
    if asked.profiles is None:
        named = state.catalogue.profile(str(asked.profile))
        if asked.kernel is None and asked.invocations is None:
            return named
        launches = named.launches
    else:
        launches = tuple(profile_of(each, number) for number, each in enumerate(asked.profiles))
    if asked.kernel is not None:
        own = tuple(each for each in launches if each.kernel == asked.kernel)
        if not own:
            known = ", ".join(dict.fromkeys(each.kernel for each in launches))
            raise InputError.of(field="kernel", expected=f"one of {known}", found=repr(asked.kernel))
        launches = own
    return ServedLaunches.of(launches, asked.invocations)


def choose(state: ServiceState, asked: Choose) -> dict[str, object]:
    """Choose a configuration as ``crosscast choose configuration --json`` does."""
    _check_one(asked.profile, asked.runs, "runs")

    def chosen(served: ServedModel) -> dict[str, object]:
        found = choices_for(
            served.trained,
            [_sampled(served, asked)],
            [asked.power_cap_w],
            objective=asked.objective,
            cap_probability=asked.cap_probability,
            level=asked.level,
        )
        return choices_answer(found, served.trained)

    served, answer = _first(state, "configuration", asked.model, chosen)
    answer["model"] = {**served.facts(), "errors": dict(served.trained.card.errors)}
    return answer


def _sampled(served: ServedModel, asked: Choose) -> SampledKernel:
    if asked.runs is None:
        # Kernels of an application at a size are called as both with a space between.
        name = str(asked.profile) if asked.profile in served.samples else str(asked.profile).replace("/", " ")
        if name not in served.samples:
            raise UnknownName.of(
                field="profile", expected="a kernel that /v1/profiles lists", found=repr(asked.profile)
            )
        return served.samples[name]
    rows = ((f"runs[{number}]", row) for number, row in enumerate(asked.runs))
    kernels = kernels_of_rows(rows, Path("runs"), served.trained.card).kernels
    if len(kernels) > 1:
        found = ", ".join(each.name for each in kernels)[:200]
        raise InputError.of(field="runs", expected="those of one kernel", found=found)
    return kernels[0]


def colocate(state: ServiceState, asked: Colocate) -> dict[str, object]:
    """Plan which jobs share a device as ``crosscast colocate --json`` does."""
    names, given = [], {}
    for number, job in enumerate(asked.jobs):
        if isinstance(job, str):
            names.append(job)
        else:
            given[number] = profile_from(job, f"jobs[{number}]").solo

    def planned(served: ServedModel) -> dict[str, object]:
        found = iter(named_runs(names, state.catalogue.isolated, served.trained.card.runs))
        solos = [given[number] if number in given else next(found) for number in range(len(asked.jobs))]
        plan = choose_colocation(
            solos,
            served.trained,
            lengths=asked.lengths_s,
            max_slowdown=asked.max_slowdown,
            sure=asked.conservative,
            memory_bytes=asked.memory_bytes,
            group_size=asked.group_size,
            level=asked.level,
            seed=asked.seed,
        )
        told = [job if isinstance(job, str) else f"jobs[{number}]" for number, job in enumerate(asked.jobs)]
        return plan.to_dict(told)

    served, plan = _first(state, "corun", asked.model, planned)
    return {**plan, "model": served.facts()}


def _check_one(name: str | None, given: object, field: str) -> None:
    if (name is None) == (given is None):
        found = "neither" if name is None else "both"
        raise InputError.of(field="profile", expected=f"either profile or {field}", found=found)


def _first(
    state: ServiceState, question: str, name: str | None, use: Callable[[ServedModel], Found]
) -> tuple[ServedModel, Found]:
    """The first model that can answer, and its answer."""
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
    """A path of the service, and what it takes."""

    path: str
    asked: type[msgspec.Struct]
    answer: Callable[[ServiceState, Any], dict[str, object]]
    example: Mapping[str, object]  # A request

    @property
    def about(self) -> str:
        """What it answers, in a sentence."""
        return (self.asked.__doc__ or "").replace("`", "")

    def answered(self, state: ServiceState, request: object) -> dict[str, object]:
        """The answer to a request, of JSON."""
        return self.answer(state, decode(self.asked, request, "request"))


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
"""What is answered, with the request that its documentation shows."""
