"""Auto-tuning: spaces of a kernel's variants, their ranking by forecasts, and searches by measurement."""
