"""Profiles for people: tables and pictures."""
