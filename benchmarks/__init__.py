"""Benchmarks of the characterization, against native execution and against Oclgrind."""
