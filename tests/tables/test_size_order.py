from crosscast.data.schema import size_order


def test_known_sizes_come_in_their_order_and_others_after() -> None:
    names = ["zoo", "large", "huge", "tiny", "medium", "small"]
    assert sorted(names, key=size_order) == ["tiny", "small", "medium", "large", "huge", "zoo"]
