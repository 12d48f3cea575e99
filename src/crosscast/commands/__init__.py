"""Implementations of the commands, whose options `crosscast.cli` declares."""
