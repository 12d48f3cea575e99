"""Profiles of counter tools: HPCToolkit, Caliper, Linux perf and Nsight Compute."""
