"""Machines of a cluster in a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from crosscast.cluster.machines import Machine, check_machines
from crosscast.errors import InputError
from crosscast.fields import Fields

__all__ = ["read_machines"]

_MOST_BYTES = 1 << 20


def read_machines(path: str | Path) -> list[Machine]:
    """Read machines.

    Parameters
    ----------
    path
        A TOML file with a table ``[[machine]]`` for each: its ``name``; ``procs`` or ``nodes``, what its jobs
        are counted in; and, where they differ from what they are by default, ``gpu`` (``false``) and
        ``device`` (the name).

    Returns
    -------
    list of Machine
        In the order of the file.

    Raises
    ------
    InputError
        If it cannot be read, a field is missing, unknown or wrong, or two machines have one name.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path}: expected machines in at most {_MOST_BYTES >> 20} MiB, found more")
        fields = Fields(tomllib.loads(content.decode("utf-8")), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read the machines ({error.strerror})") from error
    except RecursionError as error:
        raise InputError(f"{path}: expected machines in TOML, found lists that are too deep") from error
    except ValueError as error:
        # Of TOML, of UTF-8, and of numbers with too many digits.
        raise InputError(f"{path}: expected machines in TOML ({error})") from error
    machines = [_machine(table) for table in fields.tables("machine")]
    fields.finish()
    try:
        check_machines(machines)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return machines


def _machine(table: Fields) -> Machine:
    table.require("name", "a text")
    name, device, has_gpu = table.text("name"), table.text("device"), table.flag("gpu")
    counts = {field: table.integer(field, 1) for field in ("procs", "nodes")}
    given = [count for count in counts.values() if count is not None]
    table.finish()
    if len(given) != 1:
        found = "both" if given else "neither"
        raise InputError(f"{table.where}: expected procs or nodes, found {found}")
    return Machine(str(name), given[0], has_gpu=has_gpu, device=device)
