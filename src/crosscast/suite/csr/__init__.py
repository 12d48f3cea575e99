"""Products of a sparse matrix and a vector."""
