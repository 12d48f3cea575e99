"""Local alignment of two sequences."""
