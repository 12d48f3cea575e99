"""What a model of co-running can be asked about."""

from __future__ import annotations

from crosscast.errors import InputError
from crosscast.predict.corun.forecast import is_told
from crosscast.tables.corun.solo import Solo

__all__ = ["check_asked"]


def check_asked(solo: Solo, device: str) -> None:
    """Refuse an application that a model of a device can say nothing of.

    Parameters
    ----------
    solo
        The application alone.
    device
        Key of the device whose bags the model was trained on.

    Raises
    ------
    InputError
        If it is alone on another device, or in a time that nothing takes.
    """
    if solo.device != device:
        raise InputError(
            f"{solo.name}: device: expected the profile to be of {device}, whose bags the model was trained "
            f"on, found {solo.device}: profile it there"
        )
    if solo.time_s is not None and not is_told(solo.time_s):
        raise InputError(
            f"{solo.name}: time_s: expected a number of seconds that a job may take, found {solo.time_s:g}"
        )
