"""Types of jobs that were timed on several devices, and predicted by a model that had not seen them."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.job_shape import JobShape
from crosscast.cluster.job_types import JobTypes
from crosscast.evaluation.relative import HeldOutPredictions
from crosscast.predict.relative.data import NO_SOURCE

__all__ = ["held_out_jobs"]

_AS_MEASURED = JobShape()


def held_out_jobs(predictions: HeldOutPredictions, shape: JobShape = _AS_MEASURED) -> JobTypes:
    """Make types of jobs for the experiment of section VII of Nichols et al. 2024.

    Each kernel at a size and scale is a type for each source that its counters are from: repeats of the same
    work on the same source are one, with the medians of their times and the means of their predictions.

    Parameters
    ----------
    predictions
        Runs, each predicted by a model that was fitted without its group.
    shape
        What else jobs are.

    Returns
    -------
    JobTypes
        Ordered by application, kernel, size, scale, source, and then as `job_procs` of the shape is.

    Raises
    ------
    InputError
        If the shape does not fit the runs.
    """
    vectors = predictions.vectors
    seen = vectors.observations
    shape.check(seen, vectors.devices)
    keys = zip(seen.application, seen.kernel, seen.size, seen.scale, seen.source, strict=True)
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    cells = sorted(rows)
    times_s = np.array([np.median(vectors.times_s[rows[cell]], axis=0) for cell in cells])
    predicted = np.array([predictions.predicted[rows[cell]].mean(axis=0) for cell in cells])
    procs = [shape.procs_of(seen, rows[cell][0]) for cell in cells]
    # Several widths of one kernel's jobs, side by side.
    place = np.repeat(np.arange(len(cells)), [len(widths) for widths in procs])
    kinds = [cells[each] for each in place]
    return JobTypes(
        devices=vectors.devices,
        application=tuple(kind[0] for kind in kinds),
        kernel=tuple(kind[1] for kind in kinds),
        size=tuple(kind[2] for kind in kinds),
        procs=np.concatenate(procs).astype(np.int64),
        uses_gpu=np.array([shape.uses_gpu(kind[0]) for kind in kinds]),
        repeats=shape.repeats_of(times_s)[place],
        submit_s=None,
        user=(None,) * len(kinds),
        times_s=times_s[place],
        predicted=predicted[place],
        source=tuple(shape.job_source if kind[4] == NO_SOURCE else kind[4] for kind in kinds),
        model=(predictions.model,) * len(kinds),
    )
