"""Microbenchmarks: seconds of work that say how fast a device moves, computes and launches."""
