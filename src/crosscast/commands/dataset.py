"""``crosscast dataset``: build, import, merge and describe."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.options import Output
from crosscast.commands.output import check_output, check_place, show
from crosscast.commands.status import say
from crosscast.data import description
from crosscast.data.dataset import dataset_named, read_dataset, write_dataset
from crosscast.data.files import locked
from crosscast.data.merge import hosts_of, merged
from crosscast.data.sources import IMPORTERS
from crosscast.errors import InputError
from crosscast.report.catalogues import sources_report
from crosscast.report.dataset import description_report


def check_new(out: Path) -> None:
    """Refuse a folder with something in it."""
    check_place("--out", out)
    if out.is_dir() and any(out.iterdir()):
        raise InputError.of(where="--out", expected="a new or empty folder", found=f"{out} with files")


def merge(folder: Path, /, *more: Path, out: Path, output: Output) -> None:
    """Run ``crosscast dataset merge``."""
    check_output(output)
    check_new(out)
    found = merged([read_dataset(each) for each in (folder, *more)], str(out))
    with locked(out):
        write_dataset(found, out)
    for device, hosts in hosts_of(found.sessions.to_pylist()).items():
        if len(hosts) > 1:
            say(f"note: {device} was measured on {', '.join(hosts)}")
    described = description.describe(found)
    show(output, described.to_dict, lambda: description_report(described))


def describe(folder: Path, /, *, output: Output) -> None:
    """Run ``crosscast dataset describe``."""
    found = description.describe(dataset_named(folder))
    show(output, found.to_dict, lambda: description_report(found))


def sources(*, output: Output) -> None:
    """Run ``crosscast dataset sources``."""
    check_output(output)

    found = [importer.to_dict() for importer in IMPORTERS.values()]
    show(output, lambda: found, lambda: sources_report(found))
