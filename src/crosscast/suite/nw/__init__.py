"""nw: Needleman-Wunsch alignment of two sequences (dynamic programming)."""
