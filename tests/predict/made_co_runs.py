"""Solo runs and bags that are made up, with a truth that models can find."""

from itertools import combinations_with_replacement

import numpy as np

from crosscast.tables.corun.bag import Bag, Member
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

NAMES = ("bfs", "cfd", "crc", "csr", "dwt", "fft")


def made_solo(name: str, size: str = "small", *, seed: int = 0, **known: float) -> Solo:
    """An application whose numbers come from its name and size."""
    random = np.random.default_rng([seed, *f"{name} {size}".encode()])
    utilisation = float(random.uniform(0.3, 1.0))
    features = {
        "utilisation": utilisation,
        "bandwidth_bytes_per_s": float(random.uniform(1e9, 2e10)),
        "inflicted_high": 1 + float(random.uniform(0, 1)),
        **{f"fairness_{level}": float(random.uniform(0.5, 1)) for level in ("low", "medium", "high")},
        **known,
    }
    time_s = float(random.uniform(0.1, 0.4))
    return Solo(
        name, size, "cpu", time_s, power_w=20 + 40 * utilisation, memory_bytes=1 << 20, features=features
    )


def true_slowdowns(bag: tuple[Solo, ...]) -> list[float]:
    """Cores are shared: as much slower as more than all of them is wanted."""
    wanted = sum(solo.features["utilisation"] for solo in bag)
    return [max(1.0, wanted) * (1 + 0.1 * solo.features["utilisation"]) for solo in bag]


def made_bag(solos: tuple[Solo, ...], *, repeat: int = 0, power: bool = True) -> Bag:
    """A bag as it would be measured."""
    slow = true_slowdowns(solos)
    members = tuple(Member(solo, slowdown) for solo, slowdown in zip(solos, slow, strict=True))
    times = [(solo.time_s or 0.0) * slowdown for solo, slowdown in zip(solos, slow, strict=True)]
    watts = 20 + 40 * min(1.0, sum(solo.features["utilisation"] for solo in solos))
    name = " + ".join(solo.name for solo in solos)
    return Bag(
        name, "cpu", members, repeat=repeat, fits=True, time_s=max(times), overlap=min(times) / max(times),
        power_w=watts if power else None,
    )  # fmt: skip


def made_co_runs(
    names: tuple[str, ...] = NAMES,
    sizes: tuple[str, ...] = ("small",),
    bags: tuple[int, ...] = (2,),
    **kind: bool,
) -> CoRuns:
    """All bags of some sizes of all applications."""
    solos = tuple(made_solo(name, size) for name in names for size in sizes)
    made = [made_bag(chosen, **kind) for n in bags for chosen in combinations_with_replacement(solos, n)]
    return CoRuns("made up", solos, tuple(made))
