"""Which variants of a kernel are worth measuring on a device: spaces, ranking, and learning from runs."""
