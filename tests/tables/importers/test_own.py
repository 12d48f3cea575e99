"""The importer of what an older Crosscast wrote."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crosscast.data.dataset import read_dataset
from crosscast.data.profiles import PROFILES, to_row, write_csv, write_parquet
from crosscast.data.sources.own import import_own
from crosscast.data.sources.source import store
from crosscast.data.table import identity_of, notes_of, table_of, write_table
from crosscast.errors import InputError
from crosscast.profile import Profile

ProfileMaker = Callable[..., Profile]


@pytest.fixture
def old_file(tmp_path: Path, make_profile: ProfileMaker) -> Path:
    """A Parquet file as version 1 wrote it."""
    path = tmp_path / "profiles.parquet"
    write_parquet([make_profile("reduce", 0), make_profile("reduce", 1)], path)
    table = pq.read_table(path).drop_columns(["application", "size"])
    metadata = {**table.schema.metadata, b"crosscast.version": b"1"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_a_table_of_version_1_becomes_a_dataset_of_the_current_one(tmp_path: Path, old_file: Path) -> None:
    store(import_own(old_file, "sums", "tiny"), tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "profiles.parquet")
    assert identity_of(table) == ("profiles", 2)
    assert table.column("application").to_pylist() == ["sums", "sums"]
    assert table.column("size").to_pylist() == ["tiny", "tiny"]


def test_the_notes_of_a_table_stay(tmp_path: Path, make_profile: ProfileMaker) -> None:
    table = table_of(PROFILES, [to_row(make_profile())], {"origin": "made up"})
    write_table(table, tmp_path / "p.parquet")
    store(import_own(tmp_path / "p.parquet", "sums"), tmp_path / "out")
    assert notes_of(read_dataset(tmp_path / "out").profiles) == {"origin": "made up"}


def test_an_old_dataset_is_brought_up_in_its_own_place(tmp_path: Path, old_file: Path) -> None:
    store(import_own(tmp_path), tmp_path)
    assert identity_of(pq.read_table(old_file)) == ("profiles", 2)


def test_a_csv_file_is_read_and_says_its_own_application(tmp_path: Path, make_profile: ProfileMaker) -> None:
    path = tmp_path / "p.csv"
    write_csv([replace(make_profile(), application="lud"), make_profile("other")], path)
    table = import_own(path, application="sums").profiles
    assert table.column("application").to_pylist() == ["lud", "sums"]


def test_names_are_for_tables_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--application and --size are for a table of profiles"):
        import_own(tmp_path, application="lud")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(InputError, match="expected a folder with a dataset, or a table of profiles"):
        import_own(tmp_path / "p.json")


def test_two_launches_of_one_name_are_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    path = tmp_path / "p.parquet"
    write_parquet([make_profile(), make_profile()], path)
    with pytest.raises(InputError, match="rows 1 and 2 are both of"):
        import_own(path)
