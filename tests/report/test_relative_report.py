"""Evaluations of relative performance on a terminal and as pictures."""

import io
from pathlib import Path

import pytest

from crosscast.errors import InputError
from crosscast.predict.relative.nichols2024 import LogMean, PublishedLinear, PublishedMean
from crosscast.report.relative_evaluation import print_relative_evaluation
from crosscast.report.relative_figures.all_figures import write_relative_figures
from crosscast.studies.nichols2024 import RelativeStudy, study_relative
from made_vectors import made_vectors

VECTORS = made_vectors(applications=4)
MODELS = (PublishedLinear(), PublishedMean(), LogMean())


@pytest.fixture(scope="module")
def whole() -> RelativeStudy:
    return study_relative("made up [1]", VECTORS, MODELS, "published", studies=True)


def printed(study: RelativeStudy) -> str:
    stream = io.StringIO()
    print_relative_evaluation(study, stream)
    return stream.getvalue()


def test_a_table_has_every_model_with_its_numbers(whole: RelativeStudy) -> None:
    text = printed(whole)
    assert text.startswith("made up [1]: relative times of 48 runs (24 kernels at a size, 12 kernels, 4 appl")
    for result in whole.evaluation.results:
        (line, again) = [
            line for line in text.splitlines() if line.split(" ")[0] == result.model and "." in line
        ][:2]
        assert f"{result.metrics.mae:.4f}" in line
        assert f"{result.metrics.regret:.3f}" in line
        assert f"{result.by_weighting['kernels'].mae:.4f}" in again
        assert f"{result.validation_mae:.4f}" in again
    assert "…" not in text


def test_baselines_come_last_and_are_called_so(whole: RelativeStudy) -> None:
    lines = printed(whole).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("model "))
    assert lines[first + 1].split()[0] == "published-linear"
    assert all("(baseline)" in line for line in lines[first + 2 : first + 4])


def test_the_published_split_is_called_a_leak(whole: RelativeStudy) -> None:
    assert "have a run of the same kernel at the same size among those that were learned from" in printed(
        whole
    )
    honest = study_relative("made up", VECTORS, [PublishedMean()], "leave-application-out")
    assert "a look-up table" not in printed(honest)


def test_a_held_out_machine_counts_known_work() -> None:
    found = study_relative("made up", VECTORS, [PublishedMean()], "leave-machine-out")
    assert "what is new is the device that counts, not the work" in printed(found)


def test_studies_are_printed_with_their_caution(whole: RelativeStudy) -> None:
    text = printed(whole)
    for heading in ("by source", "by scale", "by application", "importances of", "features of the most gain"):
        assert f"\n{heading}" in text
    assert "Gain says what the trees split at, not what performance depends on" in text


def test_every_study_has_a_picture(whole: RelativeStudy, tmp_path: Path) -> None:
    paths = write_relative_figures(whole, tmp_path / "new")
    names = {path.stem for path in paths}
    assert names == {
        "models",
        "sources-mae",
        "sources-same-order",
        "scales",
        "applications",
        "importances",
        "selection",
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_without_studies_there_is_one_picture(tmp_path: Path) -> None:
    found = study_relative("made up", VECTORS, [PublishedMean()], "leave-kernel-out")
    assert [path.name for path in write_relative_figures(found, tmp_path)] == ["models.png"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = study_relative("made up", VECTORS, [PublishedMean()], "leave-kernel-out")
    with pytest.raises(InputError, match=r"^figures: cannot make the folder"):
        write_relative_figures(found, tmp_path / "file" / "below")
