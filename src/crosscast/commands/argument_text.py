"""Kernel arguments as people type them: the words of ``--arg``."""

from __future__ import annotations

from typing import Any

from crosscast.errors import InputError
from crosscast.fields import Fields

__all__ = ["FORMS", "parse_argument"]

_FILL_FIELDS = {
    "zeros": (),
    "constant": ("value",),
    "arange": ("start", "step"),
    "uniform": ("low", "high"),
    "normal": ("mean", "sd"),
}
FORMS = (
    "TYPE=VALUE, TYPE:LENGTH[:FILL], TYPE@FILE, local:BYTES, null, "
    "image:TYPE:ORDER:SHAPE[:FILL] or sampler[:WORDS]"
)


def parse_argument(text: str) -> Fields:
    """Translate one ``--arg``.

    >>> dict(parse_argument("float:1024:uniform:-1:1").items())
    {'type': 'float', 'length': 1024, 'fill': 'uniform', 'low': -1, 'high': 1}
    >>> dict(parse_argument("int=512").items())
    {'type': 'int', 'value': 512}
    """
    where = f"--arg {text}"
    head, colon, rest = text.partition(":")
    if text == "null":
        return Fields({"null": True}, where)
    if head == "local" and colon:
        return Fields({"local": _number(where, rest)}, where)
    if head == "sampler":
        return Fields({"sampler": _sampler(where, rest)}, where)
    if head == "image" and colon:
        return Fields({"image": _image(where, rest)}, where)
    # A file's name may hold `:` and `=`, a number may not hold `@`: the first mark decides.
    mark = min((text.find(m) for m in "=@:" if m in text), default=-1)
    if mark < 1:
        raise InputError(f"{where}: expected {FORMS}")
    kind, rest = text[:mark], text[mark + 1 :]
    if text[mark] == "@":
        return Fields({"type": kind, "file": rest}, where)
    if text[mark] == "=":
        return Fields({"type": kind, "value": _value(where, rest)}, where)
    length, _, fill = rest.partition(":")
    return Fields({"type": kind, "length": _number(where, length), **_fill(where, fill)}, where)


def _number(where: str, text: str) -> int | float:
    """Whole (also ``0x10``) or real number."""
    for read in (lambda t: int(t, 0), float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InputError.of(where=where, expected="a number", found=repr(text))


def _value(where: str, text: str) -> Any:
    """One number, or several between commas for a vector or a struct."""
    numbers = [_number(where, part) for part in text.split(",")]
    return numbers if len(numbers) > 1 else numbers[0]


def _fill(where: str, text: str) -> dict[str, Any]:
    """``FILL[:NUMBER[:NUMBER]]``; empty is zeros."""
    if not text:
        return {}
    name, *numbers = text.split(":")
    if name not in _FILL_FIELDS:
        raise InputError.of(
            where=where, field="fill", expected=f"one of {', '.join(_FILL_FIELDS)}", found=repr(name)
        )
    names = _FILL_FIELDS[name]
    if len(numbers) > len(names):
        raise InputError(
            f"{where}: fill: {name} takes at most {len(names)} numbers ({', '.join(names) or 'none'}), "
            f"found {len(numbers)}"
        )
    values = {field: _number(where, number) for field, number in zip(names, numbers, strict=False)}
    return {"fill": name, **values}


def _image(where: str, text: str) -> dict[str, Any]:
    """``TYPE:ORDER:HEIGHTxWIDTH[:FILL]``."""
    kind, *rest = text.split(":", 3)
    if len(rest) < 2:
        raise InputError(f"{where}: expected image:TYPE:ORDER:SHAPE[:FILL], such as image:uchar:RGBA:480x640")
    shape = [_number(where, extent) for extent in rest[1].split("x")]
    return {"type": kind, "channel_order": rest[0], "shape": shape, **_fill(where, ":".join(rest[2:]))}


def _sampler(where: str, text: str) -> dict[str, Any]:
    """Words between colons: an addressing mode, ``linear``, ``normalized_coords``."""
    table: dict[str, Any] = {}
    for word in filter(None, text.split(":")):
        if word in ("linear", "normalized_coords"):
            table[word] = True
        else:
            table["addressing"] = word
    return table
