"""Microbenchmarks: bandwidths, rates of operations and overheads of a device in seconds."""
