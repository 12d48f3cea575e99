"""The published data of 2018: AIWC features, kernel times on 15 devices, and energy."""
