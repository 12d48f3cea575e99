"""The cases whose exact answers are known: outputs, and all metrics under both conventions.

They stand beside the checkout, in ``shared/oracle``, or where ``CROSSCAST_SHARED`` points.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization import run
from crosscast.profile import Profile
from support.examples import one_in
from support.oracle import CASES, ORACLE, needs_oracle, oracle_launch

_MEANINGS = {
    "Opcode": "opcode",
    "Total Instruction Count": "total_instruction_count",
    "Work-items": "work_items",
    "Work-groups": "work_groups",
    "Total Barriers Hit": "total_barriers_hit",
    "Min ITB": "min_itb",
    "Max ITB": "max_itb",
    "Median ITB": "median_itb",
    "Min IPT": "min_ipt",
    "Max IPT": "max_ipt",
    "Median IPT": "median_ipt",
    "Max SIMD Width": "max_simd_width",
    "Mean SIMD Width": "mean_simd_width",
    "SD SIMD Width": "sd_simd_width",
    "Granularity": "granularity",
    "Barriers Per Instruction": "barriers_per_instruction",
    "Instructions Per Operand": "instructions_per_operand",
    "Total Memory Footprint": "total_memory_footprint",
    "Unique Reads": "unique_reads",
    "Unique Writes": "unique_writes",
    "Unique Read/Write Ratio": "unique_read_write_ratio",
    "Total Reads": "total_reads",
    "Total Writes": "total_writes",
    "90% Memory Footprint": "footprint_90",
    "Global Memory Address Entropy": "global_memory_address_entropy",
    **{f"LMAE -- Skipped {n} LSBs": f"local_memory_address_entropy_{n}" for n in range(1, 11)},
    "Total Global Memory Accessed": "global_accesses",
    "Total Local Memory Accessed": "local_accesses",
    "Total Constant Memory Accessed": "constant_accesses",
}
"""Rows of the published table whose definition is also ours."""

pytestmark = needs_oracle


@dataclass
class _Run:
    profile: Profile
    expected: dict[str, str]
    found_outputs: dict[str, npt.NDArray[Any]]
    expected_outputs: Mapping[str, npt.NDArray[Any]]


def _run(case: str, form: str, **options: Any) -> _Run:
    folder = ORACLE / case
    outputs = dict(np.load(folder / "outputs.npz"))
    launch, names = oracle_launch(case, form)
    profile = run.characterize_launch(launch, options=run.Options(published=True, **options))
    with (folder / "metrics.csv").open() as file:
        expected = {row["metric"]: row["count"] for row in csv.DictReader(file)}
    found = {name: a for name, a in zip(names, launch.args, strict=True) if isinstance(a, np.ndarray)}
    return _Run(profile, expected, found, outputs)


def _same_number(found: float, expected: str) -> bool:
    """Equal as printed: integers exactly, reals to the 6 or 4 digits that the table gives."""
    if isinstance(found, int):
        return str(found) == expected
    return expected in (f"{found:.6g}", f"{found:.4g}")


@pytest.mark.parametrize("threads", one_in(2, [1, 2]))
@pytest.mark.parametrize("case", CASES)
def test_bitcode_computes_the_outputs_and_all_published_numbers(case: str, threads: int) -> None:
    run_ = _run(case, "bitcode", threads=threads)
    for name, expected in run_.expected_outputs.items():
        np.testing.assert_array_equal(run_.found_outputs[name], expected)
    found = {name: value for name, _, value in run_.profile.published}
    wanted = {name: value for name, value in run_.expected.items() if "PSL" not in name}
    wrong = {
        name: (found.get(name), value)
        for name, value in wanted.items()
        if name not in found or not _same_number(found[name], value)
    }
    assert not wrong


@pytest.mark.parametrize("case", CASES)
def test_bitcode_gives_the_same_in_our_own_definitions(case: str) -> None:
    run_ = _run(case, "bitcode")
    metrics = run_.profile.metrics
    for published, own in _MEANINGS.items():
        value = metrics[own]
        if published in ("Median ITB", "Median IPT"):
            value = int(value or 0)  # the published tool truncates
        assert _same_number(value or 0, run_.expected[published]), (published, value)
    for ours, theirs, unique in (
        ("reread_ratio", "Rereads", "Unique Reads"),
        ("rewrite_ratio", "Rewrites", "Unique Writes"),
    ):
        if int(run_.expected[unique]):
            assert metrics[ours] == pytest.approx(1 / float(run_.expected[theirs]), rel=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_source_computes_the_outputs_and_counts_within_two_percent(case: str) -> None:
    run_ = _run(case, "source")
    for name, expected in run_.expected_outputs.items():
        np.testing.assert_array_equal(run_.found_outputs[name], expected)
    for published, own in _MEANINGS.items():
        if published.startswith(("Total", "Unique", "Work")):
            expected_count = float(run_.expected[published])
            assert run_.profile.metrics[own] == pytest.approx(expected_count, rel=0.02), published
