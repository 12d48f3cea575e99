"""What a launch asks of a device's compute units: work-groups and what each of them needs."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from crosscast.characterization.engine.sub_group_counts import WIDTHS
from crosscast.kernel import Launch, Local

if TYPE_CHECKING:
    from crosscast.characterization.instrumentation.instrumented import Instrumented


def launch_geometry(launch: Launch, made: Instrumented) -> dict[str, Any]:
    """What decides how many work-groups of a launch a compute unit holds at once (docs/metrics.md)."""
    groups = group_shapes(launch)
    dynamic = launch.shared or 0
    # Where the kernel uses dynamic shared memory, that is a variable of its own.
    declared = sum(made.local.sizes.values()) - (dynamic if made.uses_dynamic_memory else 0)
    given = sum(argument.nbytes for argument in launch.args if isinstance(argument, Local))
    return {
        "groups": sum(groups.values()),
        "group_items": math.prod(launch.local_size),
        **{
            f"sub_groups_{size}": sum(n * -(-items // size) for items, n in groups.items()) for size in WIDTHS
        },
        "local_bytes": {"static": declared, "arguments": given + dynamic},
        "registers": made.registers,
        "private_bytes": made.private_bytes,
    }


def group_shapes(launch: Launch) -> dict[int, int]:
    """How many work-groups of a launch have each number of work-items: the last ones may be smaller."""
    extents = []
    for whole, part in zip(launch.global_size, launch.local_size, strict=True):
        full, rest = divmod(whole, part)
        extents.append([(part, full), (rest, 1)] if rest else [(part, full)])
    found: dict[int, int] = {}
    for corner in itertools.product(*extents):
        items = math.prod(size for size, _ in corner)
        if number := math.prod(n for _, n in corner):
            found[items] = found.get(items, 0) + number
    return found
