"""Expressions of CUDA, one after the other in one kernel."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile

Array = npt.NDArray[Any]


def _run(
    rows: list[str], type_: str, inputs: Mapping[str, Array], head: str, before: str
) -> tuple[Array, Profile]:
    items = len(next(iter(inputs.values())))
    parameters = ", ".join(f"const {type_} *__restrict__ {name}_" for name in inputs)
    loads = " ".join(f"{type_} {name} = {name}_[i];" for name in inputs)
    lines = "\n".join(f"out[{items} * {k} + i] = {row};" for k, row in enumerate(rows))
    source = f"""#include <cuda_runtime.h>
        {head}
        __global__ void k({parameters}, {type_} *out) {{ int i = threadIdx.x; {loads} {before}
          {lines}
        }}"""
    out = np.zeros((len(rows), items), next(iter(inputs.values())).dtype)
    kernel = Kernel.from_source(source, "k", form="cuda")
    return out, characterize(Launch.on_grid(kernel, 1, items, (*inputs.values(), out)))


def evaluate(
    rows: Iterable[str], type_: str, inputs: Mapping[str, Array], head: str = "", before: str = ""
) -> dict[str, Array]:
    """What each expression of a thread's elements of the inputs gives, which have their names."""
    texts = list(rows)
    return dict(zip(texts, _run(texts, type_, inputs, head, before)[0], strict=True))


def operations(
    row: str, type_: str, names: str, head: str = "", before: str = ""
) -> dict[str, dict[str, int]]:
    """A thread's arithmetic in one expression, by type and kind."""
    dtype = np.uint32 if type_ == "unsigned" else np.float16
    _, profile = _run([row], type_, dict.fromkeys(names, np.ones(32, dtype)), head, before)
    return {
        name: {kind: times // 32 for kind, times in tree.items()}
        for name, tree in profile.launch["instructions"].items()
        if name.startswith(("int", "fp", "conv"))
    }
