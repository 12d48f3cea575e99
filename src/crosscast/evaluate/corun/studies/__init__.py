"""Studies of co-running that paper 004 makes beside its evaluation (sections 5.1.4 and 6 to 9)."""
