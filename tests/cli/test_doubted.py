from __future__ import annotations

from dataclasses import dataclass

import pytest

from crosscast.cli.doubted import warn_of


@dataclass(frozen=True)
class Prediction:
    label: str
    warnings: tuple[str, ...]


def test_each_warning_is_printed_once_with_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of(
        [
            Prediction("a", ("far", "old")),
            Prediction("b", ()),
            Prediction("c", ("far",)),
            Prediction("d", ("far",)),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        "crosscast: warning: a and 2 more: far",
        "crosscast: warning: a: old",
    ]
