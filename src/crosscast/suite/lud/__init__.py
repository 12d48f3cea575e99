"""Blocked LU decomposition of a dense matrix."""
