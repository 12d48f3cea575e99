"""A crew that answers at once, by a law, instead of processes that measure."""

from collections.abc import Mapping, Sequence

from crosscast.measure.corun.crew import Work
from crosscast.measure.corun.session import BagRun, MemberRun
from crosscast.measure.corun.stressors import LEVELS
from crosscast.measure.subjects import LaunchFile, Microbenchmark, Subject

__all__ = ["MadeCrew", "name_of"]


def name_of(subject: Subject) -> str:
    return subject.path if isinstance(subject, LaunchFile) else subject.name


class MadeCrew:
    """Says that jobs take as long as their application does alone, times a factor for each other member.

    Parameters
    ----------
    times_s
        Time of a run of each application alone; of a microbenchmark, of a byte of its images.
    presses
        Factor by which each slows the others down.
    failing
        Why applications fail, by name.
    counters
        What the CPU counts in a run of each application.
    powers_w
        Power in a bag of so many members, by domain.
    """

    def __init__(
        self,
        times_s: Mapping[str, float] | None = None,
        *,
        presses: Mapping[str, float] | None = None,
        failing: Mapping[str, str] | None = None,
        counters: Mapping[str, Mapping[str, float]] | None = None,
        powers_w: Mapping[str, float] | None = None,
        cache_bytes: int = 0,
    ) -> None:
        self.times_s = {"low": 1e-11, "medium": 5e-11, "high": 1e-10, **(times_s or {})}
        self.presses = {"low": 1.0, "medium": 1.5, "high": 2.0, **(presses or {})}
        self.failing = dict(failing or {})
        self.counters = dict(counters or {})
        self.powers_w = dict(powers_w or {})
        self.cache_bytes = cache_bytes
        self.bags: list[tuple[str, ...]] = []

    def __enter__(self) -> "MadeCrew":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, works: Sequence[Work], /) -> BagRun:
        names = [name_of(work.subject) for work in works]
        self.bags.append(tuple(names))
        members = []
        for number, work in enumerate(works):
            if names[number] in self.failing:
                members.append(MemberRun(work.runs, failure=self.failing[names[number]]))
                continue
            runs = work.runs or 4
            factor = 1.0
            for other in (*names[:number], *names[number + 1 :]):
                factor *= self.presses.get(other, 1.0)
            job_s = self._run_s(work.subject) * runs * factor
            counted = {name: runs * count for name, count in self.counters.get(names[number], {}).items()}
            members.append(MemberRun(runs, [0.9 * job_s, 1.1 * job_s], 1.5 * job_s, counted, 1000))
        if any(member.failure for member in members):
            return BagRun(tuple(members))
        longest = max(member.times_s[1] for member in members)
        return BagRun(
            tuple(members), [longest] * 3, 0.75, {n: w * len(works) for n, w in self.powers_w.items()}
        )

    def _run_s(self, subject: Subject) -> float:
        byte_s = self.times_s[name_of(subject)]
        if not isinstance(subject, Microbenchmark):
            return byte_s
        made = LEVELS[subject.level](subject.parameters, 0)
        # A pool that a cache holds in part is read faster.
        cached = subject.parameters["image_bytes"] * subject.parameters["images"] < self.cache_bytes
        return byte_s * made.iterations * made.image_bytes * (0.2 if cached else 1.0)
