import crosscast


def test_every_public_name_resolves() -> None:
    for name in crosscast.__all__:
        assert getattr(crosscast, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert dir(crosscast) == sorted(crosscast.__all__)


def test_public_names_are_few_and_sorted_by_nobody_twice() -> None:
    assert len(crosscast.__all__) == len(set(crosscast.__all__)) <= 45


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(crosscast, "charactrize")
    assert callable(crosscast.characterize)
