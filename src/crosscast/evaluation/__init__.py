"""How well models predict what they have not seen: splits by group, scores, and how sure these are."""
