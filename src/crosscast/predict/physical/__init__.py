"""A physical model: time is a sum of what launching, computing, waiting and moving data take."""
