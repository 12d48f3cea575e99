from pathlib import Path

import pytest

from crosscast.cluster.gavel import GavelSpeeds, read_speeds
from crosscast.errors import InputError

HEADER = "file,gpu,job,gpus,steps_per_s"


def read(folder: Path, *rows: str, header: str = HEADER) -> GavelSpeeds:
    path = folder / "speeds.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return read_speeds(path)


def test_speeds_are_of_the_simulation_and_of_one_server(tmp_path: Path) -> None:
    speeds = read(
        tmp_path,
        "simulation_throughputs,k80,A3C,1,2.5",
        "simulation_throughputs,k80_unconsolidated,A3C,1,1",
        "physical_cluster_throughputs,p100,A3C,1,3",
        "simulation_throughputs,v100,A3C,2,4",
    )
    assert speeds.kinds == ("k80", "v100")
    assert speeds.types == {"A3C"}
    # A kind without a row of a job does not run it.
    assert speeds.by_job == {("A3C", 1): (2.5, 0), ("A3C", 2): (0, 4)}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "simulation_throughputs,k80,A3C,1,fast",
            "line 3: steps_per_s: expected a number of at least 0, found 'fast'",
        ),
        (
            "simulation_throughputs,k80,A3C,1,-2",
            "line 3: steps_per_s: expected a number of at least 0, found '-2'",
        ),
        ("simulation_throughputs,k80,A3C,1,inf", "line 3: steps_per_s: .* found 'inf'"),
        (
            "simulation_throughputs,k80,A3C,0,2",
            "line 3: gpus: expected a whole number of at least 1, found 0",
        ),
        (
            "simulation_throughputs,k80,A3C,1.5,2",
            "line 3: gpus: expected a whole number of at least 1, found 1.5",
        ),
        (
            "simulation_throughputs,p100,A3C,1,2",
            "line 3: expected each speed once, found A3C on 1 p100 again",
        ),
        ("simulation_throughputs,p100", "line 3: expected 5 cells, found 2"),
    ],
)
def test_a_row_that_is_wrong_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, "simulation_throughputs,p100,A3C,1,2.5", row)


def test_a_file_without_speeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected rows of simulation_throughputs, found none"):
        read(tmp_path, "physical_cluster_throughputs,p100,A3C,1,3")
    with pytest.raises(InputError, match="expected a column gpus, found file, gpu, job, steps_per_s"):
        read(tmp_path, header="file,gpu,job,steps_per_s")
