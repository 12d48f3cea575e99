"""Clusters: traces of jobs, machines, placements, and a simulator of their queues."""
