"""What tests of the house read in the package's modules, of which each is parsed once."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import crosscast

ROOT = Path(crosscast.__file__).parent
PATHS = sorted(ROOT.rglob("*.py"))


class Import(NamedTuple):
    """An import of a module, or of names from one."""

    module: str
    names: tuple[str, ...]
    is_relative: bool
    is_for_types: bool


class Source(NamedTuple):
    """A module; lines are counted from 1."""

    imports: tuple[Import, ...]
    handlers: tuple[tuple[int, str], ...]  # Lines of ``except``, with the types as `ast.dump` writes them
    classes: tuple[str, ...]  # At the top level
    texts: tuple[tuple[int, str], ...]  # Docstrings, and texts that stand alone below a constant
    names: tuple[tuple[int, str], ...]  # Of variables and arguments


@cache
def source_of(path: Path) -> Source:
    """Parse a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports, handlers, texts, names = list[Import](), [], [], []
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, typed = pending.pop()
        match node:
            case ast.Name():
                names.append((node.lineno, node.id))
                continue
            case ast.Constant():
                continue
            case ast.Import():
                imports += [Import(alias.name, (), False, typed) for alias in node.names]
            case ast.ImportFrom():
                listed = tuple(alias.name for alias in node.names)
                imports.append(Import(node.module or "", listed, node.level > 0, typed))
            case ast.ExceptHandler():
                handlers.append((node.lineno, ast.dump(node.type) if node.type else ""))
            case ast.Expr(value=ast.Constant(value=text)):
                texts.append((node.lineno, str(text)))
            case ast.arg():
                names.append((node.lineno, node.arg))
            case ast.If():
                typed = typed or "TYPE_CHECKING" in ast.dump(node.test)
        pending += [(child, typed) for child in ast.iter_child_nodes(node)]
    classes = tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return Source(tuple(imports), tuple(handlers), classes, tuple(texts), tuple(names))
