"""Launches from files: launch files and simulator files."""
