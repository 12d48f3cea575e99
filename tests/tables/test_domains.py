"""Which domains together are a device."""

import pytest

from crosscast.data.views import whole_of


@pytest.mark.parametrize(
    ("domains", "whole"),
    [
        ([], []),
        (["gpu"], ["gpu"]),
        (["gpu", "cpu", "node"], ["node"]),
        (["package-0", "package-0/core", "package-1", "gpu"], ["package-0", "package-1", "gpu"]),
        (["psys", "package-0", "package-0/dram"], ["psys"]),
        (["package-0/dram"], ["package-0/dram"]),
        (["a", "a/b/c"], ["a"]),
    ],
)
def test_domains_inside_of_others_are_no_part_of_the_sum(domains: list[str], whole: list[str]) -> None:
    assert whole_of(domains) == whole
