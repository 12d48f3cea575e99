"""k-means clustering of points with many features."""
