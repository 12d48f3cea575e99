"""How many examples of a law are tried: few by default, many in ``make test-full``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

FAST_EXAMPLES = 25


def examples(most: int) -> settings:
    """So many in the profile ``full``; no more than it has anywhere in the profile ``fast``."""
    current = settings()
    return settings(max_examples=min(most, FAST_EXAMPLES) if current.derandomize else most, deadline=None)


def chunks(most: int, size: int, fast: int) -> list[Any]:
    """Starts of chunks of examples, as parameters; from `fast` on of ``make test-full`` only."""
    late = pytest.mark.system
    return [pytest.param(each, marks=late if each >= fast else ()) for each in range(0, most, size)]
