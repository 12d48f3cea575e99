import numpy as np
import pytest
from swf_made import trace_with

from crosscast.cluster.swf import SwfHeader, Trace
from crosscast.errors import InputError


def test_a_trace_has_all_columns_of_one_length() -> None:
    columns = dict(trace_with(run_s=[1, 2]).columns)
    assert len(Trace("a", SwfHeader(), columns)) == 2
    with pytest.raises(InputError, match="trace a: run_s: expected 2 numbers, found 3"):
        Trace("a", SwfHeader(), columns | {"run_s": np.zeros(3)})
    with pytest.raises(InputError, match="trace a: unknown column 'speed'"):
        Trace("a", SwfHeader(), columns | {"speed": np.zeros(2)})
    del columns["run_s"]
    with pytest.raises(InputError, match="trace a: column 'run_s' is missing"):
        Trace("a", SwfHeader(), columns)
