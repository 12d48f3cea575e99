"""Traces of clusters: the Standard Workload Format, and the traces of Gavel."""
