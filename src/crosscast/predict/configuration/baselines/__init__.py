"""Models that any other has to beat."""
