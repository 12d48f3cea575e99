"""The OpenCL C builtin functions, compiled on demand.

A kernel module calls builtins by their mangled names and defines none of them. The headers of this folder, in
C++ for OpenCL, define them as templates. `calls` maps names to templates and memory accesses, and `library`
compiles the instances.
"""
