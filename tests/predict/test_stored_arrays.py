"""An archive of arrays that is damaged in any way is refused with a sentence, before it takes memory."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import StoredArrays, write_arrays


def stored(folder: Path) -> tuple[Path, Fields]:
    listed = write_arrays({"numbers": np.arange(12.0).reshape(3, 4), "names": np.array(["a", "bc"])}, folder)
    return folder / listed["file"], Fields(listed, "card")


def rewrite(path: Path, header: bytes) -> None:
    """Give the numbers another header."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    values = members["numbers.npy"][-96:]
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, header + values if name == "numbers.npy" else content)


def header(descr: str, shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize(
    ("descr", "shape"),
    [("<f8", (10**12,)), ("<f8", (10**30,)), ("<f8", (12,)), ("<U900000000", (1,)), ("|O", (3, 4))],
)
def test_a_header_that_is_not_the_cards_is_refused(
    tmp_path: Path, descr: str, shape: tuple[int, ...]
) -> None:
    path, fields = stored(tmp_path)
    rewrite(path, header(descr, shape))
    with pytest.raises(InputError, match="array numbers is damaged") as caught:
        StoredArrays.of(fields, tmp_path).read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"{'descr': '<f8', (\n", b"(" * 300, b"{'shape': 1}", b"-" * 3000])
def test_a_header_that_says_nothing_is_refused(tmp_path: Path, text: bytes) -> None:
    path, fields = stored(tmp_path)
    rewrite(path, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(InputError, match="array numbers is damaged"):
        StoredArrays.of(fields, tmp_path).read()


def test_flipped_bits_anywhere_are_refused_or_change_nothing(tmp_path: Path) -> None:
    path, fields = stored(tmp_path)
    whole, sound = path.read_bytes(), StoredArrays.of(fields, tmp_path).read()
    rng = random.Random(0)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = StoredArrays.of(fields, tmp_path).read()
        except InputError:
            refused += 1
        else:
            for name, array in sound.items():
                np.testing.assert_array_equal(found[name], array)
    assert refused > 500


def test_what_is_encrypted_is_refused(tmp_path: Path) -> None:
    path, fields = stored(tmp_path)
    content = bytearray(path.read_bytes())
    place = content.find(b"PK\x01\x02")
    while place >= 0:
        content[place + 8] |= 1
        place = content.find(b"PK\x01\x02", place + 4)
    path.write_bytes(content)
    with pytest.raises(InputError, match="encrypted"):
        StoredArrays.of(fields, tmp_path).read()
