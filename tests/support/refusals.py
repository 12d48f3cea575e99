"""What is refused: the sentence of a call, and tables, one file a folder.

In ``refusals.toml`` are the rows of each test by its name, in whose texts ``@x*1000@`` is so many of `x`.
"""

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from crosscast.errors import InputError

P = ParamSpec("P")


@cache
def _tables(folder: Path) -> dict[str, dict[str, list[Any]]]:
    tables: dict[str, Any] = _long(tomllib.loads((folder / "refusals.toml").read_text(encoding="utf-8")))
    return tables


def _long(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub(r"@([^@*]+)\*(\d+)@", lambda each: each[1] * int(each[2]), value)
    if isinstance(value, list):
        return [_long(each) for each in value]
    return {key: _long(each) for key, each in value.items()} if isinstance(value, dict) else value


def refusals(names: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Run a test for each row of its table, whose cells are the arguments of these names, between spaces."""

    def parametrized(test: Callable[P, None]) -> Callable[P, None]:
        file = Path(test.__code__.co_filename)
        rows = _tables(file.parent)[file.stem.removeprefix("test_")][test.__name__.removeprefix("test_")]
        return pytest.mark.parametrize(names.replace(" ", ","), rows)(test)

    return parametrized


def refusal(call: Callable[..., object], *args: object, **options: object) -> str:
    """The sentence, of one line, by which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
