"""Which constructs stood directly inside which, over all programs of a run.

A pair is a construct and the nearest construct around it. `expected` are the pairs that the suite
demands to have seen: every one that the language allows and the generator can write.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["Pair", "expected", "pairs_of"]

Pair = tuple[str, str]
"""Outer and inner construct."""

_BINARY = {
    ast.Add: "add",
    ast.Sub: "add",
    ast.Mult: "add",
    ast.Div: "divide",
    ast.FloorDiv: "floor divide",
    ast.Mod: "floor divide",
    ast.Pow: "power",
    ast.LShift: "shift",
    ast.RShift: "shift",
    ast.BitAnd: "bits",
    ast.BitOr: "bits",
    ast.BitXor: "bits",
    ast.MatMult: "vector",
}
_UNARY = {ast.USub: "negate", ast.Invert: "invert", ast.Not: "not"}
_CALLS = {
    "abs": "abs",
    "len": "shape",
    "local_array": "local array",
    "local_array_like": "local array",
    "min": "extreme",
    "max": "extreme",
    "floor": "round",
    "ceil": "round",
    "trunc": "round",
    "round": "round",
    "clamp": "extreme",
    "step": "extreme",
    "sign": "abs",
    "copysign": "mix",
    "mix": "mix",
    "isnan": "ask",
    "isinf": "ask",
    "isfinite": "ask",
    "popcount": "bit count",
    "clz": "bit count",
    "ctz": "bit count",
    **dict.fromkeys(("bits", "uniform", "randint"), "bit count"),
    "sqrt": "root",
    "fma": "fma",
}
_VECTOR = re.compile(
    r"[a-z0-9]+x[234]|any|all|dot|length|cross|normalize|transpose|inverse|determinant"
)
_OBJECTS = ("grid", "it", "self")
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.FunctionDef: "function",
    ast.While: "while",
    ast.AnnAssign: "annotated",
    ast.Return: "return",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Assert: "assert",
}


class _Recorder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.pairs: Counter[Pair] = Counter()
        self._around: list[str] = []
        self._kernel = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._kernel = node.name == "kernel"
        if self._kernel:
            for statement in node.body:
                self.visit(statement)
        else:
            self._inside("function", node.body)

    def visit_If(self, node: ast.If, name: str = "if") -> None:
        self._inside(name, [node.test, *node.body])
        match node.orelse:
            case []:
                pass
            case [ast.If() as inner]:
                self.visit_If(inner, "elif")
            case _:
                self._inside("else", node.orelse)

    def generic_visit(self, node: ast.AST) -> None:
        name = self._name(node)
        children = list(ast.iter_child_nodes(node))
        if name is None:
            for child in children:
                self.visit(child)
        else:
            self._inside(name, children)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            self._inside("shape", [])
            return
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        reduced = [_reduced(each) for each in indices]
        if isinstance(node.ctx, ast.Load):
            self._inside("load", reduced)
        else:
            for each in reduced:
                self.visit(each)

    def visit_For(self, node: ast.For) -> None:
        arguments = node.iter.args if isinstance(node.iter, ast.Call) else []
        bounds: list[ast.AST] = [_reduced(each) for each in arguments]
        self._inside("for" if self._around else "parallel", [*bounds, *node.body])

    def _inside(self, name: str, children: Sequence[ast.AST]) -> None:
        if self._around:
            self.pairs[self._around[-1], name] += 1
        self._around.append(name)
        for child in children:
            self.visit(child)
        self._around.pop()

    def _name(self, node: ast.AST) -> str | None:
        match node:
            case ast.Assign(targets=[ast.Tuple()]):
                return "tuple"
            case ast.Assign(targets=[ast.Subscript()]):
                return "store"
            case ast.Assign(targets=[ast.Attribute()]):
                return "component store"
            case ast.Assign():
                return "assign"
            case ast.AugAssign(target=ast.Name() | ast.Attribute()):
                return "augmented"
            case ast.AugAssign():
                return "augmented store"
            case ast.Expr(value=ast.Call()):
                return "procedure"
            case ast.BinOp(op=op):
                return _BINARY[type(op)]
            case ast.UnaryOp(operand=ast.Constant()):
                return "literal"
            case ast.UnaryOp(op=op):
                return _UNARY[type(op)]
            case ast.BoolOp(op=op):
                return "and" if isinstance(op, ast.And) else "or"
            case ast.Compare(ops=ops):
                return "compare" if len(ops) == 1 else "chain"
            case ast.IfExp():
                return "choice"
            case ast.Constant() if self._around and self._around[-1] != "literal":
                return "literal"
            case ast.Attribute(attr="size" | "ndim"):
                return "shape"
            case ast.Attribute(attr=name) if set(name) <= set("xyzw"):
                return "component"
            case ast.Attribute() if ast.unparse(node).partition(".")[0] in _OBJECTS:
                return "attribute"
            case ast.keyword():
                return "keyword"
            case ast.Call(func=function):
                return self._called(function)
        return _STATEMENTS.get(type(node))  # type: ignore[arg-type]

    def _called(self, function: ast.expr) -> str:
        name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        if name.startswith("helper"):
            return "call"
        if name.startswith("atomic_"):
            return "atomic"
        return "vector" if _VECTOR.fullmatch(name) else _CALLS.get(name, "cast")


def _reduced(node: ast.expr) -> ast.expr:
    """An index or a bound without what keeps it within limits."""
    match node:
        case ast.BinOp(left=inner, op=ast.Mod()):
            return inner
        case ast.BinOp(op=ast.Add(), right=ast.BinOp(left=inner, op=ast.Mod())):
            return inner
    return node


def pairs_of(source: str) -> Counter[Pair]:
    """How often each pair occurs in a program."""
    recorder = _Recorder()
    recorder.visit(ast.parse(source))
    return recorder.pairs


# What each expression can be (families of scope.py), and what each takes.
_GIVES = {
    "component": "IUFB",
    "attribute": "IFB",
    "vector": "UFB",
    "literal": "IUFB",
    "load": "IUFB",
    "choice": "IUFB",
    "call": "IUFB",
    "cast": "IUFB",
    "add": "IUF",
    "floor divide": "IUF",
    "negate": "IUF",
    "abs": "IUF",
    "extreme": "IUF",
    "bits": "IUB",
    "power": "IUF",
    "shift": "IU",
    "invert": "IU",
    "shape": "I",
    "divide": "F",
    "round": "F",
    "root": "F",
    "fma": "F",
    "mix": "F",
    "bit count": "IU",
    "ask": "B",
    "compare": "B",
    "chain": "B",
    "and": "B",
    "or": "B",
    "not": "B",
}
_TAKES = {
    "vector": "IUF",
    **dict.fromkeys(("choice", "cast", "add", "floor divide", "divide", "compare"), "IUFB"),
    **dict.fromkeys(("and", "or", "not", "call", "keyword", "return", "if", "elif"), "IUFB"),
    **dict.fromkeys(("while", "assign", "tuple", "store"), "IUFB"),
    **dict.fromkeys(("augmented", "augmented store"), "IUFB"),
    **dict.fromkeys(("chain", "negate", "abs", "extreme", "annotated"), "IUF"),
    "fma": "IF",
    "bits": "IUB",
    "power": "IUF",
    **dict.fromkeys(("shift", "invert", "bit count"), "IU"),
    **dict.fromkeys(("round", "root", "mix", "ask"), "F"),
    "load": "I",
    "for": "I",
}
_BLOCKS = ("parallel", "for", "while", "if", "elif", "else", "function")
_INNER = (
    "assign",
    "tuple",
    "annotated",
    "augmented",
    "store",
    "augmented store",
    "procedure",
    "for",
    "while",
    "if",
    "assert",
)
_LEAVES = {
    "break": ("for", "while", "if", "elif", "else"),
    "continue": ("for", "while", "if", "elif", "else"),
    "return": ("function", "if", "elif", "else"),
}
_NEVER = {
    # A literal that a sign or a cast makes of another literal is one literal.
    ("negate", "literal"),
    ("invert", "literal"),
    ("abs", "literal"),
    ("round", "literal"),
    ("root", "literal"),
    ("ask", "literal"),
    ("bit count", "literal"),
}


def expected() -> frozenset[Pair]:
    """The pairs that a run has to have seen."""
    blocks = {(outer, inner) for outer in _BLOCKS for inner in _INNER}
    leaves = {(outer, inner) for inner, places in _LEAVES.items() for outer in places}
    expressions = {
        (outer, inner)
        for outer, takes in _TAKES.items()
        for inner, gives in _GIVES.items()
        if set(takes) & set(gives)
    }
    return frozenset((blocks | leaves | expressions) - _NEVER)
