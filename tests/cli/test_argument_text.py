"""What `--arg` means: each form is a table of a launch file, or refused with its text."""

import tomllib

import pytest

from crosscast.commands.launch import parse_argument
from crosscast.errors import InputError

FORMS = {
    "int=512": "type = 'int', value = 512",
    "uint=0xff": "type = 'uint', value = 255",
    "double=-1.5e3": "type = 'double', value = -1500.0",
    "float4=1,2,3,4": "type = 'float4', value = [1, 2, 3, 4]",
    "float:16": "type = 'float', length = 16",
    "float:16:uniform": "type = 'float', length = 16, fill = 'uniform'",
    "int:16:uniform:-3:3": "type = 'int', length = 16, fill = 'uniform', low = -3, high = 3",
    "float:16:normal:0:2": "type = 'float', length = 16, fill = 'normal', mean = 0, sd = 2",
    "int:16:arange:5": "type = 'int', length = 16, fill = 'arange', start = 5",
    "half:16:constant:0.5": "type = 'half', length = 16, fill = 'constant', value = 0.5",
    "float@a=b:c.npy": "type = 'float', file = 'a=b:c.npy'",
    "local:1024": "local = 1024",
    "null": "null = true",
    "sampler": "sampler = {}",
    "sampler:clamp:linear": "sampler = {addressing = 'clamp', linear = true}",
    "image:uchar:RGBA:4x8": "image = {type = 'uchar', channel_order = 'RGBA', shape = [4, 8]}",
    "image:float:R:9:uniform:0:2": (
        "image = {type = 'float', channel_order = 'R', shape = [9], fill = 'uniform', low = 0, high = 2}"
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_a_table_of_a_launch_file(text: str) -> None:
    assert dict(parse_argument(text).items()) == tomllib.loads(f"arg = {{{FORMS[text]}}}")["arg"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected TYPE=VALUE"),
        ("512", "expected TYPE=VALUE"),
        ("=512", "expected TYPE=VALUE"),
        ("int=many", "expected a number, found 'many'"),
        ("int=", "expected a number, found ''"),
        ("float:many", "expected a number, found 'many'"),
        ("float:16:random", "fill: expected one of zeros"),
        ("float:16:uniform:0:1:2", "uniform takes at most 2 numbers"),
        ("float:16:zeros:1", "zeros takes at most 0 numbers"),
        ("local:", "expected a number"),
        ("image:uchar", "expected image:TYPE:ORDER:SHAPE"),
    ],
)
def test_other_forms_are_refused_with_their_text(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_argument(text)
    assert str(caught.value).startswith(f"--arg {text}: ")
