"""How well relative performance is predicted: splits by group, metrics, studies."""
