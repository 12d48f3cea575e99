"""Regions of a program: what each run of them takes, in time and energy, and a history of it."""
