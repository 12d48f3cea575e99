"""Ways to choose a configuration under a power cap."""
