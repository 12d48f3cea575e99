"""Runs of all kinds, for laws."""

from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.measure.regions.key import RegionKey, RegionRun

TEXTS = st.text(min_size=1, max_size=20)
NUMBERS = st.floats(0, 1e12)
TABLES = st.dictionaries(TEXTS, NUMBERS | st.integers(0, 10**15), max_size=3)
KEYS = st.builds(
    RegionKey, TEXTS, st.lists(TEXTS, max_size=3).map(tuple), st.lists(TEXTS, max_size=2).map(tuple)
)
SETTINGS = st.dictionaries(TEXTS, st.floats(-1e9, 1e9) | st.text(max_size=5), max_size=3)
CONFIGURATIONS = st.builds(Configuration, TEXTS, SETTINGS)
MAYBE = st.none() | NUMBERS
RUNS = st.builds(
    RegionRun,
    key=KEYS,
    configuration=st.none() | CONFIGURATIONS,
    started_s=NUMBERS,
    duration_s=NUMBERS,
    metered_s=MAYBE,
    energy_j=TABLES,
    powers_w=TABLES,
    power_w=MAYBE,
    counters=TABLES,
    failure=st.none() | TEXTS,
)


def run_of(key: RegionKey, duration_s: float = 0.5, **rest: object) -> RegionRun:
    """A run, of which a test says only what matters."""
    plain = RegionRun(key, None, 1_700_000_000.0, duration_s)
    return plain._replace(**rest)  # type: ignore[arg-type]
