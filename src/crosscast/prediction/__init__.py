"""Models that predict kernels on devices: their training data, forecasts and stored form."""
