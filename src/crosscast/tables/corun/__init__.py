"""Co-running in datasets: applications alone, and bags of them at the same time on one device."""
