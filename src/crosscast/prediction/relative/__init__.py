"""Relative performance: a run's time on each device over that on the slowest, from counters of one device."""
