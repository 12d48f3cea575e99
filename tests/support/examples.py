"""How many examples and cases of a law are tried: few by default, all in ``make test-full``."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

FAST_EXAMPLES = 25


def examples(most: int, fast: int = FAST_EXAMPLES) -> settings:
    """So many in the profile ``full``, and no more than `fast` in the profile ``fast``."""
    current = settings()
    return settings(max_examples=min(most, fast) if current.derandomize else most, deadline=None)


def one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """Cases as parameters of a test: the first and one in `every`; the others in ``make test-full`` only."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.system if number % every else (),
        )
        for number, case in enumerate(cases)
    ]
