"""The published tool's names and ours."""

from crosscast.data.profiles import PUBLISHED_METRICS
from crosscast.profile import METRICS


def test_each_name_is_there_once() -> None:
    names = [row.name for row in PUBLISHED_METRICS]
    assert len(names) == len(set(names))


def test_each_metric_of_ours_is_meant_once_at_most_and_exists() -> None:
    ours = [row.metric for row in PUBLISHED_METRICS if row.metric is not None]
    assert len(ours) == len(set(ours))
    assert set(ours) <= {metric.name for metric in METRICS}
