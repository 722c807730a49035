"""What a function's syntax says alone: what it assigns and declares, what can be reached."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .source import parameters, spelled
from .types import DTYPES, Dtype, OracleRefused, VectorType
from .vectors import NAMES

__all__ = ["annotation", "assigned_names", "declared", "element", "goes_on"]


def annotation(node: ast.expr) -> Dtype | VectorType:
    """The type that an annotation spells: `tack.f32`, `f32` or `tack.f32x3`."""
    if isinstance(node, ast.Constant):
        node = ast.parse(str(node.value), mode="eval").body
    name = spelled(node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))
    if name in NAMES:
        return NAMES[name]
    if name not in DTYPES:
        raise OracleRefused(f"annotation {ast.unparse(node)}")
    return DTYPES[name]


def element(node: ast.expr | None) -> VectorType | None:
    """What `tack.Array[tack.f32x3]` holds; None for any other annotation."""
    if not isinstance(node, ast.Subscript):
        return None
    found = annotation(node.slice)
    assert isinstance(found, VectorType)
    return found


def declared(node: ast.FunctionDef) -> dict[str, Dtype | VectorType]:
    """The parameters and locals whose type an annotation says."""
    found = {
        each.arg: annotation(each.annotation)
        for each in parameters(node)
        if each.annotation is not None and "Array" not in ast.unparse(each.annotation)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = annotation(each.annotation)
    return found


def assigned_names(node: ast.FunctionDef) -> set[str]:
    """Whatever the function assigns, were it a component of it."""
    found = set()
    for each in ast.walk(node):
        if isinstance(getattr(each, "ctx", None), ast.Store):
            while isinstance(each, ast.Attribute | ast.Subscript):
                each = each.value  # noqa: PLW2901
            if isinstance(each, ast.Name):
                found.add(each.id)
    return found


def goes_on(node: ast.stmt) -> bool:
    """Whether a statement can be followed by another."""
    match node:
        case ast.Return() | ast.Break() | ast.Continue():
            return False
        case ast.If(body=body, orelse=orelse):
            return _all_go_on(body) or _all_go_on(orelse)
        case ast.While(test=ast.Constant(value=value)) if value:
            return _breaks(node.body)
    return True


def _all_go_on(body: Sequence[ast.stmt]) -> bool:
    return all(goes_on(each) for each in body)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a `break` in `body` leaves the loop whose body it is."""
    for each in body:
        inner = isinstance(each, ast.For | ast.While)
        blocks = [] if inner else [getattr(each, name, []) for name in ("body", "orelse")]
        if isinstance(each, ast.Break) or any(_breaks(block) for block in blocks):
            return True
    return False
