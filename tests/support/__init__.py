"""What tests share: small data, models and processes."""
