from __future__ import annotations

from dataclasses import replace

import pytest

from crosscast.cli.relative_vectors import relative_vectors
from crosscast.tables.library import pc
from support.vectors import made_counted_dataset

Output = pytest.CaptureFixture[str]


def test_a_device_that_is_left_out_is_told_unless_devices_were_named(capsys: Output) -> None:
    whole = made_counted_dataset()
    devices = relative_vectors(whole, None, None).devices
    assert not capsys.readouterr().err
    records = whole.records
    gone, kernel = devices[-1], records.column("kernel")[0].as_py()
    lacks = pc.and_(pc.equal(records.column("device"), gone), pc.not_equal(records.column("kernel"), kernel))
    gaps = replace(whole, records=records.filter(pc.invert(lacks)))
    assert relative_vectors(gaps, None, None).devices == devices[:-1]
    assert capsys.readouterr().err == (
        "crosscast: warning: devices without times of all this work are left out: "
        f"{gone}; --devices takes others\n"
    )
    assert relative_vectors(gaps, ",".join(devices[:2]), None).devices == devices[:2]
    assert not capsys.readouterr().err
