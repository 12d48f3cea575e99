"""bfs: breadth-first search of a graph (graph traversal)."""
