"""Tables of profiles: their columns, and their files."""
