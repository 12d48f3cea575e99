"""Options that take several names."""

from __future__ import annotations

from crosscast.errors import InputError

__all__ = ["words_of"]


def words_of(option: str, text: str) -> list[str]:
    """Tell names apart that are separated by commas, each once, with or without spaces between them.

    Parameters
    ----------
    option
        The option that they were typed for, for messages.
    text
        What was typed.

    Raises
    ------
    InputError
        If a name is empty.

    Examples
    --------
    >>> words_of("--suite", "bfs, fft,bfs")
    ['bfs', 'fft']
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InputError(f"{option}: expected names separated by commas, found {text!r}")
    return list(dict.fromkeys(words))
