"""What is kept for a whole process, kept for one test."""

import pytest

from crosscast.measure.regions import history
from crosscast.measure.regions import history as metering
from crosscast.measure.regions import key as notice
from crosscast.measure.regions import recorder as applying


def begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "_SAID", {})
    monkeypatch.setattr(metering, "_SHARED", {"auto": metering.Metering([])})
    monkeypatch.setattr(applying, "_applied", None)
    monkeypatch.setattr(applying, "_regions", {})
    monkeypatch.setattr(history, "_IN_MEMORY", history.History())
    monkeypatch.setattr(history, "_OF_FILES", {})
