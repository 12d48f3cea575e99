"""Times of kernels for training: whose table each is from, what it is a time of, and of which launches."""

from __future__ import annotations

from crosscast.data.schema import CONFIGURATION, DEVICE, Column, Schema

APPLICATION = Column("application", "text", title="kernels that are held out together", required=True)
KERNEL = Column("kernel", "text", title="kernel, or the region of a program that was timed", required=True)
LAUNCH = Column("launch", "text", title="what tells its launches apart: sizes and parameters", required=True)

TIMES = Schema(
    "times",
    1,
    (
        Column("source", "text", title="table that it is from, as importers name it", required=True),
        APPLICATION,
        KERNEL,
        LAUNCH,
        DEVICE,
        CONFIGURATION,
        Column("time_s", "real", "s", "time, of all its launches if `total` is 1", required=True, gt=0),
        Column("statistic", "text", title="what the time is of the runs, such as median", required=True),
        Column("timed", "text", title="what was timed, such as the kernel on the device", required=True),
        Column("total", "integer", "", "1: time of all launches together; 0: mean of them", required=True),
        Column("runs", "integer", "count", "runs that the statistic is of", ge=1),
        Column("note", "text", title="what else is in the time, such as what a driver does once"),
        Column("left_out", "text", title="why nothing is trained on it; empty for a time of a kernel"),
    ),
    key=("source", "application", "kernel", "launch", "device", "configuration"),
)
"""Version 1. A kernel that two sources timed has rows of both, with one application and kernel."""

PARTS = Schema(
    "parts",
    1,
    (
        APPLICATION,
        KERNEL,
        LAUNCH,
        Column("part", "integer", "count", "number of the part, from 0", required=True, ge=0),
        Column("profile_kernel", "text", title="kernel of its profile", required=True),
        Column("profile_size", "text", title="size of its profile", required=True),
        Column("profile_invocation", "integer", "count", "invocation of its profile", required=True, ge=0),
        Column("launches", "real", "count", "launches that the profile stands for", required=True, gt=0),
    ),
    key=("application", "kernel", "launch", "part"),
)
"""Version 1. The launches of a time; profiles are those of the table of profiles of the same application."""
