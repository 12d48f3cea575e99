import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.table import samples_of

times = st.floats(0, 1e6)
groups = st.lists(st.lists(times, min_size=1, max_size=9), max_size=5)


@given(groups=groups, seed=st.integers(0, 99))
def test_statistics_are_those_of_numpy(groups: list[list[float]], seed: int) -> None:
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = np.array([value for group in groups for value in group], dtype=np.float64)
    order = np.random.default_rng(seed).permutation(len(values))
    samples = samples_of(numbers[order], values[order])
    assert samples.least().tolist() == [min(group) for group in groups]
    assert samples.most().tolist() == [max(group) for group in groups]
    assert samples.mean() == pytest.approx([np.mean(group) for group in groups])
    assert samples.sd() == pytest.approx(
        [np.std(group, ddof=1) if len(group) > 1 else np.nan for group in groups], nan_ok=True, abs=1e-8
    )
    for share in (0.25, 0.5, 0.75):
        assert samples.quantile(share) == pytest.approx([np.quantile(group, share) for group in groups])


def test_a_quartile_of_three_values_lies_half_way() -> None:
    samples = samples_of(np.zeros(3, dtype=np.int64), np.array([4.0, 1.0, 2.0]))
    assert samples.quantile(0.25) == [1.5]
    assert samples.quantile(0.75) == [3.0]
