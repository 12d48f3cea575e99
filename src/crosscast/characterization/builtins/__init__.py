"""The OpenCL C builtin functions, compiled on demand.

A kernel module calls builtins by their mangled names and defines none of them. The headers of this folder, in
C++ for OpenCL, have them as templates. `calls` says which one a name means and how a call touches memory, and
`library` makes the instances.
"""
