"""Counting the ways to place queens on a board."""
