"""Predicting times of kernels on devices: the data, the models, what joins them, and what is kept of them."""
