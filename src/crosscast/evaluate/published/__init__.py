"""The published study (paper 000) on a dataset: its tables and figures, and what they say in real time."""
