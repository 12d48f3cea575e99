"""Verdicts and forecasts of several kernels: each under its name, and none missing from a picture unsaid."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.report.document import Heading, Part, Table, Text
from crosscast.report.figures import label_beside, one_figure
from crosscast.report.pictures import heading_of
from crosscast.report.verdict import roofline_figures, verdicts_report
from support.commands import Command, Output

pytest.importorskip("matplotlib")

SOURCE = """
__kernel void copy(__global const float *a, __global float *b) {
    b[get_global_id(0)] = a[get_global_id(0)];
}
__kernel void scale(__global const float *a, __global float *b) {
    b[get_global_id(0)] = 2.5f * a[get_global_id(0)];
}
__kernel void square(__global const float *a, __global float *b) {
    b[get_global_id(0)] = a[get_global_id(0)] * a[get_global_id(0)];
}
"""
KERNELS = ("scale", "copy", "square")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "several.cl").write_text(SOURCE)
    launches = "".join(f'[[launch]]\nkernel = "{name}"\n' for name in KERNELS)
    arguments = '[[arg]]\ntype = "float"\nlength = 4096\n' * 2
    path = folder / "several.toml"
    path.write_text(f'source = "several.cl"\nglobal = [4096]\nlocal = [64]\n{arguments}{launches}')
    return path


def sections(parts: list[Part]) -> dict[str, list[Part]]:
    """What stands under each heading."""
    found: dict[str, list[Part]] = {}
    name = ""
    for part in parts:
        name = part.text if isinstance(part, Heading) else name
        found.setdefault(name, []).append(part)
    return found


def test_sentences_stand_under_their_own_kernel_and_tables_of_all_under_none(file: Path) -> None:
    report = verdicts_report(crosscast.explain(file, devices=["gtx1080", "rtx4090"]))
    under = sections(list(report.parts))
    assert list(under) == ["What bounds these kernels", *KERNELS]
    for name in KERNELS:
        texts = [part for part in under[name] if isinstance(part, Text)]
        assert [text.lines[0].split(" is bound")[0] for text in texts] == [
            f"{name} on gtx1080",
            f"{name} on rtx4090",
        ]
        assert not any(isinstance(part, Table) for part in under[name])
    first = under["What bounds these kernels"]
    assert isinstance(next(part for part in first if isinstance(part, Table | Text)), Table)


def test_one_verdict_is_the_answer_and_comes_first(file: Path) -> None:
    found = crosscast.explain(file, devices=["gtx1080"])
    report = verdicts_report(type(found)(found.verdicts[:1]))
    assert isinstance(next(part for part in report.parts if isinstance(part, Table | Text)), Text)


def test_forecasts_of_several_kernels_have_a_table_and_a_heading_each(capsys: Output, file: Path) -> None:
    lines = Command.of("predict").text(capsys, file, "--devices", "gtx1080,titanx").splitlines()
    assert lines[0] == "In short"
    labels = [f"{file.stem} {name}" for name in KERNELS]
    assert [" ".join(line.split()[:2]) for line in lines[2:5]] == labels
    for name, label in zip(KERNELS, labels, strict=True):
        heading = lines.index(label)
        assert lines[heading + 1].startswith(f"{name} on ")
        assert lines[lines.index(f"Times of {label}") - 1] == ""
        assert heading < lines.index(f"Times of {label}")
    assert f"{file.stem}: all {len(KERNELS)} kernels, {len(KERNELS)} launches" in lines


def test_every_kernel_is_drawn_or_said_not_to_be(file: Path) -> None:
    found = crosscast.explain(file, devices=["gtx1080"])
    figure = roofline_figures(found.verdicts)["roofline"]
    drawn = {each.get_text() for each in figure.axes[0].texts}
    without = heading_of(figure).partition("without floating-point operations: ")[2].rstrip(".").split(", ")
    assert drawn | set(without) == set(KERNELS)
    assert not drawn & set(without)


def test_labels_never_overlap() -> None:
    from matplotlib.text import Text as Drawn

    exponents: list[tuple[float, float]] = np.random.default_rng(0).uniform(-3, 3, (24, 2)).round(1).tolist()
    figure, axes = one_figure(8.0, 5.4)
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 1e4), ylim=(1e-4, 1e4))
    label_beside(axes, [(f"kernel {place}", (10.0**x, 10.0**y)) for place, (x, y) in enumerate(exponents)])
    figure.draw_without_rendering()
    # Of the text alone: the extent of an annotation has its line in it.
    boxes = sorted((Drawn.get_window_extent(each) for each in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == len(exponents)
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
    names = sorted(axes.texts, key=lambda each: -Drawn.get_window_extent(each).y0)
    heights = [10.0 ** exponents[int(each.get_text().split()[1])][1] for each in names]
    assert heights == sorted(heights, reverse=True)
