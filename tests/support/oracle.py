"""The launches whose exact answers are known, in ``shared/oracle`` beside the checkout."""

import json
from pathlib import Path

import numpy as np
import pytest

from crosscast.kernel import Argument, Kernel, Launch, Local
from support.shared import SHARED

ORACLE = SHARED / "oracle"
CASES = ("histogram", "matmul_tiled", "reduce", "saxpy4", "spmv", "vecadd")

needs_oracle = pytest.mark.skipif(
    not ORACLE.is_dir(),
    reason=f"no oracle cases in {ORACLE}: set CROSSCAST_SHARED to the folder that holds oracle/",
)


def oracle_launch(case: str, form: str = "bitcode") -> tuple[Launch, list[str]]:
    """A case's launch, with fresh arguments, and the names of its arguments."""
    folder: Path = ORACLE / case
    facts = json.loads((folder / "case.json").read_text())
    given = np.load(folder / "args.npz")
    args: list[Argument] = []
    for entry in facts["args"]:
        if entry["kind"] == "buf":
            args.append(given[entry["name"]].copy())
        elif entry["kind"] == "local":
            args.append(Local(entry["bytes"]))
        else:
            args.append(np.dtype(entry["dtype"]).type(entry["value"]))
    program = folder / (facts["source"] if form == "source" else "program.bc")
    kernel = Kernel.from_file(program, facts["kernel"])
    sizes = tuple(facts["global_size"]), tuple(facts["local_size"])
    return Launch(kernel, *sizes, tuple(args)), [entry["name"] for entry in facts["args"]]
