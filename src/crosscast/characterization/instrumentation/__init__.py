"""From a kernel's IR to IR that counts what it does."""
