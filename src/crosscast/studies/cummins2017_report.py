"""Tables of the study of Cummins et al. (2017): one for each split, and the accuracy by suite."""

from __future__ import annotations

from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import score_table, scores_of
from crosscast.report.numbers import MARK, named, percent
from crosscast.studies.cummins2017 import Cummins2017, DeviceResult

_HELD_OUT = {
    "published": "As published: ten folds of rows at random; other sizes of most kernels are known.",
    "leave-kernel-out": "Ten folds of kernels, each with all its sizes; others of its program are known.",
    "leave-application-out": "Ten folds of programs, each with all its kernels: the honest figure.",
    "leave-suite-out": "Each suite held out with all its programs.",
}
_SCORES = scores_of("accuracy± speedup mean_speedup regret worst_regret")


def study_report(study: Cummins2017) -> Report:
    """Make tables of accuracy, speed-up and regret, and of the accuracy in each suite."""
    cases, suites = study.cases, sorted(set(study.cases.suites))
    parts: list[Part] = [
        Heading(
            f"{study.label}: {len(cases):,} rows of {len(set(cases.kernels)):,} kernels of "
            f"{len(set(cases.applications))} programs of {len(suites)} suites, on {cases.devices[0]} and "
            f"{cases.devices[1]}; {study.profiled:,} rows with a profile; seed {study.seed}",
            1,
        )
    ]
    for split in dict.fromkeys(result.split for result in study.results):
        results = [result for result in study.results if result.split == split]
        parts += ["", Heading(split), _HELD_OUT[split], "", _table(results)]
        models = (result for result in results if not result.baseline)
        best = max(models, key=lambda result: result.scores.accuracy)
        if split in ("leave-application-out", "leave-suite-out"):
            rows = [[suite, percent(share)] for suite, share in best.by_suite.items()]
            parts += ["", Table(["suite", "accuracy"], rows, f"{best.model} by suite")]
    facts = {name: percent(share, 1) for name, share in study.facts.items()}
    return Report(
        [
            *parts,
            "",
            f"{facts['kernel_has_other_sizes']} of the rows are of kernels with several sizes; the devices "
            f"differ by less than 10 % in {facts['within_10_percent']}. If the majority of each kernel were "
            f"known, {facts['right_by_majority_of_kernel']} would be right; of each program, "
            f"{facts['right_by_majority_of_application']}.",
            f"Speed-up: over {study.single}, the best single device. Regret: time over that on the faster "
            "one. Both are geometric means; mean is the arithmetic one of speed-ups, as published; "
            "worst is the largest regret.",
            f"In brackets, 95 % of draws of programs; {MARK}: better than the best baseline in 95 % of them.",
            "Exact definitions: docs/choosing-results.md, CPU or GPU.",
        ]
    )


def _table(results: list[DeviceResult]) -> Table:
    rows = [([named(result.model, result.baseline)], result.scores, result.confidence) for result in results]
    return score_table(["model"], rows, _SCORES)
