"""gem: electrostatic potential around a molecule (n-body)."""
