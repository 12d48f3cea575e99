"""Faults that `benchmarks.mutants` tries are in code that is still there."""

import pytest
from benchmarks.mutants import PACKAGE, Mutant, mutants


@pytest.mark.parametrize("mutant", list(mutants()), ids=lambda mutant: f"{mutant.file}: {mutant.new}"[:80])
def test_a_fault_changes_text_that_its_file_has_once(mutant: Mutant) -> None:
    assert (PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
