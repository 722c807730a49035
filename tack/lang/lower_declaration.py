"""Lowering of source kernels: the parameters and the extents of the loop, whose body is ``...``."""

from __future__ import annotations

import ast

from tack.ir.nodes import Statement
from tack.lang.groups import shared, shared_like
from tack.lang.lower import KernelLowering

__all__ = ["DeclarationLowering"]


class DeclarationLowering(KernelLowering):
    """Lowers the declaration of a source kernel for one signature."""

    def loop_body(self, node: ast.For, first: list[Statement]) -> None:
        """The shared arrays of a group alone; what an iteration does is in the template."""
        if first:
            raise self.refuse(
                node.iter,
                "the loop of a source kernel counts from 0 in steps of 1; write range(n), and add "
                "where it begins in the template",
            )
        for statement in node.body:
            if self._makes_shared(statement):
                self.block([statement])
            elif not _is_ellipsis(statement):
                raise self.refuse(
                    statement,
                    "the loop of a source kernel tells how many iterations there are, and its body "
                    "is ..., after the tack.shared arrays of a group; what they do is written in "
                    "the template",
                )

    def _makes_shared(self, statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Assign) else None
        return isinstance(call, ast.Call) and self.static(call.func) in (shared, shared_like)


def _is_ellipsis(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...
