"""``crosscast predict``: times on devices, for kernels that may never have run there."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from crosscast.cli.doubted import warn_of
from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.cli.predict_relative import predict_relative
from crosscast.cli.whole import Whole
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.cli.profiles import Recorded
    from crosscast.device import Device
    from crosscast.predict.time.data import Asked
    from crosscast.predict.time.prediction import Prediction
    from crosscast.profile import Profile

__all__ = ["predict"]

_HOW_TO_ADD = (
    "to add a device, measure it (crosscast dataset build) and train again, or describe it (--device-file)"
)


def predict(
    file: Path,
    /,
    *more: Path,
    model: Path,
    probe: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    devices: str | None = None,
    device_file: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    kernel: str | None = None,
    application: str | None = None,
    level: float = 0.9,
    invocations: Whole | None = None,
    relative_to: str | None = None,
    source: str | None = None,
    time: float | None = None,
    json: Flag = False,
) -> None:
    """Predict how long kernels take on each device, how sure that is, and which device to take.

    What is predicted, the model says: times (docs/predicting.md), or times relative to another device's
    (`crosscast train --target relative`, docs/relative.md).

    FILE is a launch file (`.toml`, `.sim`), whose launches are characterized now; a source or module that
    `crosscast embed` has put profiles into (`.cl`, `.spv`); or profiles that `crosscast characterize` wrote
    (`.parquet`, `.csv`, or `.json` for what `--json` prints). From profiles, nothing is compiled or run.
    Or it is the folder of a dataset, whose recorded times are then shown beside the predicted ones.

    For a model of relative times, it may also be what HPCToolkit, Caliper, Linux perf or Nsight Compute
    counted in a run.

    Several launches of a kernel are taken as invocations in one run; the times are those of one of them.

    Parameters
    ----------
    file
        What to predict.
    more
        Further files.
    model
        Folder that `crosscast train` wrote.
    probe
        Measured time of the kernel on a device, in seconds, such as `gtx1080=0.00123`; may be repeated. It
        moves the predictions for the other devices.
    devices
        Devices, separated by commas; by default all that the model knows.
    device_file
        Description (TOML) of a device on which nothing was measured, which is predicted too; may be repeated.
    kernel
        Predict this kernel alone.
    application
        Predict the kernels of this application alone.
    level
        Probability that the intervals are to hold.
    invocations
        How often a kernel is launched in a run; by default as often as in FILE.
    relative_to
        Of relative times: the device that they are relative to; by default the slowest.
    source
        Of relative times: the device on which FILE was counted, if it does not say, or on which `--time` was
        measured; of a dataset, the device whose runs are taken.
    time
        Of relative times: how long the run took on that device, in seconds, to predict seconds.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.predict.artefact import RELATIVE, TIME, read_card
    from crosscast.predict.time.artefact import load_model
    from crosscast.predict.time.prediction import predictions_of
    from crosscast.report.prediction import print_predictions

    of_times = {"--probe": probe, "--devices": devices, "--device-file": device_file}
    of_relative = {"--relative-to": relative_to, "--source": source, "--time": time}
    if read_card(model).take("target") == RELATIVE:
        _refuse({**of_times, "--invocations": invocations}, model, RELATIVE)
        predict_relative(
            (file, *more),
            model,
            relative_to=relative_to,
            source=source,
            time_s=time,
            application=application,
            kernel=kernel,
            level=level,
            json=json,
        )
        return
    _refuse(of_relative, model, TIME)
    trained = load_model(model)
    known = [device.key for device in trained.devices]
    probes = _probes(probe, known)
    chosen = _chosen(devices, device_file, known)
    with option_names():
        asked, recorded = _asked((file, *more), application, kernel, invocations)
        found = predictions_of(trained, asked, devices=chosen, probes=probes, level=level, recorded=recorded)
    warn_of(found)
    if json:
        answer = _answer(found)
        answer["model"] = {"name": trained.card.model, "training": dict(trained.card.training)}
        print(json_format.dumps(answer, allow_nan=False))
    else:
        print_predictions(found, trained.card, len(probes), sys.stdout)


def _refuse(options: Mapping[str, object], model: Path, target: str) -> None:
    """Refuse options that would be passed over."""
    for option, value in options.items():
        if value not in (None, ()):
            raise InputError(f"{option}: {model} was trained with --target {target}, which does not take it")


def _asked(
    files: Sequence[Path], application: str | None, kernel: str | None, invocations: int | None
) -> tuple[Asked, Recorded]:
    from crosscast.cli.profiles import read_profiles
    from crosscast.predict.time.data import kernels_of

    profiles: list[Profile] = []
    recorded: Recorded = {}
    for file in files:
        found, times = read_profiles(file)
        profiles += found
        recorded.update(times)
    profiles = _only("--application", application, profiles, [each.application or "" for each in profiles])
    profiles = _only("--kernel", kernel, profiles, [each.kernel for each in profiles])
    return kernels_of(profiles, invocations=invocations), recorded


def _only(option: str, name: str | None, profiles: list[Profile], names: Sequence[str]) -> list[Profile]:
    """Those of a name; all for ``None``."""
    if name is None:
        return profiles
    if name not in names:
        raise InputError(f"{option}: expected one of {', '.join(dict.fromkeys(names))}, found {name!r}")
    return [profile for profile, own in zip(profiles, names, strict=True) if own == name]


def _probes(words: Sequence[str], known: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in words:
        key, _, text = word.rpartition("=")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not key or not seconds > 0:
            raise InputError(f"--probe: expected DEVICE=SECONDS such as gtx1080=0.00123, found {word!r}")
        if key not in known:
            raise InputError(
                f"--probe: expected a device that the model knows ({', '.join(known)}), found {key!r}: "
                "to add a device, measure it (crosscast dataset build) and train again"
            )
        if key in found:
            raise InputError(f"--probe: expected each device once, found {key} twice")
        found[key] = seconds
    return found


def _chosen(text: str | None, files: Sequence[Path], known: Sequence[str]) -> list[str | Device] | None:
    """The devices to predict; ``None`` for all that the model knows."""
    if text is None and not files:
        return None
    from crosscast.cli.device_file import read_device

    names = known if text is None else _devices(text, known)
    described = [read_device(file) for file in files]
    keys = [*known, *(device.key for device in described)]
    for file, device in zip(files, described, strict=True):
        if keys.count(device.key) > 1:
            raise InputError(
                f"{file}: device: expected another key than those of other devices, found {device.key}"
            )
    return [*names, *described]


def _devices(text: str, known: Sequence[str]) -> list[str]:
    names = words_of("--devices", text)
    for name in names:
        if name not in known:
            raise InputError(f"--devices: expected some of {', '.join(known)}, found {name!r}: {_HOW_TO_ADD}")
    return names


def _answer(found: Sequence[Prediction]) -> dict[str, Any]:
    """The kernels; of a single one, what belongs to it also by itself."""
    kernels = [prediction.to_dict() for prediction in found]
    return {**(kernels[0] if len(kernels) == 1 else {}), "kernels": kernels}
