"""Pictures of an evaluation of models of relative performance (paper 003, Figures 2 to 8)."""
