"""Predictions of how jobs do on parts of a GPU, from how they do together at levels of MPS."""
