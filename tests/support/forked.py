"""Command lines in forks of one fresh interpreter, so that it is started once for all."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_RUN = """
import json, os, sys, tempfile
from crosscast.cli import main

def ran(words, files):
    child = os.fork()
    if not child:
        for number, file in enumerate(files, start=1):
            os.dup2(file.fileno(), number)
        status = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read())
    return [status, *texts]

for words in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        print(json.dumps(ran(words, [out, err])), flush=True)
"""


class Ran(NamedTuple):
    """How a command line ended."""

    status: int
    out: str
    err: str


def run_each(lines: Sequence[Sequence[str]], before: str = "", folder: Path | None = None) -> list[Ran]:
    """Run command lines one after another, each in a fork of a process that has run `before`."""
    code = f"{before}\n{_RUN}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        input=json.dumps([list(words) for words in lines]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [Ran(*json.loads(line)) for line in done.stdout.splitlines()]
