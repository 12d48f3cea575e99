"""``crosscast corun campaign``: isolated runs and mixes of applications of the suite, into a dataset."""

from __future__ import annotations

import json as json_format
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.options import Flag, Whole, names_in
from crosscast.cli.progress import StatusLine, time_left
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.measure.campaign import State
    from crosscast.measure.corun.outcome import CoRunOutcome

__all__ = ["campaign"]

_FAILED = 1


def campaign(
    *,
    out: Path,
    device: str | None = None,
    suite: str = "all",
    sizes: str = "tiny,small",
    bags: str = "2",
    most_bags: Whole | None = None,
    seed: Whole = 0,
    no_mix: Flag = False,
    round_time: float = 0.2,
    window: float = 0.6,
    jobs: Whole = 3,
    rounds: Whole = 3,
    threads: Whole | None = None,
    sensor: str = "auto",
    timeout: float = 60.0,
    json: Flag = False,
) -> int:
    """Measure applications in isolation, beside the microbenchmarks, and in mixes, into a dataset.

    An interrupted campaign resumes when the same command is run again; one with more sizes, applications or
    mixes adds to the dataset. What fails is recorded as failed, and the rest
    goes on; the exit code is 1 then.

    Parameters
    ----------
    out
        Folder of the dataset.
    device
        Id of the device, as `crosscast devices` shows it; by default the first one.
    suite
        Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the suite.
    sizes
        Of `tiny`, `small`, `medium` and `large`. A mix may have different sizes.
    bags
        Numbers of applications in a mix, separated by commas; one application may be in it several times.
    most_bags
        Maximum number of randomly sampled mixes per size; by default all.
    seed
        Random seed.
    no_mix
        Do not characterize the applications for their instruction mixes.
    round_time
        Seconds that a job takes alone at least.
    window
        Seconds that a mix runs together at least.
    jobs
        Whole jobs of each co-runner in that time at least.
    rounds
        How often all co-runners start one job together.
    threads
        Threads that each co-runner may use on a CPU device of PoCL; by default all cores.
    sensor
        `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.
    timeout
        Seconds after which an application that does not answer is given up.
    json
        Print what was done as JSON.
    """
    # Imported here: `--help` needs no OpenCL and no pyarrow.
    from crosscast.measure.needs import expect_installed
    from crosscast.suite.registry import selected

    applications = selected(names_in("--suite", suite))
    expect_installed(applications)
    # Imported here, as they need what the line above found.
    from crosscast.measure.corun.campaign import run_corun_campaign
    from crosscast.measure.corun.plan import CoRunPlan
    from crosscast.measure.corun.settings import CoRunSettings
    from crosscast.measure.opencl.devices import devices, find
    from crosscast.suite.sizes import TYPICAL, working_set

    names = names_in("--sizes", sizes)
    target = devices()[0] if device is None else find(device)
    cpu = next((other for other in devices() if other.type == "cpu"), None)
    for name in names:
        working_set(name)
    plan = CoRunPlan(
        applications=applications,
        sizes=tuple(names),
        device=target,
        caches=TYPICAL,
        settings=CoRunSettings(
            round_time, window, jobs, rounds, timeout_s=timeout, sensor=sensor, threads=threads
        ),
        bags=_numbers(bags),
        most_bags=most_bags,
        seed=seed,
        cpu=None if target.type == "cpu" else cpu,
        mix=not no_mix,
    )
    print(f"crosscast: {plan.text}", file=sys.stderr)
    with _Status() as status:
        outcome = run_corun_campaign(plan, out, status)
    _tell(outcome)
    if json:
        print(json_format.dumps(_dict(outcome), allow_nan=False))
    else:
        print(f"{out}: {outcome.done} done now, {outcome.kept} there before, {len(outcome.failures)} failed")
    return _FAILED if outcome.failures else 0


class _Status(StatusLine):
    """Says what is being done, how much is done, and how long the rest will take."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._start = time.monotonic()

    def __call__(self, state: State) -> None:
        """Show the state if it is time to."""
        if self.is_due(time.monotonic() - self._start):
            left = time_left(state.left_s)
            self.show(f"{state.done} of {state.total} done, {left}: {state.label}")


def _numbers(text: str) -> tuple[int, ...]:
    words = names_in("--bags", text)
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise InputError(f"--bags: expected numbers separated by commas, found {text!r}")
    return tuple(map(int, words))


def _dict(outcome: CoRunOutcome) -> dict[str, object]:
    failed = [{"piece": failure.piece.label, "reason": failure.reason} for failure in outcome.failures]
    return {"done": outcome.done, "kept": outcome.kept, "failed": failed, "notes": outcome.notes}


def _tell(outcome: CoRunOutcome) -> None:
    for note in outcome.notes:
        print(f"crosscast: note: {note}", file=sys.stderr)
    for failure in outcome.failures:
        print(f"crosscast: failed: {failure.piece.label}: {failure.reason}", file=sys.stderr)
