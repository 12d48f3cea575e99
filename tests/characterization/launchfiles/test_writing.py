"""A launch that is written as a launch file is read as the same launch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crosscast
from crosscast.characterization.launchfiles.launchfile import write_launch
from crosscast.errors import InputError
from crosscast.kernel import Image, Kernel, Launch, Local, Sampler
from support.refusals import refusal

NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)]
NUMBERS.remove("float8")
SOURCE = "kernel void k(global {kind} *a, global {kind} *b, {kind} c, local int *d, global int *e) {{ }}"


def read_back(launch: Launch, folder: Path) -> Launch:
    write_launch(launch, folder / "one.toml")
    (found,) = crosscast.read_launches(folder / "one.toml")
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray | np.generic):
        return left.dtype == right.dtype and np.asarray(left).tobytes() == np.asarray(right).tobytes()
    return bool(left == right)


@given(kind=st.sampled_from(NUMBERS), data=st.data())
def test_numbers_come_back(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    array = data.draw(arrays.arrays(kind, st.integers(1, 8)))
    scalar = np.dtype(kind).type(data.draw(arrays.arrays(kind, 1))[0])
    kernel = Kernel.from_source(SOURCE.format(kind="int"), "k", options=["-DX=1"], standard="2.0")
    launch = Launch(kernel, (8, 2), (4, 1), (array, array, scalar, Local(16), None), (1, 0))
    found = read_back(launch, tmp_path_factory.mktemp("launch"))
    assert found.args[0] is found.args[1]
    if np.isnan(float(scalar)):
        launch, found = (Launch(kernel, (8, 2), (4, 1), each.args[:2]) for each in (launch, found))
    assert all(map(same, launch.args, found.args))
    assert (found.global_size, found.local_size) == (launch.global_size, launch.local_size)
    assert found.global_offset == launch.global_offset
    assert (found.kernel.program.options, found.kernel.program.standard) == (("-DX=1",), "2.0")


def test_images_samplers_and_structures_come_back(tmp_path: Path) -> None:
    image = Image(np.arange(48, dtype=np.uint8).reshape(3, 4, 4), normalized=True)
    sampler = Sampler("repeat", linear=True, normalized_coords=True)
    launch = Launch(
        Kernel.from_source("kernel void k(image2d_t i) {}", "k"), (4,), (4,), (image, sampler, b"\1\2")
    )
    found = read_back(launch, tmp_path)
    first = found.args[0]
    assert isinstance(first, Image)
    assert same(first.array, image.array)
    assert (first.normalized, first.layers, first.channel_order) == (True, False, "RGBA")
    assert found.args[1] == sampler
    assert np.asarray(found.args[2]).tobytes() == b"\1\2"


def test_cuda_launches_come_back(tmp_path: Path) -> None:
    kernel = Kernel.from_source("__global__ void k(float *a) {}", "k", form="cuda")
    launch = Launch.on_grid(kernel, (4, 2), 32, [np.ones(4, np.float32)], shared=64)
    found = read_back(launch, tmp_path)
    assert (found.global_size, found.local_size, found.shared) == (launch.global_size, launch.local_size, 64)


def test_what_opencl_has_not_is_refused(tmp_path: Path) -> None:
    launch = Launch(Kernel.from_source("kernel void k() {}", "k"), (4,), (4,), (np.ones(4, complex),))
    assert "found complex128" in refusal(write_launch, launch, tmp_path / "one.toml")
    with pytest.raises(InputError, match="cannot be written"):
        write_launch(Launch(launch.kernel, (4,), (4,)), tmp_path / "none" / "one.toml")
