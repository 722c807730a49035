"""A copy of a function whose assignments, choices and results convert to their static types.

Everything else, the order of evaluation above all, is left to Python.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from .analysis import RESULT, Analysis
from .source import parameters
from .types import Dtype, TemplateType, Type, VectorType

__all__ = ["Rewriter"]


class Rewriter(ast.NodeTransformer):
    """Rewrites one analysed function. `constants` holds what the copy refers to by new names."""

    def __init__(self, analysis: Analysis, kernel: bool) -> None:
        self._analysis = analysis
        self._kernel = kernel
        self.constants: dict[str, Any] = {}
        self.globals: dict[str, ast.expr] = {}
        """The names of the outer scope that the function reads."""
        self._choices: dict[ast.expr, Type] = {}

    def function(self) -> ast.FunctionDef:
        """The rewritten definition, without decorators, annotations and defaults."""
        memo: dict[int, Any] = {}
        node = copy.deepcopy(self._analysis.node, memo)
        for original, t in self._analysis.choices.items():
            self._choices[memo[id(original)]] = t
        for each in parameters(node):
            each.annotation = None
        node.decorator_list, node.returns = [], None
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        node.args = ast.arguments([], every, None, [], [], None, [])  # each is given, in order
        body: list[ast.stmt] = []
        for statement in node.body:
            visited = self.visit(statement)
            if self._kernel and isinstance(visited, ast.For):
                visited.iter = self._call("__parallel", visited.iter)
            body += visited if isinstance(visited, list) else [visited]
        entry = [
            self._convert(each.arg)
            for each in parameters(node)
            if isinstance(self._local(each.arg), Dtype | VectorType) or self._weak(each.arg)
        ]
        node.body = [*entry, *body] or [ast.Pass()]
        return ast.fix_missing_locations(node)

    def _weak(self, name: str) -> bool:
        return not isinstance(self._local(name), Dtype | TemplateType | tuple) and not hasattr(
            self._local(name), "rank"
        )

    def _local(self, name: str) -> Type | None:
        return self._analysis.locals.get(name)

    def _constant(self, value: Any) -> ast.Name:
        name = f"__constant_{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def _call(self, name: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])

    def _to(self, t: Any, value: ast.expr) -> ast.Call:
        return self._call("__to", self._constant(t), value)

    def _convert(self, name: str) -> ast.stmt:
        """`name = __to(its type, name)`."""
        value = self._to(self._local(name), ast.Name(name, ast.Load()))
        return ast.Assign([ast.Name(name, ast.Store())], value)

    def _target_type(self, target: ast.expr) -> Any:
        if isinstance(target, ast.Tuple):
            return tuple(self._target_type(each) for each in target.elts)
        return self._local(target.id) if isinstance(target, ast.Name) else None

    def visit_Assert(self, _: ast.Assert) -> ast.stmt:
        """Asserts are checked in debug mode only."""
        return ast.Pass()

    def visit_Assign(self, node: ast.Assign) -> Any:
        """The value is converted once for each target."""
        value = self.visit(node.value)
        targets = [self.visit(each) for each in node.targets]
        if len(targets) == 1:
            return ast.Assign(targets, self._to(self._target_type(targets[0]), value))
        held = ast.Name("__value", ast.Store())
        statements: list[ast.stmt] = [ast.Assign([held], value)]
        for each in targets:
            read = ast.Name("__value", ast.Load())
            statements.append(ast.Assign([each], self._to(self._target_type(each), read)))
        return statements

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """On a local, an assignment; on an element Python's own order is what is wanted."""
        value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            return ast.AugAssign(self.visit(node.target), node.op, value)
        read = ast.Name(node.target.id, ast.Load())
        computed = ast.BinOp(read, node.op, value)
        return ast.Assign([node.target], self._to(self._local(node.target.id), computed))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """A declared local has its declared type."""
        if node.value is None:
            return ast.Pass()
        assert isinstance(node.target, ast.Name)
        return ast.Assign(
            [node.target], self._to(self._local(node.target.id), self.visit(node.value))
        )

    def visit_For(self, node: ast.For) -> ast.For:
        """Indices are i64 and then what their local is."""
        if isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Name | ast.Attribute):
            node.iter = ast.Call(ast.Attribute(node.iter, "parts", ast.Load()), [], [])
        self.generic_visit(node)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        node.body = [*(self._convert(name) for name in names), *node.body]
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """Results have the type joined over all returns."""
        if node.value is None:
            return node
        return ast.Return(self._to(self._local(RESULT), self.visit(node.value)))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Both branches have the promoted type, whichever is taken."""
        t = self._choices.get(node)
        self.generic_visit(node)
        return self._to(t, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`and` and `or` give a bool, not an operand."""
        self.generic_visit(node)
        return self._call("__truth", node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A chain gives a bool whichever of its parts decided."""
        self.generic_visit(node)
        return self._call("__truth", node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not` gives a bool of the shim."""
        self.generic_visit(node)
        return self._call("__truth", node) if isinstance(node.op, ast.Not) else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Literals become values that know that they are literals."""
        if isinstance(node.value, bool | int | float):
            return self._call("__literal", node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Names of the outer scope are collected."""
        if isinstance(node.ctx, ast.Load) and node.id not in self._analysis.names:
            self.globals.setdefault(node.id, node)
        return node
