"""Names of options in messages about what the options stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from crosscast.errors import InputError

__all__ = ["option_names"]

_OPTIONS = {
    "application": "--application",
    "budget": "--budget",
    "cache": "--cache",
    "confidence": "--confidence",
    "device": "--devices",
    "devices": "--devices",
    "domain": "--power-domain",
    "gpu_applications": "--gpu-applications",
    "invocations": "--invocations",
    "job_procs": "--job-procs",
    "job_s": "--job-seconds",
    "job_source": "--job-source",
    "jobs": "--jobs",
    "level": "--level",
    "methods": "--methods",
    "min_runs": "--min-runs",
    "min_time_s": "--min-time",
    "model": "--model",
    "models": "--models",
    "objective": "--objective",
    "power cap": "--power-cap",
    "probe": "--probe",
    "probes": "--probes",
    "repeats": "--repeats",
    "samples": "--samples",
    "seed": "--seed",
    "size": "--sizes",
    "sources": "--sources",
    "split": "--protocol",
    "together": "--together",
    "timeout_s": "--timeout",
    "warmups": "--warmups",
    "weights": "--weights",
    "without": "--without",
}


@contextmanager
def option_names(options: Mapping[str, str] = _OPTIONS) -> Iterator[None]:
    """Let errors of wrong input begin with the option that was typed instead of the field it fills.

    Parameters
    ----------
    options
        Options by fields; those of most commands by default.

    Raises
    ------
    InputError
        As raised within, with that name.
    """
    try:
        yield
    except InputError as error:
        field, colon, rest = str(error).partition(":")
        if field not in options:
            raise
        raise InputError(f"{options[field]}{colon}{rest}") from error
