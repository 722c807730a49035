"""The canonical syntax form: what of a function's syntax tree counts for its key.

`ast.dump` differs between Python versions, and a wheel of kernels serves all of them, so the form
is our own: a table says which fields of which node count, in which order. Positions, comments,
docstrings, type comments and the quoting of strings do not. Golden digests in the tests hold it
still.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["canonical"]

_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "Module": ("body",),
    "FunctionDef": ("name", "args", "body", "returns"),
    "ClassDef": ("name", "bases", "keywords", "body", "decorator_list"),
    "arguments": (
        "posonlyargs", "args", "vararg", "kwonlyargs", "kw_defaults", "kwarg", "defaults",
    ),
    "arg": ("arg", "annotation"),
    "keyword": ("arg", "value"),
    "Return": ("value",),
    "Delete": ("targets",),
    "Assign": ("targets", "value"),
    "AugAssign": ("target", "op", "value"),
    "AnnAssign": ("target", "annotation", "value", "simple"),
    "For": ("target", "iter", "body", "orelse"),
    "While": ("test", "body", "orelse"),
    "If": ("test", "body", "orelse"),
    "Assert": ("test", "msg"),
    "Expr": ("value",),
    "BoolOp": ("op", "values"),
    "NamedExpr": ("target", "value"),
    "BinOp": ("left", "op", "right"),
    "UnaryOp": ("op", "operand"),
    "Lambda": ("args", "body"),
    "IfExp": ("test", "body", "orelse"),
    "Compare": ("left", "ops", "comparators"),
    "Call": ("func", "args", "keywords"),
    "Attribute": ("value", "attr"),
    "Subscript": ("value", "slice"),
    "Starred": ("value",),
    "Name": ("id",),
    "List": ("elts",),
    "Tuple": ("elts",),
    "Slice": ("lower", "upper", "step"),
}  # fmt: skip
"""Node -> the fields that count. A node that is not here counts with the fields that it has and
the table lacks none of in practice: operators and contexts have none, and what the language
refuses never reaches a key."""


def canonical(node: ast.AST) -> bytes:
    """The canonical form of a syntax tree.

    >>> canonical(ast.parse("x = 1  # one")) == canonical(ast.parse("x  =  0x1"))
    True
    """
    return b"".join(_emit(node))


def _emit(value: object) -> Iterator[bytes]:
    if isinstance(value, ast.Constant):
        yield from _emit_constant(value.value)
    elif isinstance(value, ast.AST):
        name = type(value).__name__
        yield b"("
        yield name.encode()
        for field in _FIELDS.get(name, value._fields):
            child = getattr(value, field, None)
            yield b" "
            yield from _emit(_without_docstrings(child) if field == "body" else child)
        yield b")"
    elif isinstance(value, list):
        yield b"[%d" % len(value)
        for item in value:
            yield b" "
            yield from _emit(item)
        yield b"]"
    else:
        yield from _emit_constant(value)


def _without_docstrings(body: object) -> object:
    """A statement list without its bare strings."""
    if not isinstance(body, list):
        return body
    return [
        statement
        for statement in body
        if not (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )
    ]


def _emit_constant(value: object) -> Iterator[bytes]:
    """A literal with its type, so that 1, 1.0 and True differ, and floats by their bits."""
    if isinstance(value, float):
        payload = struct.pack("<d", value)
    elif isinstance(value, complex):
        payload = struct.pack("<dd", value.real, value.imag)
    elif isinstance(value, bytes):
        payload = value
    else:
        payload = str(value).encode("utf-8", "surrogatepass")
    yield b"%s:%d:%s" % (type(value).__name__.encode(), len(payload), payload)
