"""The experiment of section VII of Nichols et al. 2024: placements compared on drawn workloads."""
