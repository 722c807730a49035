"""What a function's syntax says alone: what it assigns and declares, what can be reached."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .source import parameters, spelled
from .types import DTYPES, Dtype, OracleRefused

__all__ = ["annotation", "assigned_names", "declared", "goes_on"]


def annotation(node: ast.expr) -> Dtype:
    """The dtype that an annotation spells: `tack.f32` or `f32`."""
    name = spelled(node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))
    if name not in DTYPES:
        raise OracleRefused(f"annotation {ast.unparse(node)}")
    return DTYPES[name]


def declared(node: ast.FunctionDef) -> dict[str, Dtype]:
    """The parameters and locals whose type an annotation says."""
    found = {
        each.arg: annotation(each.annotation)
        for each in parameters(node)
        if each.annotation is not None and not ast.unparse(each.annotation).endswith("Array")
    }
    for each in ast.walk(node):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = annotation(each.annotation)
    return found


def assigned_names(node: ast.FunctionDef) -> set[str]:
    """Whatever the function assigns."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


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
