"""Importers: others' formats, and past versions of our own, into the tables."""
