from crosscast.suite import sizes as suite
from crosscast.tables.size_order import SIZES, size_order


def test_known_sizes_come_in_their_order_and_others_after() -> None:
    names = ["zoo", "large", "huge", "tiny", "medium", "small"]
    assert sorted(names, key=size_order) == ["tiny", "small", "medium", "large", "huge", "zoo"]


def test_the_sizes_are_those_of_the_suite() -> None:
    assert suite.SIZES == SIZES
