"""A plan tells all about the code that is made from it, and writing that code leaves it as it is."""

import pytest

from crosscast.characterization import run
from crosscast.characterization.instrumentation.emit import emit
from crosscast.kernel import Kernel, Launch
from support import random_kernels
from support.examples import one_in
from support.sub_group_kernels import CASES


def _launches() -> dict[str, Launch]:
    launches = {name: case.launch("-Oz") for name, case in [*CASES.items()][::5]}
    for seed in (3, 5, 8):
        random_kernel = random_kernels.make(seed)
        kernel = Kernel.from_source(random_kernel.source, "k", standard=random_kernel.standard)
        sizes = random_kernel.global_size, random_kernel.local_size
        launches[f"random {seed}"] = Launch(kernel, *sizes, random_kernel.inputs())
    return launches


@pytest.mark.parametrize("name", one_in(3, _launches()))
def test_a_plan_gives_the_same_code_each_time(name: str) -> None:
    launch = _launches()[name]
    _, plan, _ = run._plan(launch.kernel, run._instrumentation_options(launch, run.Options()))
    assert emit(plan) == emit(plan)
