"""Expressions of CUDA in one program: one after the other in one kernel, or each in its own."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization import characterize
from crosscast.kernel import Kernel, Launch

Array = npt.NDArray[Any]


def _program(
    kernels: Iterable[Sequence[str]], type_: str, names: Iterable[str], items: int, head: str, before: str
) -> str:
    """Kernels `k0` and so on, each of some expressions."""
    parameters = ", ".join(f"const {type_} *__restrict__ {name}_" for name in names)
    loads = " ".join(f"{type_} {name} = {name}_[i];" for name in names)
    texts = [f"#include <cuda_runtime.h>\n{head}\n"]
    for number, rows in enumerate(kernels):
        lines = "\n".join(f"out[{items} * {k} + i] = {row};" for k, row in enumerate(rows))
        texts.append(
            f"__global__ void k{number}({parameters}, {type_} *out) {{"
            f" int i = threadIdx.x; {loads} {before}\n{lines}\n}}\n"
        )
    return "".join(texts)


def evaluate(
    rows: Iterable[str], type_: str, inputs: Mapping[str, Array], head: str = "", before: str = ""
) -> dict[str, Array]:
    """Value of each expression of a thread's elements of the inputs, which have their names."""
    texts, items = list(rows), len(next(iter(inputs.values())))
    kernel = Kernel.from_source(_program([texts], type_, inputs, items, head, before), "k0", form="cuda")
    out = np.zeros((len(texts), items), next(iter(inputs.values())).dtype)
    characterize(Launch.on_grid(kernel, 1, items, (*inputs.values(), out)))
    return dict(zip(texts, out, strict=True))


def operations(
    row: str, rows: Collection[str], type_: str, names: str, head: str = "", before: str = ""
) -> dict[str, dict[str, int]]:
    """A thread's arithmetic in one expression of a program's, by type and kind."""
    program = _program(([each] for each in rows), type_, names, 32, head, before)
    kernel = Kernel.from_source(program, f"k{[*rows].index(row)}", form="cuda")
    arrays = np.ones((len(names) + 1, 32), np.uint32 if type_ == "unsigned" else np.float16)
    profile = characterize(Launch.on_grid(kernel, 1, 32, tuple(arrays)))
    return {
        name: {kind: times // 32 for kind, times in tree.items()}
        for name, tree in profile.launch["instructions"].items()
        if name.startswith(("int", "fp", "conv"))
    }
