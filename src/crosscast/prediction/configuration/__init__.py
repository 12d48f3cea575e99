"""Time and power of a kernel at every configuration of a machine, from runs at two of them."""
