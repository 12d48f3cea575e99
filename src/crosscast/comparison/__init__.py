"""Differences between two profiles, datasets, models, schedules or devices."""
