"""The microbenchmarks that stand for neighbours: three levels of misses of the last-level cache."""
