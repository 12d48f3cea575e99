"""Pictures of an evaluation of models of co-running (paper 004, Figures 4 to 15)."""
