"""The prediction service: what the commands answer, over a Unix socket or TCP, and hooks that ask it."""
