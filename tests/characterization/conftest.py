"""Puts this folder on the import path, so that the rooms below it can use the helpers here."""
