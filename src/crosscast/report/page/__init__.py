"""One page about a dataset and how well its kernels are predicted, in a single file of HTML."""
