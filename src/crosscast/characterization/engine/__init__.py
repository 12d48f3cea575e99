"""Running an instrumented kernel: native code, a child process, its memory, its counts."""
