"""The file of samples before it is filled in."""

from __future__ import annotations

import csv
from pathlib import Path

from crosscast.choose.setting_columns import SettingColumns
from crosscast.errors import InputError
from crosscast.predict.configuration.configuration_card import ConfigurationCard
from crosscast.tables.run_columns import POWER, TIME, domain_column
from crosscast.tables.whole_file import whole_file

__all__ = ["template_columns", "write_template"]


def template_columns(card: ConfigurationCard) -> tuple[str, ...]:
    """What is to be filled in for each run: time, power, the power of each domain, counters.

    Parameters
    ----------
    card
        Card of the model.
    """
    # A domain that is the whole has the column of the whole.
    whole = {names[0] for sets in card.totals.values() for names in sets if len(names) == 1}
    domains = [domain_column(name) for name in card.domains if name not in whole]
    return (TIME, POWER, *domains, *card.counters)


def write_template(path: Path, card: ConfigurationCard) -> None:
    """Write a CSV file with a row for each sample configuration, whose measurements are to be filled in.

    A file that is there is left as it is: it may have been filled in.

    Parameters
    ----------
    path
        File to write.
    card
        Card of the model.

    Raises
    ------
    InputError
        If there is one already, or it cannot be written.
    """
    if path.is_file():
        raise InputError(f"{path}: expected no such file, as it may have been filled in; found one")
    columns = SettingColumns(card.space)
    rows = [columns.cells(number) for number in card.samples]
    names = [*rows[0], *template_columns(card)]
    try:
        with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"{path}: cannot write the template ({error.strerror or error})") from error
