"""Options that are whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

from crosscast.errors import InputError

__all__ = ["Whole"]


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Take nothing else: left alone, cyclopts would round 2.5 to 2."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise InputError(f"{token.keyword}: expected a whole number, found {token.value!r}") from None


Whole = Annotated[int, Parameter(converter=_whole)]
