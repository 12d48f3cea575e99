"""The OpenCL C builtin functions, as source text made on demand.

A kernel module calls builtins by their mangled names and defines none of them.
:func:`~crosscast.characterization.builtins.library.source` writes OpenCL C that defines exactly
the ones that are called. A family of builtins is a module with

``define(declaration) -> str | None``
    ``None`` if the function is not of this family, else its result type and its block, as in
    ``"float4 { return a0 + a1; }"``. The parameters are called ``a0``, ``a1``, ...
``PRELUDE`` (optional)
    OpenCL C (static helper functions) put once in front of the family's functions.
``accesses(declaration) -> tuple[Access, ...]`` (optional)
    How one call touches memory.
``LIBM`` (optional)
    C library symbols that the family's text declares.

The text is OpenCL C 3.0 for ``spir64`` with contraction of ``a * b + c`` off, and calls no OpenCL
builtins, only clang's own (``__builtin_...``) and the C library.
"""
