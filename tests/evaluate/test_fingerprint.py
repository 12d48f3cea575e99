"""What results depend on besides their data."""

from dataclasses import dataclass

from crosscast.evaluate.cache_folder import fingerprint, sources_digest


@dataclass(frozen=True)
class Model:
    size: int


class Plain:
    pass


def test_parameters_tell_models_apart() -> None:
    assert fingerprint(Model(1)) == fingerprint(Model(1))
    assert fingerprint(Model(1)) != fingerprint(Model(2))
    assert fingerprint(Model(1)).endswith("Model Model(size=1)")


def test_what_is_no_dataclass_is_known_by_its_name() -> None:
    assert fingerprint(Plain()) == fingerprint(Plain()) == f"{__name__}.Plain"
    assert fingerprint(fingerprint) == "crosscast.evaluate.cache_folder.fingerprint"


def test_a_hash_is_of_the_files_that_are_named() -> None:
    assert sources_digest(("units.py",)) == sources_digest(("units.py",))
    assert sources_digest(("units.py",)) != sources_digest(("errors.py",))
    assert sources_digest(("decide",)) != sources_digest(("predict",))
