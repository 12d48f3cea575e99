"""Pictures of how methods chose configurations under power caps."""
