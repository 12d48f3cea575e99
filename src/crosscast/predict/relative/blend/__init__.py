"""The model of relative performance that beats the published ones: trees on intensities, and sums of work."""
