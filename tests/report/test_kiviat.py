import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.errors import InputError, MissingExtraError
from crosscast.profile import METRICS, Profile
from crosscast.report.profiles import AXES, Axis, write_kiviat

ProfileMaker = Callable[..., Profile]

LINEAR = Axis("opcode", "opcodes", "compute", 0, 30)
LOGARITHMIC = Axis("total_instruction_count", "instructions", "compute", 1, 1e12, True)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written(tmp_path: Path, make_profile: ProfileMaker, suffix: str) -> None:
    path = tmp_path / f"kiviat.{suffix}"
    write_kiviat([make_profile(), make_profile("scan", 1, unique_read_write_ratio=None)], path)
    assert path.stat().st_size > 10_000
    assert list(tmp_path.iterdir()) == [path]


def test_every_spoke_is_a_metric_of_its_category() -> None:
    categories = {metric.name: metric.category for metric in METRICS}
    assert [axis.category for axis in AXES] == [categories[axis.metric] for axis in AXES]


def test_the_scale_is_written_in_the_picture(tmp_path: Path, make_profile: ProfileMaker) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        write_kiviat([make_profile()], tmp_path / "k.svg")
    text = (tmp_path / "k.svg").read_text(encoding="utf-8")
    assert "0 – 30" in text
    assert "Each spoke runs from its least value" in text


def test_a_linear_spoke_is_linear() -> None:
    assert LINEAR.position(15) == pytest.approx(0.5)


def test_a_logarithmic_spoke_is_logarithmic() -> None:
    assert LOGARITHMIC.position(10**6) == pytest.approx(0.5)


def test_values_off_the_scale_stay_at_its_ends() -> None:
    assert LINEAR.position(99) == LOGARITHMIC.position(10**15) == 1.0
    assert LOGARITHMIC.position(0) == 0.0


def test_an_undefined_metric_has_no_place() -> None:
    assert LINEAR.position(None) is None


def test_an_unknown_suffix_is_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf, found 'k\.bmp'"):
        write_kiviat([make_profile()], tmp_path / "k.bmp")


def test_a_missing_matplotlib_names_the_extra(
    tmp_path: Path, make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    with pytest.raises(MissingExtraError, match=r"crosscast\[report\]"):
        write_kiviat([make_profile()], tmp_path / "k.png")
