"""How well methods choose configurations under power caps, on programs that they have not seen."""
