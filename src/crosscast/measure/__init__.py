"""Measuring on real devices: times, energy, CPU counters, and the state of the host meanwhile."""
